/**
 * Authenticates callers of an MCP backend whose settings name an issuer (`mcp.authentication`), in front of its handler.
 * The block of a policy (`traffic.jwtAuthentication.mcp`) runs the same code in front of the whole route.
 */
import type { JwtAuthentication } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { BackendHandler } from "../backends/handler.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Exchange, Reply } from "../exchange/exchange.ts";
import {
  compileJwtAuthentication,
  type JwtAuthenticationDeps,
} from "../policies/jwt-authentication/jwt-authentication.ts";

/** @param spec undefined where every caller is let in */
export function authenticateCallers(
  spec: JwtAuthentication | undefined,
  deps: JwtAuthenticationDeps,
  handle: BackendHandler,
): BackendHandler {
  if (spec === undefined) return handle;
  const authenticate = compileJwtAuthentication(spec, deps);
  return async function mcpAuthentication(exchange): Promise<Reply> {
    refuseConsumed(exchange);
    return authenticate(exchange, () => handle(exchange));
  };
}

/**
 * Refuses a request whose token a policy of the route has accepted and taken out: this block cannot check the token that
 * is gone, and a mode that lets requests without one pass would let all of them pass.
 */
function refuseConsumed(exchange: Exchange): void {
  if (exchange.root("jwt") === undefined || exchange.requestHeaders.has("authorization")) return;
  throw new ProxyError("jwt_missing", { detail: "a policy of the route has taken the token" });
}
