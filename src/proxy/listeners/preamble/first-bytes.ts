/**
 * Peeks at the first bytes of a connection for the preamble parsers and TlsLayer, then puts them back into the socket.
 */
import type { Socket } from "node:net";

/**
 * @param judge parses all bytes so far; returns undefined when more are needed
 * @param take called once with the verdict; the socket is then paused and holds its bytes again
 * @param timeoutMs destroys a connection that sends too little; undefined when the caller has a limit of its own
 */
export function lookAhead<V>(
  socket: Socket,
  judge: (start: Buffer) => V | undefined,
  take: (verdict: V) => void,
  timeoutMs: number | undefined,
): void {
  let start: Buffer | undefined;
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => socket.destroy(), timeoutMs);
  const onData = (chunk: Buffer): void => {
    start = start === undefined ? chunk : Buffer.concat([start, chunk]);
    const verdict = judge(start);
    if (verdict === undefined) return;
    clearTimeout(timer);
    socket.off("data", onData).off("end", onEnd).off("error", onEnd);
    socket.pause();
    socket.unshift(start);
    take(verdict);
  };
  // A client that half-closes or breaks the connection this early gets no service.
  const onEnd = (): void => void socket.destroy();
  // An earlier look leaves the socket paused.
  if (socket.isPaused()) socket.resume();
  socket.on("data", onData).on("end", onEnd).on("error", onEnd);
  if (timer !== undefined) socket.on("close", () => clearTimeout(timer));
}
