/** `auth.jwtSign`: tokens that the gateway signs itself. */
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { decodeProtectedHeader, jwtVerify, type JWTPayload } from "jose";
import { call } from "../../../support/clients/http.ts";
import { ATTACHED_AUTH, AUTH_PLACES, secret, seen, serveAuth } from "../../../support/gateway/backend-auth.ts";
import { prove } from "../../../support/proofs/prove.ts";

const pem = { type: "pkcs8", format: "pem" } as const;
const RSA = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export(pem).toString();
const P256 = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export(pem).toString();
const P384 = generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey.export(pem).toString();
const KEY = "signingKeyRef: {name: key}";

async function verified(authorization: string | undefined, key: string, alg: string): Promise<JWTPayload> {
  const token = authorization?.replace(/^Bearer /, "") ?? "";
  const result = await jwtVerify(token, createPublicKey(key), { algorithms: [alg] }).catch(() => undefined);
  assert.ok(result, "a token that verifies");
  return result.payload;
}

for (const place of AUTH_PLACES) {
  const field = (name: string): string => `${place.prefix}.jwtSign.${name}`;

  prove(
    [field("signingKeyRef.name"), field("claims"), field("ttl"), field("kid")],
    `a token with the claims is signed, and those of one second are the same (${place.kind})`,
    async (context) => {
      const auth = `{jwtSign: {${KEY}, claims: {iss: gateway, aud: [a, b], x: {deep: null}}, ttl: 1m500ms, kid: k1}}`;
      const served = await serveAuth(context, place, auth, secret("key", { signingKey: RSA }));
      const requests = await Promise.all(
        Array.from({ length: 50 }, () => seen(served, "/", { headers: { authorization: "Bearer of-the-client" } })),
      );
      const tokens = new Set(requests.map(({ headers }) => headers["authorization"]));
      assert.ok(tokens.size < 25, `${tokens.size} tokens in a moment`);
      const [token] = tokens;
      const { iat = 0, exp = 0, ...claims } = await verified(token, RSA, "RS256");
      assert.deepEqual(claims, { iss: "gateway", aud: ["a", "b"], x: { deep: null } });
      assert.equal(exp - iat, 10 + 61);
      assert.ok(Math.abs(Date.now() / 1000 - 10 - iat) < 60);
      assert.deepEqual(decodeProtectedHeader(token?.slice(7) ?? ""), { alg: "RS256", typ: "JWT", kid: "k1" });
    },
  );

  prove(field("alg"), `the algorithm is the one that the block names (${place.kind})`, async (context) => {
    for (const [alg, key] of [
      ["PS256", RSA],
      ["ES384", P384],
    ] as const) {
      const served = await serveAuth(
        context,
        place,
        `{jwtSign: {${KEY}, alg: ${alg}}}`,
        secret("key", { signingKey: key }),
      );
      const { exp = 0, iat = 0 } = await verified((await seen(served)).headers["authorization"], key, alg);
      assert.equal(exp - iat, 310, "five minutes where the block says nothing");
    }
  });

  prove(
    [field("location.header.name"), field("location.header.prefix")],
    `the token is written where the block says (${place.kind})`,
    async (context) => {
      const auth = `{jwtSign: {${KEY}, alg: ES256, location: {header: {name: x-token, prefix: "T "}}}}`;
      const served = await serveAuth(context, place, auth, secret("key", { signingKey: P256 }));
      const { headers } = await seen(served);
      assert.match(headers["x-token"] ?? "", /^T /);
      assert.ok(await verified(headers["x-token"]?.replace(/^T /, ""), P256, "ES256"));
      assert.equal(headers["authorization"], undefined);
    },
  );

  prove(
    [field("location.queryParameter.name"), field("location.cookie.name")],
    `the token is written into the query or a cookie where the block says (${place.kind})`,
    async (context) => {
      const at = (location: string): string => `{jwtSign: {${KEY}, alg: ES256, location: {${location}: {name: t}}}}`;
      const key = secret("key", { signingKey: P256 });
      const { url } = await seen(await serveAuth(context, place, at("queryParameter"), key), "/p?t=of-the-client");
      assert.ok(await verified(new URL(url, "http://x").searchParams.get("t") ?? "", P256, "ES256"));
      const { headers } = await seen(await serveAuth(context, place, at("cookie"), key));
      assert.ok(await verified(headers["cookie"]?.replace(/^t=/, ""), P256, "ES256"));
    },
  );
}

const encrypted = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ ...pem, cipher: "aes-256-cbc", passphrase: "secret-passphrase" })
  .toString();
const weak = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export(pem).toString();

const BROKEN: readonly (readonly [string, string | undefined, string, RegExp])[] = [
  ["no Secret", undefined, "", /Secret default\/key not found/],
  ["a text that is no key", "not a key", "", /not an unencrypted private key/],
  ["a key with a passphrase", encrypted, ", alg: ES256", /not an unencrypted private key/],
  ["a key of another type", P256, "", /cannot sign with RS256/],
  ["a key of another curve", P384, ", alg: ES256", /cannot sign with ES256/],
  ["a key that is too short", weak, "", /cannot sign with RS256/],
  ["claims that are the proxy's", RSA, ", claims: {exp: 1}", /the proxy sets the times/],
];

for (const [name, key, more, reason] of BROKEN)
  prove([], `${name} lets no request out, and status says why`, async (context) => {
    for (const place of AUTH_PLACES) {
      const secrets = key === undefined ? [] : [secret("key", { signingKey: key })];
      const { gateway, echo } = await serveAuth(context, place, `{jwtSign: {${KEY}${more}}}`, ...secrets);
      const { status, body } = await call(gateway.url());
      assert.deepEqual([status, place !== ATTACHED_AUTH || body === "backend authentication failed"], [500, true]);
      assert.equal(echo.seen.length, 0);
      assert.match(
        gateway.translator
          .diagnostics()
          .map(({ message }) => message)
          .join(),
        reason,
      );
    }
  });
