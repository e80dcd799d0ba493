/** A real Keycloak exchanges tokens for the gateway, which names itself by a secret or by an assertion that it signs. */
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { test } from "node:test";
import { decodeJwt, exportJWK } from "jose";
import { call } from "../support/clients/http.ts";
import { INLINE_AUTH, secret, seen, serveAuth } from "../support/gateway/backend-auth.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { startKeycloak } from "../testbed/keycloak.ts";

const SECRET = `${randomBytes(12).toString("base64url")} +&%:é`;
const PASSWORD = randomBytes(18).toString("base64url");
const TOKEN = "/realms/shop/protocol/openid-connect/token";

/** Puts the client of the name into `aud`. */
const audience = (name: string) => ({
  name: `to-${name}`,
  protocol: "openid-connect",
  protocolMapper: "oidc-audience-mapper",
  config: { "included.client.audience": name, "access.token.claim": "true" },
});

/** @param jwks of the client's own key */
function realm(jwks: string): object {
  const exchanging = {
    serviceAccountsEnabled: true,
    standardFlowEnabled: false,
    protocolMappers: [audience("orders")],
  };
  return {
    realm: "shop",
    enabled: true,
    sslRequired: "none",
    clients: [
      {
        clientId: "app",
        secret: SECRET,
        directAccessGrantsEnabled: true,
        protocolMappers: [audience("by secret:1"), audience("by-key")],
      },
      { clientId: "orders", secret: SECRET },
      {
        clientId: "by secret:1",
        secret: SECRET,
        ...exchanging,
        attributes: { "standard.token.exchange.enabled": "true" },
      },
      {
        clientId: "by-key",
        clientAuthenticatorType: "client-jwt",
        ...exchanging,
        attributes: {
          "standard.token.exchange.enabled": "true",
          "use.jwks.string": "true",
          "jwks.string": jwks,
          "token.endpoint.auth.signing.alg": "ES256",
        },
      },
    ],
    users: [
      {
        username: "alice",
        enabled: true,
        email: "alice@shop.test",
        emailVerified: true,
        firstName: "Alice",
        lastName: "Test",
        credentials: [{ type: "password", value: PASSWORD, temporary: false }],
      },
    ],
  };
}

test("the token of a user is exchanged for one of another audience, by each kind of client", async (t) => {
  const context = contextOf(t);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const signingKey = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const jwk = { ...(await exportJWK(createPublicKey(signingKey))), kid: "k1", use: "sig", alg: "ES256" };
  const keycloak = await startKeycloak(context);
  await keycloak.admin("POST", "", realm(JSON.stringify({ keys: [jwk] })));
  const user = { username: "alice", password: PASSWORD };
  const token = await keycloak.token("shop", { client_id: "app", client_secret: SECRET, ...user });
  const assertion = `{signingKeyRef: {name: client}, alg: ES256, kid: k1, assertionAudience: "${keycloak.url}/realms/shop"}`;
  const clients: Readonly<Record<string, string>> = {
    basic: `{clientId: "by secret:1", secretRef: {name: client}}`,
    post: `{clientId: "by secret:1", method: ClientSecretPost, secretRef: {name: client}}`,
    assertion: `{clientId: by-key, method: PrivateKeyJwt, privateKeyJwt: ${assertion}}`,
  };
  for (const [name, clientAuth] of Object.entries(clients)) {
    const spec = `url: "${keycloak.url}${TOKEN}", audiences: [orders], requestedTokenType: AccessToken, clientAuth: ${clientAuth}`;
    const secrets = secret("client", { clientSecret: SECRET, signingKey });
    const served = await serveAuth(context, INLINE_AUTH, `{oauthTokenExchange: {${spec}}}`, secrets);
    const { headers } = await seen(served, "/", { headers: { authorization: `Bearer ${token}` } });
    const exchanged = headers["authorization"]?.slice("Bearer ".length) ?? "";
    assert.notEqual(exchanged, token, name);
    const { aud, sub, azp } = decodeJwt(exchanged);
    assert.deepEqual([aud, sub], ["orders", decodeJwt(token).sub], name);
    assert.equal(azp, name === "assertion" ? "by-key" : "by secret:1");
    const forged = { headers: { authorization: `Bearer ${token.slice(0, -4)}AAAA` } };
    assert.equal(
      (await call(served.gateway.url(), forged)).status,
      400,
      `${name}: a token that Keycloak does not take`,
    );
    const { credentials } = await served.gateway.proxy.state();
    assert.equal(credentials[0]?.kind, "oauthTokenExchange");
  }
  const wrong = secret("client", { clientSecret: "wrong" });
  const spec = `url: "${keycloak.url}${TOKEN}", audiences: [orders], clientAuth: ${clients["basic"]}`;
  const served = await serveAuth(context, INLINE_AUTH, `{oauthTokenExchange: {${spec}}}`, wrong);
  const refused = await call(served.gateway.url(), { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual([refused.status, refused.body], [500, "backend authentication failed"]);
});
