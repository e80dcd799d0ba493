/**
 * A worker's side of the shared fetching of credentials: asks the main thread (token-coordinator.ts) before it fetches.
 */
import { GwError } from "../../lib/errors.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { FetchedToken, TokenBroker } from "../tokens/token.ts";
import type { FetchFailure, FetchOutcome, MainProtocol } from "./protocol.ts";

type Ask = <K extends "token" | "tokenFetched">(
  name: K,
  body: MainProtocol[K]["ask"],
) => Promise<MainProtocol[K]["answer"]>;

export function createTokenBroker(ask: Ask): TokenBroker {
  return {
    async obtain<T>(
      request: Parameters<TokenBroker["obtain"]>[0],
      fetch: () => Promise<FetchedToken<T>>,
    ): Promise<FetchedToken<T>> {
      const answer = await ask("token", request);
      // The key names the block and with it the kind, so the value has the type that this kind fetches.
      if (answer.case === "token") return answer.token as FetchedToken<T>;
      if (answer.case === "failure") throw errorOf(answer.failure);
      const settle = (outcome: FetchOutcome): void => void ask("tokenFetched", { key: request.key, outcome });
      try {
        const token = await fetch();
        settle({ case: "token", token });
        return token;
      } catch (error) {
        settle({ case: "failure", failure: failureOf(error) });
        throw error;
      }
    },
  };
}

function failureOf(error: unknown): FetchFailure {
  if (!(error instanceof ProxyError)) return { code: "credential_unavailable", detail: undefined, text: undefined };
  const { code, detail, text } = error;
  return { code, detail, text };
}

function errorOf({ code, detail, text }: FetchFailure): GwError {
  return new ProxyError(code, {
    ...(detail === undefined ? {} : { detail }),
    ...(text === undefined ? {} : { text }),
  });
}
