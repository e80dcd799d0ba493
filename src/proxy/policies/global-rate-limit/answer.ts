/**
 * Turns the response of a rate limit service into headers: those that the service names, else the numbers of its
 * statuses.
 */
import type { HeaderValue } from "../../../../generated/proto/envoy/config/core/v3/base_pb.ts";
import {
  RateLimitResponse_Code as Code,
  type RateLimitResponse,
  type RateLimitResponse_DescriptorStatus as Status,
} from "../../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import { editableName, headerText } from "../shared/header-options.ts";

const LIMIT = "x-ratelimit-limit";
const REMAINING = "x-ratelimit-remaining";
const RESET = "x-ratelimit-reset";
const RETRY_AFTER = "retry-after";

/** Replaces headers of the same name; values that HTTP cannot carry are omitted. */
export function setHeaders(values: readonly HeaderValue[], headers: HeaderList): void {
  for (const value of values) {
    const name = editableName(value.key);
    const text = headerText(value);
    if (name !== undefined && text !== undefined) headers.set(name, text);
  }
}

/** Returns the status with the least remaining. */
export function scarcest({ statuses }: RateLimitResponse): Status | undefined {
  let least: Status | undefined;
  for (const status of statuses) {
    if (status.currentLimit === undefined) continue;
    if (least === undefined || status.limitRemaining < least.limitRemaining) least = status;
  }
  return least;
}

/** Writes the three headers as a unit: none is written when one of them is present already. */
export function report(status: Status | undefined, headers: HeaderList): void {
  const limit = status?.currentLimit;
  if (status === undefined || limit === undefined) return;
  if (headers.has(LIMIT) || headers.has(REMAINING) || headers.has(RESET)) return;
  headers.set(LIMIT, String(limit.requestsPerUnit));
  headers.set(REMAINING, String(status.limitRemaining));
  headers.set(RESET, String(resetSeconds(status)));
}

/**
 * Sets Retry-After unless the service did (RFC 9110 §10.2.3): the time until the last exceeded limit resets. A service
 * that sends no times gives one second, the shortest value of the field.
 */
export function reportRetry(answer: RateLimitResponse, headers: HeaderList): void {
  if (headers.has(RETRY_AFTER)) return;
  const exceeded = answer.statuses.filter(({ code }) => code === Code.OVER_LIMIT);
  const least = scarcest(answer);
  const seconds = (exceeded.length > 0 || least === undefined ? exceeded : [least]).map(resetSeconds);
  headers.set(RETRY_AFTER, String(Math.max(1, ...seconds)));
}

export function forgetReport(headers: HeaderList): void {
  for (const name of [LIMIT, REMAINING, RESET]) headers.remove(name);
}

function resetSeconds({ durationUntilReset: left }: Status): number {
  return left === undefined ? 0 : Number(left.seconds) + (left.nanos > 0 ? 1 : 0);
}
