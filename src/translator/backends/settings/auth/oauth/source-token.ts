/** Translates where a token of the request is found and of which type it is, and how long tokens are kept. */
import { create } from "@bufbuild/protobuf";
import type { OAuthTokenCache } from "../../../../../../generated/types/backend-auth.ts";
import type { CredentialLocation as ApiLocation } from "../../../../../../generated/types/common.ts";
import {
  SourceTokenSchema,
  TokenCacheSettingsSchema,
  type SourceToken,
  type TokenCacheSettings,
} from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { timerMs } from "../../../../../lib/time/duration.ts";
import { translateLocation } from "../../../../policies/shared/authentication.ts";
import { phaseOfBackend } from "../../../../policies/shared/expression-phase.ts";
import { checkExpression } from "../../../../policies/shared/unit.ts";
import type { Report } from "../../../../shared/report.ts";

const PREFIX = "urn:ietf:params:oauth:token-type:";
const TYPES: Readonly<Record<string, string>> = {
  AccessToken: `${PREFIX}access_token`,
  Jwt: `${PREFIX}jwt`,
  IdToken: `${PREFIX}id_token`,
  IdJag: `${PREFIX}id-jag`,
};
const DEFAULT_ENTRIES = 8192;
const DEFAULT_TTL = "300s";

/** Returns the URI of a type of token; other URIs are sent as they are. */
export function tokenTypeUri(type: string): string {
  return TYPES[type] ?? type;
}

/** @param field path of the block below `auth` @param report takes paths relative to it */
export function translateSource(
  { source, tokenType }: { readonly source?: ApiLocation; readonly tokenType?: string },
  defaultType: string,
  field: string,
  report: Report,
): SourceToken {
  const token = create(SourceTokenSchema, { type: tokenTypeUri(tokenType ?? defaultType) });
  if (source === undefined) return token;
  checkExpression(
    source.expression,
    "source.expression",
    { report },
    phaseOfBackend(`auth.${field}.source.expression`),
  );
  token.source = translateLocation(source);
  return token;
}

export function translateCache(cache: OAuthTokenCache | undefined): TokenCacheSettings {
  const { maxEntries = DEFAULT_ENTRIES, defaultTtl = DEFAULT_TTL } = cache?.inMemory ?? {};
  return create(TokenCacheSettingsSchema, { maxEntries, defaultTtlMs: timerMs(defaultTtl) });
}
