/** Waiting for what a setting brings about. */
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { ProofContext } from "./prove.ts";

/** Settings that events depend on stand for 2 s at most, their second values for an hour. */
const ALTERED_LIMIT_MS = 5_000;

/**
 * Resolves with the event. An ordinary run waits as long as it takes; with a field altered the event may never come,
 * which is then a failed assertion.
 * @param alteredLimitMs longer than the time in the test, shorter than its second value
 */
export async function expectEvent<T>(
  context: ProofContext,
  event: Promise<T>,
  description: string,
  alteredLimitMs: number = ALTERED_LIMIT_MS,
): Promise<T> {
  if (context.alteration === undefined) return event;
  const ended = new AbortController();
  const late = setTimeout(alteredLimitMs, undefined, { signal: ended.signal }).then(() =>
    assert.fail(`does not come: ${description}`),
  );
  try {
    return await Promise.race([event, late]);
  } finally {
    late.catch(() => undefined);
    ended.abort();
  }
}
