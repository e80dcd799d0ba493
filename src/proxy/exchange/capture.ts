/** Holds the body of a response for expressions and retry conditions; the response is forwarded unchanged. */
import { holdStart } from "./buffering.ts";
import type { Body } from "./body.ts";

export interface Captured {
  /** The whole body; null when it is larger than the limit. */
  readonly body: Buffer | null;
  readonly prefix: Buffer | null;
}

export const NOT_CAPTURED: Captured = { body: null, prefix: null };

/** @param reply its body is replaced by one that begins with the held bytes */
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
