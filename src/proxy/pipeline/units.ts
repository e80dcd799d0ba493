/** Which policy enforces which kind of unit of a Policy resource. A unit without an entry here does not compile. */
import type { TrafficUnit } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../lib/errors.ts";
import { POLICIES } from "../policies/index.ts";
import type { Middleware, Policy, PolicyDeps } from "../policies/policy.ts";
import type { PolicyName } from "./order.ts";

export type Unit = TrafficUnit["unit"];

/** What the units hold, by the name of their case. */
type Values = { readonly [U in Extract<Unit, { case: string }> as U["case"]]: U["value"] };
type UnitOf<C extends keyof Values> = { readonly [K in C]: { readonly case: K; readonly value: Values[K] } }[C];

const POLICY_OF: { readonly [C in keyof Values]: Policy<Values[C]> } = {
  refusal: POLICIES.refusal,
  timeouts: POLICIES.timeouts,
  cors: POLICIES.cors,
  jwtAuthentication: POLICIES["jwt-authentication"],
  basicAuthentication: POLICIES["basic-authentication"],
  apiKeyAuthentication: POLICIES["api-key-authentication"],
  extAuth: POLICIES["ext-auth"],
  authorization: POLICIES.authorization,
  retry: POLICIES.retry,
  localRateLimit: POLICIES["local-rate-limit"],
  globalRateLimit: POLICIES["global-rate-limit"],
  buffer: POLICIES.buffer,
  extProc: POLICIES["ext-proc"],
  transformation: POLICIES.transformation,
  csrf: POLICIES.csrf,
  headerModifiers: POLICIES["header-modifiers"],
  hostRewrite: POLICIES["host-rewrite"],
  delay: POLICIES.delay,
  directResponse: POLICIES["direct-response"],
};

/** @throws ConfigError for a unit that this version does not know */
export function nameOf(unit: Unit): PolicyName {
  return POLICY_OF[known(unit).case].name;
}

/** @throws ConfigError for a unit that this version does not know, or that its policy cannot enforce */
export function compileUnit(unit: Unit, deps: PolicyDeps): Middleware {
  return compileKnown(known(unit), deps);
}

function compileKnown<C extends keyof Values>(unit: UnitOf<C>, deps: PolicyDeps): Middleware {
  return POLICY_OF[unit.case].compile(unit.value, deps);
}

function known(unit: Unit): UnitOf<keyof Values> {
  if (unit.case === undefined) throw new ConfigError("a unit of the policy is unknown to this version");
  return unit;
}
