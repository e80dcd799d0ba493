/** An issuer of tokens for tests: real keys, real signatures, and the key set that it would publish. */
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK, type JWTPayload } from "jose";

export interface Issuer {
  readonly name: string;
  /** What it publishes. */
  readonly jwk: JWK;
  readonly privateKey: CryptoKey;
  /** A token with `iss`, `sub` and an hour to live, unless `claims` say otherwise; undefined takes a claim away. */
  token(claims?: JWTPayload, header?: Readonly<Record<string, unknown>>): Promise<string>;
}

export async function createIssuer(name: string, options: { alg?: string; kid?: string } = {}): Promise<Issuer> {
  const { alg = "ES256", kid = "key-1" } = options;
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid };
  return {
    name,
    jwk,
    privateKey,
    token: (claims = {}, header = {}) =>
      new SignJWT({ iss: name, sub: "ann", exp: nowSeconds() + 3600, ...claims })
        .setProtectedHeader({ alg, kid, ...header })
        .sign(privateKey),
  };
}

export function keySet(...keys: readonly JWK[]): string {
  return JSON.stringify({ keys });
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
