/**
 * Turns the filters and fields of a rule that delegates into a policy, so that `selectUnits` merges them with those of
 * its members as it merges attached policies: a member replaces what it sets itself, and inherits the rest.
 * `router/bind-chain.ts` uses it. A redirect ends a request before it is delegated, and URL rewrites and mirrors have no
 * policy; bind-chain.ts hands those on.
 */
import { create } from "@bufbuild/protobuf";
import { HeaderModifiersSchema, TimeoutsSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Unit } from "../policies/index.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import type { InlineFilters } from "./compose.ts";

/** @throws ConfigError for a filter that the data plane cannot execute */
export function inheritFilters(inline: InlineFilters, rule: string, policies: PolicySet): CompiledPolicy {
  const { owner } = inline;
  const id = `${owner}#${rule}`;
  return {
    key: owner,
    id,
    createdAtMs: 0n,
    preRouting: false,
    override: false,
    units: unitsOf(inline).map((unit) => ({
      id: `${id}#${unit.case}`,
      owner,
      unit,
      compiled: policies.compileUnit(unit, owner),
      inner: undefined,
    })),
    backend: undefined,
    frontend: undefined,
    failsClosed: false,
    targets: [],
    secretParameters: [],
  };
}

function unitsOf({ requestHeaders, responseHeaders, cors, requestTimeoutMs, retry }: InlineFilters): Unit[] {
  const units: Unit[] = [];
  if (requestHeaders !== undefined || responseHeaders !== undefined) {
    const value = create(HeaderModifiersSchema);
    if (requestHeaders !== undefined) value.request = requestHeaders;
    if (responseHeaders !== undefined) value.response = responseHeaders;
    units.push({ case: "headerModifiers", value });
  }
  if (cors !== undefined) units.push({ case: "cors", value: cors });
  if (requestTimeoutMs !== undefined)
    units.push({ case: "timeouts", value: create(TimeoutsSchema, { requestMs: requestTimeoutMs }) });
  if (retry !== undefined) units.push({ case: "retry", value: retry });
  return units;
}
