/**
 * `authorization` of a backend: expressions that see the chosen destination decide about each attempt. HTTP backends,
 * LLM providers and calls of policies to a backend use it.
 */
import { create } from "@bufbuild/protobuf";
import { BackendAuthSchema, type Authorization } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";
import { compileRules } from "../policies/shared/authorization-rules.ts";
import type { RequestAuth } from "../upstream/auth.ts";
import type { EndpointDeps } from "./handler.ts";

export class BackendAuthorization {
  readonly #decide: ReturnType<typeof compileRules>;
  readonly #readsBody: boolean;

  constructor({ rules }: Authorization, { expression }: Pick<EndpointDeps, "expression">) {
    let readsBody = false;
    this.#decide = compileRules(rules, (source) => {
      const compiled = expression(source, "backend");
      readsBody ||= compiled.reads.requestBody;
      return compiled;
    });
    this.#readsBody = readsBody;
  }

  /** @throws ProxyError authorization_failed */
  async check(exchange: RoutedExchange): Promise<void> {
    if (this.#readsBody) await exchange.bufferRequestBody(exchange.requestLimitBytes);
    const detail = this.#decide(exchange);
    if (detail !== undefined) throw new ProxyError("authorization_failed", { detail });
  }

  /** Puts the check before the authentication of calls that policies make to the backend. */
  before(auth: RequestAuth | undefined): RequestAuth {
    return {
      message: create(BackendAuthSchema),
      sign: undefined,
      correctClock: undefined,
      checkDestination: undefined,
      writesQuery: false,
      chosenHeader: undefined,
      ...auth,
      place: async (call, headers, path) => {
        // A call of the gateway itself has no request that the expressions could see.
        if (call.caller.requestHeaders === undefined)
          throw new ProxyError("policy_refused", { detail: "authorization" });
        // Only a request has headers, and then it is the whole exchange.
        await this.check(call.caller as RoutedExchange);
        return auth === undefined ? path : auth.place(call, headers, path);
      },
    };
  }
}

export function compileAuthorization(
  block: Authorization | undefined,
  deps: Pick<EndpointDeps, "expression">,
): BackendAuthorization | undefined {
  return block === undefined ? undefined : new BackendAuthorization(block, deps);
}
