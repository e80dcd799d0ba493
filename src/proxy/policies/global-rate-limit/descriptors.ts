/**
 * Compiles the descriptors of a global rate limit: expressions decide what a request is counted as, and how much it
 * counts.
 */
import { create } from "@bufbuild/protobuf";
import {
  RateLimitDescriptorSchema,
  type RateLimitDescriptor,
} from "../../../../generated/proto/envoy/extensions/common/ratelimit/v3/ratelimit_pb.ts";
import { RateLimitUnit } from "../../../../generated/proto/envoy/type/v3/ratelimit_unit_pb.ts";
import { LimitKind, type RateDescriptor } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import { CelError } from "../../../cel/errors.ts";
import type { Scope } from "../../../cel/scope.ts";
import { scalarText } from "../../../cel/text.ts";
import { Uint } from "../../../cel/values.ts";
import { ConfigError } from "../../../lib/errors.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { valueOf } from "../shared/expression-support.ts";
import type { PolicyDeps } from "../policy.ts";

export interface CompiledDescriptor {
  readonly countsTokens: boolean;
  /** @returns undefined when a part of it fails: the descriptor is then omitted */
  read(scope: Scope): RateLimitDescriptor | undefined;
  /** Computes how much a request counts; undefined for the default. */
  readonly cost: ((scope: Scope) => bigint | undefined) | undefined;
}

const UNITS: ReadonlyMap<string, RateLimitUnit> = new Map([
  ["second", RateLimitUnit.SECOND],
  ["minute", RateLimitUnit.MINUTE],
  ["hour", RateLimitUnit.HOUR],
  ["day", RateLimitUnit.DAY],
  ["month", RateLimitUnit.MONTH],
  ["year", RateLimitUnit.YEAR],
]);
const MAX_UINT32 = 0xffff_ffffn;

/** @throws ConfigError for a descriptor without a kind */
export function compileDescriptor(spec: RateDescriptor, { expression }: PolicyDeps): CompiledDescriptor {
  if (spec.kind === LimitKind.UNSPECIFIED) throw new ConfigError("a descriptor counts neither requests nor tokens");
  const countsTokens = spec.kind === LimitKind.TOKENS;
  const entries = spec.entries.map(({ name, expression: source }) => ({
    key: name,
    value: expression(source, "request"),
  }));
  const override = spec.limitOverride === "" ? undefined : expression(spec.limitOverride, "request");
  const cost = spec.cost === "" ? undefined : expression(spec.cost, countsTokens ? "response" : "request");
  return {
    countsTokens,
    read(scope) {
      const values = readEntries(entries, scope);
      const limit = override === undefined ? undefined : limitOf(known(override, scope));
      if (values === undefined || (override !== undefined && limit === undefined)) return undefined;
      return create(RateLimitDescriptorSchema, { entries: values, ...(limit === undefined ? {} : { limit }) });
    },
    cost: cost === undefined ? undefined : (scope) => uintOf(valueOf(cost, scope)),
  };
}

function readEntries(
  entries: readonly { readonly key: string; readonly value: Expression }[],
  scope: Scope,
): { key: string; value: string }[] | undefined {
  const read: { key: string; value: string }[] = [];
  for (const { key, value } of entries) {
    const text = scalarText(known(value, scope));
    if (text === undefined) return undefined;
    read.push({ key, value: text });
  }
  return read;
}

/**
 * A failed expression omits its descriptor. One that does not compile would omit it from every request and so lift the
 * limit: it ends the request instead.
 * @throws ProxyError rate_limit_failed
 */
function known(expression: Expression, scope: Scope): unknown {
  try {
    return expression.evaluate(scope);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    if (error.code !== "does_not_compile") return undefined;
    throw new ProxyError("rate_limit_failed", { detail: error.message, cause: error });
  }
}

/** Reads a map {unit, requestsPerUnit}. */
function limitOf(value: unknown): { unit: RateLimitUnit; requestsPerUnit: number } | undefined {
  if (!(value instanceof Map)) return undefined;
  const name: unknown = value.get("unit");
  const unit = typeof name === "string" ? UNITS.get(name.toLowerCase()) : undefined;
  const requests = uintOf(value.get("requestsPerUnit"));
  if (unit === undefined || requests === undefined || requests > MAX_UINT32) return undefined;
  return { unit, requestsPerUnit: Number(requests) };
}

function uintOf(value: unknown): bigint | undefined {
  const number = value instanceof Uint ? value.value : value;
  return typeof number === "bigint" && number >= 0n ? number : undefined;
}
