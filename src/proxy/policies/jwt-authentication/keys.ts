/**
 * The keys that tokens are verified with. A key is used only with the algorithms of its family, or with the one that it
 * names. Otherwise a public key could be used as an HMAC secret, or "none" pass for a signature (RFC 8725 §3.1).
 */
import { createPublicKey, type KeyObject } from "node:crypto";

import type { JwtKey, JwtProvider } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError, messageOf } from "../../../lib/errors.ts";
import type { PolicyDeps } from "../policy.ts";

export interface TrustedKey {
  readonly key: KeyObject;
  readonly algorithms: string[];
}

export interface TrustedProvider {
  readonly issuer: string;
  readonly audiences: string[];
  readonly requiredClaims: string[];
  readonly keys: ReadonlyMap<string, readonly TrustedKey[]>;
}

const MIN_RSA_BITS = 2048;
const FAMILIES: Readonly<Record<string, readonly string[]>> = {
  rsa: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  prime256v1: ["ES256"],
  secp384r1: ["ES384"],
  ed25519: ["EdDSA", "Ed25519"],
};

/** Omits a key that cannot be used, with a warning: only the tokens of that key are refused. */
export function compileProvider(
  { issuer, audiences, requiredClaims, keys }: JwtProvider,
  { log, owner }: Pick<PolicyDeps, "log" | "owner">,
): TrustedProvider {
  const byId = new Map<string, TrustedKey[]>();
  for (const key of keys) {
    try {
      byId.set(key.id, [...(byId.get(key.id) ?? []), compileKey(key)]);
    } catch (error) {
      log.warn("a key for tokens is left out", { owner, issuer, kid: key.id, reason: messageOf(error) });
    }
  }
  return { issuer, audiences: [...audiences], requiredClaims: [...requiredClaims], keys: byId };
}

function compileKey({ jwkJson, algorithm }: JwtKey): TrustedKey {
  // createPublicKey validates the members of the JWK and ignores those that do not belong to a public key.
  const key = createPublicKey({ key: JSON.parse(jwkJson) as Record<string, unknown>, format: "jwk" });
  const { modulusLength = MIN_RSA_BITS, namedCurve } = key.asymmetricKeyDetails ?? {};
  if (modulusLength < MIN_RSA_BITS) throw new ConfigError(`an RSA key needs ${MIN_RSA_BITS} bits or more`);
  const family = FAMILIES[namedCurve ?? key.asymmetricKeyType ?? ""];
  if (family === undefined) throw new ConfigError("only RSA, P-256, P-384 and Ed25519 keys are used");
  if (algorithm === "" || (family === FAMILIES["ed25519"] && family.includes(algorithm)))
    return { key, algorithms: [...family] };
  if (!family.includes(algorithm)) throw new ConfigError(`the key cannot be used with ${algorithm}`);
  return { key, algorithms: [algorithm] };
}
