/** Holds the body of an answer for those who read it, and lets it go on as if nobody had. */
import { holdStart } from "./buffering.ts";
import type { Body } from "./body.ts";

export interface Captured {
  /** All of it; null when it is larger than may be held. */
  readonly body: Buffer | null;
  readonly prefix: Buffer | null;
}

export const NOT_CAPTURED: Captured = { body: null, prefix: null };

/** @param reply whose body may be exchanged for one that begins with what was held */
export async function captureBody(reply: { body: Body }, limitBytes: number): Promise<Captured> {
  const { body } = reply;
  if (body === null) return { body: Buffer.alloc(0), prefix: Buffer.alloc(0) };
  const whole = Buffer.isBuffer(body) ? body : body.whole?.();
  if (whole !== undefined) {
    const fits = whole.length <= limitBytes;
    return { body: fits ? whole : null, prefix: whole.subarray(0, limitBytes) };
  }
  if (Buffer.isBuffer(body)) return NOT_CAPTURED;
  const held = await holdStart(body, limitBytes);
  reply.body = held.body;
  return { body: held.complete ? held.start : null, prefix: held.start.subarray(0, limitBytes) };
}
