/** Whether a request is traced: what a sampling expression yields, and the draw that a share of requests is compared with. */

/** @param result of the expression: true, or the share of requests; of anything else nothing is traced */
export function isSampled(result: unknown, draw: () => number): boolean {
  if (typeof result === "boolean") return result;
  if (typeof result !== "number" && typeof result !== "bigint") return false;
  if (result >= 1) return true;
  return result > 0 && draw() < result;
}

/** The same in every replica: taken from the low 56 bits of the trace id, which are random. In [0, 1]. */
export function drawOf(traceId: string): number {
  return Number.parseInt(traceId.slice(-14), 16) / 2 ** 56;
}
