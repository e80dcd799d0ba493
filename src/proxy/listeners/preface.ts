/** Tells HTTP/2 from HTTP/1 on a plain connection: by the preface that every HTTP/2 client sends first (RFC 9113 3.4). */
import type { Socket } from "node:net";
import type { Engine } from "./engine.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Until the client has said something, the connection belongs to nobody: `timeoutMs` ends it. */
export function takeByPreface(socket: Socket, engines: { http1: Engine; http2: Engine }, timeoutMs: number): void {
  let start: Buffer | undefined;
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const onData = (chunk: Buffer): void => {
    start = start === undefined ? chunk : Buffer.concat([start, chunk]);
    const compared = Math.min(start.length, PREFACE.length);
    const isPreface = start.subarray(0, compared).equals(PREFACE.subarray(0, compared));
    if (isPreface && start.length < PREFACE.length) return;
    release();
    socket.pause();
    socket.unshift(start);
    // node:http2 takes what is buffered by itself; node:http waits for the flow to go on.
    if (isPreface) engines.http2.take(socket);
    else {
      engines.http1.take(socket);
      socket.resume();
    }
  };
  // An engine ends what it was never given on its own terms; before that a half-closed or broken connection is over.
  const onEnd = (): void => void socket.destroy();
  const release = (): void => {
    clearTimeout(timer);
    socket.off("data", onData).off("end", onEnd).off("error", onEnd);
  };
  socket.on("data", onData).on("end", onEnd).on("error", onEnd);
  socket.on("close", () => clearTimeout(timer));
}
