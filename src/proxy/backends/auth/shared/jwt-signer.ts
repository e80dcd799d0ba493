/** Signs JSON Web Tokens (RFC 7515) off the event loop: an RSA signature takes most of a millisecond. */
import { constants, createPrivateKey, sign, type SignKeyObjectInput } from "node:crypto";
import type { SigningKey } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../../../exchange/errors.ts";

export interface JwtSigner {
  /** @param claims a JSON object @throws ProxyError credential_unavailable */
  sign(claims: string): Promise<string>;
}

/** @param header members besides `alg`, `typ` and `kid` @throws Error of the crypto library for a text that is no key */
export function createJwtSigner(
  { privateKeyPem, algorithm, id }: SigningKey,
  header: Readonly<Record<string, unknown>> = {},
): JwtSigner {
  const key: SignKeyObjectInput = { key: createPrivateKey(privateKeyPem) };
  // JWS takes the two halves of an ECDSA signature as they are (RFC 7518 §3.4), and a salt as long as the digest (§3.5).
  if (algorithm.startsWith("ES")) key.dsaEncoding = "ieee-p1363";
  if (algorithm.startsWith("PS")) {
    key.padding = constants.RSA_PKCS1_PSS_PADDING;
    key.saltLength = constants.RSA_PSS_SALTLEN_DIGEST;
  }
  const digest = `sha${algorithm.slice(2)}`;
  const named = id === "" ? {} : { kid: id };
  const first = encode(JSON.stringify({ alg: algorithm, typ: "JWT", ...named, ...header }));
  return {
    sign(claims) {
      const text = `${first}.${encode(claims)}`;
      return new Promise((resolve, reject) => {
        sign(digest, Buffer.from(text), key, (error, signature) => {
          if (error === null) resolve(`${text}.${signature.toString("base64url")}`);
          else reject(new ProxyError("credential_unavailable", { detail: "the key cannot sign", cause: error }));
        });
      });
    },
  };
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64url");
}
