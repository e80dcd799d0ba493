/** Translates `auth.jwtSign`: the key, the claims and the lifetime of tokens that the data plane signs itself. */
import { create } from "@bufbuild/protobuf";
import { SignedTokenSchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { timerMs } from "../../../../lib/time/duration.ts";
import { translateLocation } from "../../../policies/shared/authentication.ts";
import { unresolved, type TranslateKind } from "./auth-kind.ts";
import { readSigningKey } from "./signing-key.ts";

/** The data plane sets the first two; the third one would make tokens of a later time. */
const RESERVED = ["iat", "exp", "nbf"];
const DEFAULT_TTL = "300s";

export const translateJwtSign: TranslateKind<"jwtSign"> = (spec, _block, { secrets, report }) => {
  const { signingKeyRef, alg, kid, claims = {}, ttl = DEFAULT_TTL, location } = spec;
  const key = readSigningKey(signingKeyRef, { alg, kid }, secrets);
  if ("error" in key) return unresolved(report, "signingKeyRef", key.error);
  const reserved = RESERVED.find((name) => name in claims);
  if (reserved !== undefined)
    return unresolved(report, `claims.${reserved}`, "the proxy sets the times of tokens itself");
  const sorted = Object.entries(claims).sort(([a], [b]) => (a < b ? -1 : 1));
  const token = create(SignedTokenSchema, {
    key,
    claimsJson: sorted.length === 0 ? "" : JSON.stringify(Object.fromEntries(sorted)),
    ttlSeconds: Math.ceil(timerMs(ttl) / 1000),
  });
  if (location !== undefined) token.location = translateLocation(location);
  return { case: "jwtSign", value: token };
};
