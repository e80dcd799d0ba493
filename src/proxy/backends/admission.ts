/**
 * Joins what decides about each attempt once its destination is chosen: first `authorization`, then `extAuth`. HTTP
 * backends and LLM providers use it, and the registry for MCP servers.
 */
import type { BackendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Reply, RoutedExchange } from "../exchange/exchange.ts";
import { compileAuthorization } from "./authorization.ts";
import { BackendExtAuth } from "./ext-auth.ts";
import type { BackendDeps, BackendHandler } from "./handler.ts";

export type Admit = (exchange: RoutedExchange, send: () => Promise<Reply>) => Promise<Reply>;

type AdmissionDeps = Pick<BackendDeps, "callout" | "expression" | "nowMs">;
type AdmissionSettings = Pick<BackendSettings, "authorization" | "extAuth">;

/** @returns undefined when every attempt is let through */
export function compileAdmission(settings: AdmissionSettings, deps: AdmissionDeps): Admit | undefined {
  const authorization = compileAuthorization(settings.authorization, deps);
  const extAuth = settings.extAuth === undefined ? undefined : new BackendExtAuth(settings.extAuth, deps);
  if (authorization === undefined && extAuth === undefined) return undefined;
  return async (exchange, send) => {
    await authorization?.check(exchange);
    return extAuth === undefined ? send() : extAuth.guard(exchange, send);
  };
}

/** Lets a handler answer only the requests that are admitted. */
export function admitted(admit: Admit | undefined, handler: BackendHandler): BackendHandler {
  return admit === undefined ? handler : (exchange) => admit(exchange, () => handler(exchange));
}
