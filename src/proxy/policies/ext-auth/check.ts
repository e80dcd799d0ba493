/**
 * One external authorization, whatever decides when it is asked: `traffic.extAuth` and `extAuth` of backends use it. The
 * failure mode applies only when the service cannot be asked; a service that could not be resolved, or an expression
 * that fails, always refuses.
 */
import type { ExtAuth } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../lib/errors.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Exchange, Reply } from "../../exchange/exchange.ts";
import { comparableName, editableName, removeForgeable } from "../shared/header-options.ts";
import { failOpen } from "../shared/failure-mode.ts";
import { VerdictCache } from "./cache.ts";
import { compileGrpcCheck, type Ask } from "./grpc.ts";
import { compileHttpCheck } from "./http.ts";
import { UNASKED, type CheckDeps, type Denied, type Verdict } from "./verdict.ts";

export interface Check {
  readonly ask: Ask;
  readonly failOpen: boolean;
  readonly forwardBodyBytes: number | undefined;
  readonly cache: VerdictCache | undefined;
  /** Request headers that only the service may set; undefined when there are none. */
  readonly owned: ReadonlySet<string> | undefined;
}

/** @throws ConfigError for a block that says too little */
export function compileCheck(spec: ExtAuth | undefined, deps: CheckDeps): Check {
  if (spec === undefined) throw new ConfigError("an external authorization says nothing");
  return {
    ask: compileAsk(spec, deps),
    failOpen: spec.failOpen,
    forwardBodyBytes: spec.forwardBodyBytes,
    cache: spec.cache === undefined ? undefined : new VerdictCache(spec.cache, deps),
    owned: ownedHeaders(spec),
  };
}

function ownedHeaders({ protocol }: ExtAuth): ReadonlySet<string> | undefined {
  if (protocol.case !== "http") return undefined;
  const names = protocol.value.allowedResponseHeaders.filter((name) => editableName(name) !== undefined);
  return names.length === 0 ? undefined : new Set(names.map(comparableName));
}

function compileAsk({ service, protocol }: ExtAuth, deps: CheckDeps): Ask {
  const callout = deps.callout(service, "ExtAuthz");
  const { invalidReason } = callout;
  if (invalidReason !== undefined)
    return () => {
      throw new ProxyError("ext_auth_failed", { detail: invalidReason });
    };
  switch (protocol.case) {
    case "grpc":
      return compileGrpcCheck(protocol.value, callout, deps);
    case "http":
      return compileHttpCheck(protocol.value, callout, deps);
    case undefined:
      throw new ConfigError("an external authorization without a protocol");
  }
}

/** Returns the verdict; an allowed request has been edited by then. */
export async function decide(check: Check, exchange: Exchange): Promise<Verdict> {
  const key = check.cache?.keyOf(exchange);
  const known = key === undefined ? undefined : check.cache?.get(key);
  const verdict = known ?? (await askService(check, exchange));
  if (verdict.metadata !== undefined) exchange.setRoot("extauthz", verdict.metadata);
  if (verdict.allowed) {
    // Also when the service could not be asked: an upstream must never mistake a header of the client for one of the
    // service.
    if (check.owned !== undefined) removeForgeable(check.owned, exchange.requestHeaders);
    verdict.edit(exchange);
  }
  if (known === undefined && key !== undefined && verdict !== UNASKED) check.cache?.put(key, verdict, exchange);
  return verdict;
}

async function askService(check: Check, exchange: Exchange): Promise<Verdict> {
  const { ask, forwardBodyBytes } = check;
  const body = forwardBodyBytes === undefined ? undefined : await exchange.bufferRequestBody(forwardBodyBytes);
  if (forwardBodyBytes !== undefined && body === undefined)
    throw new ProxyError("body_too_large", { detail: `longer than the ${forwardBodyBytes} bytes that are forwarded` });
  try {
    return await ask(exchange, body);
  } catch (error) {
    failOpen("extAuth", check.failOpen, error, exchange);
    return UNASKED;
  }
}

/** @throws ProxyError when the service has no words of its own */
export function refuse({ reply }: Denied): Reply {
  if (reply === undefined) throw new ProxyError("ext_auth_failed", { detail: "denied by the service" });
  const { status, headers, body } = reply;
  // Cloned, because the verdict may be cached and later steps edit the headers.
  return { status, headers: headers.clone(), body: body.length === 0 ? null : body, upstream: false };
}
