/** Translates `auth.crossAppAccess`. */
import { create } from "@bufbuild/protobuf";
import {
  CrossAppAccessSchema,
  UnresolvedCredentialSchema,
} from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { within } from "../../../../shared/report.ts";
import type { TranslateKind } from "../auth-kind.ts";
import { translateCache, translateSource } from "./source-token.ts";
import { translateEndpoint } from "./token-endpoint.ts";

export const translateCrossAppAccess: TranslateKind<"crossAppAccess"> = (spec, _block, context) => {
  const { report } = context;
  const { audience, resources = [], scopes = [], accessTokenScopes = scopes, subjectToken = {}, cache } = spec;
  const identityProvider = translateEndpoint(spec.identityProvider, context, within(report, "identityProvider"));
  const server = within(report, "resourceAuthorizationServer");
  const resourceServer = translateEndpoint(spec.resourceAuthorizationServer, context, server);
  for (const endpoint of [identityProvider, resourceServer])
    if ("error" in endpoint)
      return { case: "unresolved", value: create(UnresolvedCredentialSchema, { reason: endpoint.error }) };
  const more = accessTokenScopes.filter((scope) => !scopes.includes(scope));
  if (more.length > 0)
    report(
      "accessTokenScopes",
      `scopes does not hold ${more.join(", ")}; most servers refuse such a request`,
      "warning",
    );
  return {
    case: "crossAppAccess",
    value: create(CrossAppAccessSchema, {
      // Both were checked above.
      identityProvider: identityProvider as Exclude<typeof identityProvider, { error: string }>,
      resourceServer: resourceServer as Exclude<typeof resourceServer, { error: string }>,
      audience,
      resources: [...resources],
      assertionScope: scopes.join(" "),
      tokenScope: accessTokenScopes.join(" "),
      subject: translateSource(subjectToken, "IdToken", "crossAppAccess.subjectToken", within(report, "subjectToken")),
      cache: translateCache(cache),
    }),
  };
};
