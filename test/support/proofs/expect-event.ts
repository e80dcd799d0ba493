/** Waits for the effect of a setting; feature tests use it. */
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { ProofContext } from "./prove.ts";

/**
 * Limit for runs with an altered field. Settings that trigger events are 2 s at most, and their second values an hour.
 */
const ALTERED_LIMIT_MS = 5_000;

/**
 * Resolves with the event. An ordinary run waits without limit. With an altered field the event may never come, which
 * then counts as a failed assertion.
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
