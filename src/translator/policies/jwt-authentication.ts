/**
 * Translates `traffic.jwtAuthentication` (RFC 7519): issuers and their public keys. A provider whose keys are not
 * available is reported and left out. Without any provider the unit is still sent, so that every token is rejected.
 */
import { create } from "@bufbuild/protobuf";
import type { JwtProvider as ApiProvider } from "../../../generated/types/traffic-authentication.ts";
import { JwtAuthenticationSchema, type JwtProvider } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseJwks } from "./jwks/jwks.ts";
import { AUTHENTICATION_MODES, credentialLocation } from "./shared/authentication.ts";
import { translateJwtProvider } from "./shared/jwt-provider.ts";
import type { UnitContext, UnitTranslator } from "./shared/unit.ts";

const FIELD = "jwtAuthentication";

export const jwtAuthentication: UnitTranslator = {
  translate({ jwtAuthentication: block }, context) {
    if (block === undefined) return undefined;
    const value = create(JwtAuthenticationSchema, {
      mode: AUTHENTICATION_MODES[block.mode ?? "Strict"],
      providers: block.providers.flatMap((provider, at) => {
        return translateProvider(provider, `${FIELD}.providers[${at}]`, context) ?? [];
      }),
      location: credentialLocation(block.location, `${FIELD}.location`, "Bearer", context),
      preserveToken: block.preserveToken ?? false,
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
