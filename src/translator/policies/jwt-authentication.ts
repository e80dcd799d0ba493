/**
 * Translates `traffic.jwtAuthentication` (RFC 7519): issuers and their public keys. A provider whose keys are not
 * available is reported and left out. Without any provider the unit is still sent, so that every token is rejected.
 */
import { create } from "@bufbuild/protobuf";
import type {
  JwtAuthentication as ApiAuthentication,
  JwtProvider as ApiProvider,
} from "../../../generated/types/traffic-authentication.ts";
import {
  JwtAuthenticationSchema,
  type JwtProvider,
  type McpResource,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { within } from "../shared/report.ts";
import { parseJwks } from "./jwks/jwks.ts";
import { AUTHENTICATION_MODES, credentialLocation } from "./shared/authentication.ts";
import { parseOrigin } from "./shared/external-service.ts";
import { translateJwtProvider } from "./shared/jwt-provider.ts";
import { translateMcpResource } from "./shared/mcp-resource.ts";
import type { UnitContext, UnitTranslator } from "./shared/unit.ts";

const FIELD = "jwtAuthentication";

export const jwtAuthentication: UnitTranslator = {
  translate({ jwtAuthentication: block }, context) {
    if (block === undefined) return undefined;
    const mcp = translateMcp(block, context);
    const value = create(JwtAuthenticationSchema, {
      mode: AUTHENTICATION_MODES[block.mode ?? "Strict"],
      providers: block.providers.flatMap((provider, at) => {
        return translateProvider(provider, `${FIELD}.providers[${at}]`, context) ?? [];
      }),
      location: credentialLocation(block.location, `${FIELD}.location`, "Bearer", context),
      preserveToken: block.preserveToken ?? false,
      ...(mcp === undefined ? {} : { mcp }),
    });
    return { case: "jwtAuthentication", value };
  },
};

function translateProvider(provider: ApiProvider, path: string, context: UnitContext): JwtProvider | undefined {
  const { inline, remote } = provider.jwks;
  const keys = remote === undefined ? parseJwks(inline ?? "") : context.jwks.keys(remote);
  // Translated in any case: a field that is never read is reported as unsupported (shared/unsupported-fields.ts).
  const translated = translateJwtProvider(provider, typeof keys === "string" ? [] : keys);
  if (typeof keys !== "string") return translated;
  context.report(`${path}.jwks.${remote === undefined ? "inline" : "remote"}`, keys);
  return undefined;
}

/** Admission guarantees exactly one provider when `mcp` is set. */
function translateMcp(
  { mcp, providers: [provider] }: ApiAuthentication,
  { secrets, report }: UnitContext,
): McpResource | undefined {
  if (mcp === undefined || provider === undefined) return undefined;
  const { issuer, audiences = [] } = provider;
  if (parseOrigin(issuer) === undefined)
    report(
      `${FIELD}.providers[0].issuer`,
      `"${issuer}" is not an http or https URL, from which clients could learn where tokens are issued`,
    );
  return translateMcpResource(mcp, { issuer, audiences }, secrets, within(report, `${FIELD}.mcp`));
}
