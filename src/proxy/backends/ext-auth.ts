/**
 * `extAuth` of a backend: an external service decides about each attempt, after the destination is chosen and before the
 * credential, so that it can mint one for that destination. HTTP backends, LLM providers and MCP servers use it.
 */
import type { ExtAuth } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Exchange, Reply, RoutedExchange } from "../exchange/exchange.ts";
import { rememberRequest } from "../exchange/restore-request.ts";
import { compileCheck, decide, refuse, type Check } from "../policies/ext-auth/check.ts";
import type { BackendDeps } from "./handler.ts";

/** Limit of a call where the settings of the service name none, as for `traffic.extAuth`. */
const TIMEOUT_MS = 2_000;

type ExtAuthDeps = Pick<BackendDeps, "callout" | "expression" | "nowMs">;

/** Metadata that an exchange had before the first attempt. */
const earlierMetadata = new WeakMap<Exchange, { readonly value: unknown }>();

export class BackendExtAuth {
  readonly #check: Check;
  readonly #readsBody: boolean;

  constructor(spec: ExtAuth, { callout, expression, nowMs }: ExtAuthDeps) {
    let readsBody = false;
    this.#check = compileCheck(spec, {
      nowMs,
      callout: (service, subtype) => callout(service, subtype, TIMEOUT_MS),
      expression: (source, place) => {
        const compiled = expression(source, place === "request" ? "backend" : place);
        readsBody ||= compiled.reads.requestBody;
        return compiled;
      },
    });
    this.#readsBody = readsBody;
  }

  /**
   * Makes an attempt when the service allows it. What the service changed is taken back afterwards: another attempt may
   * go to another destination, and logs must not show a credential that was minted for this one.
   * @throws ProxyError ext_auth_failed, body_too_large
   */
  async guard(exchange: RoutedExchange, send: () => Promise<Reply>): Promise<Reply> {
    if (this.#readsBody) await exchange.bufferRequestBody(exchange.requestLimitBytes);
    restoreMetadata(exchange);
    const restore = rememberRequest(exchange);
    try {
      const verdict = await decide(this.#check, exchange);
      return verdict.allowed ? await send() : refuse(verdict);
    } finally {
      restore();
    }
  }
}

/** Removes what the service said about a former attempt; after the last one it stays, for logs. */
function restoreMetadata(exchange: Exchange): void {
  const earlier = earlierMetadata.get(exchange);
  if (earlier === undefined) earlierMetadata.set(exchange, { value: exchange.root("extauthz") });
  else exchange.setRoot("extauthz", earlier.value);
}
