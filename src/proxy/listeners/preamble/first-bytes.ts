/** Looks at the first bytes of a connection before anyone owns it, and gives them back. */
import type { Socket } from "node:net";

/**
 * @param judge of everything that has arrived; undefined: more is needed @param take called once, with the verdict; the socket is
 * paused and holds its bytes again
 * @param timeoutMs ends a connection that says too little; undefined: somebody else does
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
  // A half-closed or broken connection is over before it began.
  const onEnd = (): void => void socket.destroy();
  // Somebody may have looked before.
  if (socket.isPaused()) socket.resume();
  socket.on("data", onData).on("end", onEnd).on("error", onEnd);
  if (timer !== undefined) socket.on("close", () => clearTimeout(timer));
}
