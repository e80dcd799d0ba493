/**
 * The kind `oauthTokenExchange`: an authorization server gives a token for that of the client, by token exchange
 * (RFC 8693) or as an assertion (RFC 7523).
 */
import { create } from "@bufbuild/protobuf";
import { CredentialSchema, type TokenExchange } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { isGwError } from "../../../../lib/errors.ts";
import type { HeaderList } from "../../../../lib/header-list.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { RoutedExchange } from "../../../exchange/exchange.ts";
import type { AuthKind, BlockDeps } from "../auth-kind.ts";
import { placeCredential } from "../shared/place-credential.ts";
import { openTokens } from "./exchanged-tokens.ts";
import { claimsOf, compileSource, mayAct, requireRequest, type SourceReader } from "./source-token.ts";
import { compileEndpoint, TOKEN_TIMEOUT_MS, unusable, type Form, type TokenAnswer } from "./token-endpoint.ts";

export const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

export const oauthTokenExchange: AuthKind<"oauthTokenExchange"> = {
  compile(spec, deps) {
    const ask = compileEndpoint(spec.endpoint, deps);
    const tokens = openTokens("oauthTokenExchange", spec.cache, deps, TOKEN_TIMEOUT_MS);
    const subjectSource = compileSource(spec.subject, "the subject", true, deps);
    const actorSource = spec.actor === undefined ? undefined : compileSource(spec.actor, "the actor", false, deps);
    const paramsOf = compileParams(spec, deps);
    return {
      place({ caller }, headers, path) {
        const exchange = requireRequest(caller);
        const subject = subjectSource.read(exchange);
        const actor = actorSource?.read(exchange);
        if (spec.checksMayAct && !mayAct(claimsOf(subject, caller), claimsOf(actor ?? "", caller)))
          throw new ProxyError("authorization_failed", { detail: "may_act of the subject does not allow the actor" });
        const params = paramsOf(exchange);
        const token = tokens.get([actor, params], subject, caller, async () =>
          checkAnswer(await ask([...formOf(spec, subject, actor), ...params], caller), spec.requestedType),
        );
        const finish = (value: string): string =>
          insert(value, { headers, path, spec, sources: [subjectSource, actorSource] });
        return typeof token === "string" ? finish(token) : token.then(finish);
      },
    };
  },
};

interface Insertion {
  readonly headers: HeaderList;
  readonly path: string;
  readonly spec: TokenExchange;
  readonly sources: readonly (SourceReader | undefined)[];
}

/** Takes away the tokens that were exchanged, and writes the new one. */
function insert(value: string, { headers, path, spec: { location }, sources }: Insertion): string {
  const request = { requestHeaders: headers, target: path };
  for (const source of sources) source?.strip(request);
  return placeCredential(
    create(CredentialSchema, location === undefined ? { value } : { value, location }),
    headers,
    request.target,
  );
}

function formOf(spec: TokenExchange, subject: string, actor: string | undefined): Form {
  const form: Form = spec.jwtBearer
    ? [
        ["grant_type", JWT_BEARER],
        ["assertion", subject],
      ]
    : [
        ["grant_type", TOKEN_EXCHANGE],
        ["subject_token", subject],
        ["subject_token_type", spec.subject?.type ?? ""],
      ];
  if (actor !== undefined) form.push(["actor_token", actor], ["actor_token_type", spec.actor?.type ?? ""]);
  for (const audience of spec.audiences) form.push(["audience", audience]);
  for (const resource of spec.resources) form.push(["resource", resource]);
  if (spec.scope !== "") form.push(["scope", spec.scope]);
  if (spec.requestedType !== "") form.push(["requested_token_type", spec.requestedType]);
  return form;
}

function compileParams(
  { additionalParams }: TokenExchange,
  { expression }: BlockDeps,
): (exchange: RoutedExchange) => Form {
  const params = Object.entries(additionalParams?.expressions ?? {}).map(
    ([name, source]) => [name, expression(source, "backend")] as const,
  );
  return (exchange) =>
    params.map(([name, compiled]) => {
      let value: unknown;
      try {
        value = compiled.evaluate(exchange);
      } catch (error) {
        if (!isGwError(error)) throw error;
      }
      if (typeof value === "string") return [name, value];
      throw new ProxyError("request_invalid", { detail: `the expression for the parameter ${name} gives no string` });
    });
}

function checkAnswer(answer: TokenAnswer, requestedType: string): TokenAnswer {
  if (answer.tokenType?.toLowerCase() !== "bearer") throw unusable("its token is not of the type Bearer");
  if (requestedType !== "" && answer.issuedType !== undefined && answer.issuedType !== requestedType)
    throw unusable("it gave another type of token than the one that was asked for");
  return answer;
}
