/**
 * Peeks at the first bytes of a connection for the preamble parsers and TlsLayer, then puts them back into the socket.
 */
import type { Socket } from "node:net";

/**
 * @param inspect parses all bytes so far; returns undefined when more are needed
 * @param accept called once with the verdict; the socket is then paused and holds its bytes again
 * @param timeoutMs destroys a connection that sends too little; undefined when the caller has a limit of its own
 */
export function peekFirstBytes<V>(
  socket: Socket,
  inspect: (start: Buffer) => V | undefined,
  accept: (result: V) => void,
  timeoutMs: number | undefined,
): void {
  let start: Buffer | undefined;
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => socket.destroy(), timeoutMs);
  const onData = (chunk: Buffer): void => {
    start = start === undefined ? chunk : Buffer.concat([start, chunk]);
    const result = inspect(start);
    if (result === undefined) return;
    clearTimeout(timer);
    // Nothing of the look may stay at the socket: the bytes, which can be a whole request, would live as long as it.
    socket.off("data", onData).off("end", onEnd).off("error", onEnd).off("close", onClose);
    socket.pause();
    socket.unshift(start);
    accept(result);
  };
  // A client that half-closes or breaks the connection this early gets no service.
  const onEnd = (): void => void socket.destroy();
  const onClose = (): void => clearTimeout(timer);
  // An earlier look leaves the socket paused.
  if (socket.isPaused()) socket.resume();
  socket.on("data", onData).on("end", onEnd).on("error", onEnd);
  if (timer !== undefined) socket.on("close", onClose);
}
