/** Translates `auth.oauthTokenExchange`. */
import { create } from "@bufbuild/protobuf";
import {
  ExpressionMapSchema,
  TokenExchangeSchema,
  UnresolvedCredentialSchema,
} from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { translateLocation } from "../../../../policies/shared/authentication.ts";
import { phaseOfBackend } from "../../../../policies/shared/expression-phase.ts";
import { expressionMap } from "../../../../policies/shared/unit.ts";
import { within } from "../../../../shared/report.ts";
import type { TranslateKind } from "../auth-kind.ts";
import { tokenTypeUri, translateCache, translateSource } from "./source-token.ts";
import { translateEndpoint } from "./token-endpoint.ts";

const FIELD = "oauthTokenExchange";

export const translateTokenExchange: TranslateKind<"oauthTokenExchange"> = (spec, _block, context) => {
  const { report } = context;
  const { grantType, subjectToken = {}, actorToken, audiences = [], scopes = [], resources = [] } = spec;
  const { requestedTokenType, additionalParams, location, cache } = spec;
  const endpoint = translateEndpoint(spec, context, report);
  if ("error" in endpoint)
    return { case: "unresolved", value: create(UnresolvedCredentialSchema, { reason: endpoint.error }) };
  const expressions = expressionMap(additionalParams, "additionalParams", { report }, (path) =>
    phaseOfBackend(`auth.${FIELD}.${path}`),
  );
  const value = create(TokenExchangeSchema, {
    endpoint,
    jwtBearer: grantType === "JwtBearer",
    subject: translateSource(subjectToken, "AccessToken", `${FIELD}.subjectToken`, within(report, "subjectToken")),
    checksMayAct: actorToken?.mayAct === "Required",
    audiences: [...audiences],
    resources: [...resources],
    scope: scopes.join(" "),
    requestedType: requestedTokenType === undefined ? "" : tokenTypeUri(requestedTokenType),
    additionalParams: create(ExpressionMapSchema, { expressions }),
    cache: translateCache(cache),
  });
  if (actorToken !== undefined)
    value.actor = translateSource(actorToken, "AccessToken", `${FIELD}.actorToken`, within(report, "actorToken"));
  if (location !== undefined) value.location = translateLocation(location);
  return { case: "oauthTokenExchange", value };
};
