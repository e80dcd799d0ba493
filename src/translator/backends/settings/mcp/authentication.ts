/**
 * Translates `mcp.authentication`: an issuer whose tokens callers must present. `index.ts` uses it. Without the issuer's
 * keys the message is still sent, so that every token is rejected.
 */
import { create } from "@bufbuild/protobuf";
import type { MCPAuthentication } from "../../../../../generated/types/mcp-policy.ts";
import { JwtAuthenticationSchema, type JwtProvider } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { AUTHENTICATION_MODES, translateLocation } from "../../../policies/shared/authentication.ts";
import { parseOrigin } from "../../../policies/shared/external-service.ts";
import { translateJwtProvider } from "../../../policies/shared/jwt-provider.ts";
import { translateMcpResource } from "../../../policies/shared/mcp-resource.ts";
import type { Report } from "../../../shared/report.ts";
import type { FullSettingsContext } from "../context.ts";
import type { McpFields } from "./mcp-field.ts";

export function translateMcpAuthentication(
  block: MCPAuthentication,
  context: FullSettingsContext,
  report: Report,
): McpFields {
  const { issuer = "", audiences = [], mode = "Strict" } = block;
  const provider = translateProvider({ ...block, issuer }, context, report);
  if (issuer !== "" && parseOrigin(issuer) === undefined)
    report("issuer", `"${issuer}" is not an http or https URL, from which clients could learn where tokens are issued`);
  const authentication = create(JwtAuthenticationSchema, {
    mode: AUTHENTICATION_MODES[mode],
    providers: provider === undefined ? [] : [provider],
    location: translateLocation({ header: { name: "Authorization", prefix: "Bearer " } }),
    mcp: translateMcpResource(block, { issuer, audiences }, context.secrets, report),
  });
  return { authentication };
}

function translateProvider(
  { jwks, ...block }: MCPAuthentication & { readonly issuer: string },
  context: FullSettingsContext,
  report: Report,
): JwtProvider | undefined {
  const keys = context.jwks.keys(jwks);
  if (typeof keys === "string") report("jwks", keys);
  // A claim that any issuer could fill would let the keys of one tenant of an issuer speak for another one.
  if (block.issuer === "") report("issuer", "is required: a token must name it, and clients are sent to it");
  // Translated in any case: a field that is never read is reported as unsupported (shared/unsupported-fields.ts).
  const translated = translateJwtProvider(block, typeof keys === "string" ? [] : keys);
  return typeof keys === "string" || block.issuer === "" ? undefined : translated;
}
