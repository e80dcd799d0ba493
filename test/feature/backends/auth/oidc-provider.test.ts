/** `oauthTokenExchange` and `crossAppAccess` before a server that somebody else wrote, by each method of a client. */
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { call, type Call } from "../../../support/clients/http.ts";
import { createIssuer } from "../../../support/fixtures/tokens.ts";
import { INLINE_AUTH, secret, seen, serveAuth } from "../../../support/gateway/backend-auth.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { ASSERTED_AUDIENCE, JWT_ALGORITHMS, startTokenJudge } from "../../../support/servers/token-judge.ts";

const API = "https://api.test";
/** Has each kind of character that the encoding of the Basic scheme changes. */
const SECRET = "s3cret +&%:=/ of the gateway, long enough";
const RSA = generateKeyPairSync("rsa", { modulusLength: 2048 });
/** Keys by the beginning or the whole of the algorithm's name. */
const KEYS: Readonly<Record<string, { readonly publicKey: KeyObject; readonly privateKey: KeyObject }>> = {
  RS: RSA,
  PS: RSA,
  ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }),
  ES384: generateKeyPairSync("ec", { namedCurve: "P-384" }),
};
const CLIENT = secret("client", {
  clientSecret: SECRET,
  other: "another secret",
  ...Object.fromEntries(
    Object.entries(KEYS).map(([entry, { privateKey }]) => [
      entry,
      privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    ]),
  ),
});

interface Method {
  readonly name: string;
  /** Members of the registration. */
  readonly registered: object;
  /** Further members of `clientAuth`. @param issuer of the server */
  auth(issuer: string): string;
}

function bySignature(alg: (typeof JWT_ALGORITHMS)[number]): Method {
  const entry = alg.startsWith("ES") ? alg : alg.slice(0, 2);
  const jwk = { ...KEYS[entry]?.publicKey.export({ format: "jwk" }), kid: "own", alg, use: "sig" };
  return {
    name: alg,
    registered: {
      token_endpoint_auth_method: "private_key_jwt",
      token_endpoint_auth_signing_alg: alg,
      jwks: { keys: [jwk] },
    },
    auth: (issuer) =>
      `method: PrivateKeyJwt, privateKeyJwt: {signingKeyRef: {name: client, key: ${entry}}, alg: ${alg}, kid: own, assertionAudience: "${issuer}"}`,
  };
}

const METHODS: readonly Method[] = [
  {
    name: "basic",
    registered: { client_secret: SECRET, token_endpoint_auth_method: "client_secret_basic" },
    auth: () => "secretRef: {name: client}",
  },
  {
    name: "post",
    registered: { client_secret: SECRET, token_endpoint_auth_method: "client_secret_post" },
    auth: () => "method: ClientSecretPost, secretRef: {name: client}",
  },
  ...JWT_ALGORITHMS.map(bySignature),
];

/** A colon would end the name in the Basic scheme, were it not encoded. */
const idOf = ({ name }: Method): string => `gate:${name}`;
const clients = METHODS.map((method) => ({ client_id: idOf(method), ...method.registered }));
const bearer = (token: string): Call => ({ headers: { authorization: `Bearer ${token}` } });
const tokenOf = (headers: Readonly<Record<string, string | undefined>>): string =>
  headers["authorization"]?.slice("Bearer ".length) ?? "";

prove([], "a provider of OpenID Connect exchanges tokens for each kind of client", async (context) => {
  const issuer = await createIssuer("https://issuer.test");
  const judge = await startTokenJudge(context, { clients, trusts: [issuer.jwk] });
  const subject = await judge.subject();
  for (const method of METHODS) {
    const client = `clientAuth: {clientId: "${idOf(method)}", ${method.auth(judge.issuer)}}`;
    const spec = `url: "${judge.issuer}/token", ${client}`;
    const more = `audiences: ["${API}"], scopes: [read, write], resources: ["${API}/1", "${API}/2"]`;
    const exchanged = await serveAuth(context, INLINE_AUTH, `{oauthTokenExchange: {${spec}, ${more}}}`, CLIENT);
    const { headers } = await seen(exchanged, "/", bearer(subject));
    const { aud, client_id: by, scope, acts_for: user, resource } = await judge.claims(tokenOf(headers));
    assert.deepEqual([aud, by, scope, user], [API, idOf(method), "read write", "user"], method.name);
    assert.deepEqual(resource, [`${API}/1`, `${API}/2`]);
    // The server takes each assertion of the client once, so every call needs a new one.
    const next = await seen(exchanged, "/", bearer(await judge.subject()));
    assert.notEqual(tokenOf(next.headers), tokenOf(headers));
    assert.equal((await call(exchanged.gateway.url(), bearer("unknown"))).status, 400);

    const asserted = await serveAuth(
      context,
      INLINE_AUTH,
      `{oauthTokenExchange: {${spec}, grantType: JwtBearer}}`,
      CLIENT,
    );
    const assertion = await issuer.token({ aud: judge.issuer });
    const claims = await judge.claims(tokenOf((await seen(asserted, "/", bearer(assertion))).headers));
    assert.deepEqual([claims.aud, claims["acts_for"]], [ASSERTED_AUDIENCE, "ann"], method.name);
    const foreign = await issuer.token({ aud: "https://other.test" });
    assert.equal((await call(asserted.gateway.url(), bearer(foreign))).status, 400);
  }
});

prove([], "a client that the provider does not take lets no request out", async (context) => {
  const judge = await startTokenJudge(context, { clients });
  const subject = await judge.subject();
  const authOf = (name: string, issuer: string): string | undefined =>
    METHODS.find((method) => method.name === name)?.auth(issuer);
  for (const [name, auth] of [
    ["basic", "secretRef: {name: client, key: other}"],
    ["post", "method: ClientSecretPost, secretRef: {name: client, key: other}"],
    ["RS256", "secretRef: {name: client}"],
    ["RS256", authOf("RS256", "https://other.test")],
    ["RS256", authOf("ES256", judge.issuer)],
  ]) {
    const client = `clientAuth: {clientId: "gate:${name}", ${auth}}`;
    const spec = `url: "${judge.issuer}/token", audiences: ["${API}"], ${client}`;
    const { gateway, echo } = await serveAuth(context, INLINE_AUTH, `{oauthTokenExchange: {${spec}}}`, CLIENT);
    const { status, body } = await call(gateway.url(), bearer(subject));
    assert.deepEqual([status, body, echo.seen.length], [500, "backend authentication failed", 0], auth);
  }
});

prove(
  [],
  "one provider vouches for the client, and another gives the token, for each kind of client",
  async (context) => {
    const vouching = await startTokenJudge(context, { clients });
    const judge = await startTokenJudge(context, { clients, trusts: [vouching.key] });
    const subject = await vouching.subject();
    for (const [at, method] of METHODS.entries()) {
      // Each end has a client of its own.
      const other = METHODS[(at + 1) % METHODS.length] ?? method;
      const end = (server: typeof judge, client: Method): string =>
        `{url: "${server.issuer}/token", clientAuth: {clientId: "${idOf(client)}", ${client.auth(server.issuer)}}}`;
      const spec = `identityProvider: ${end(vouching, method)}, resourceAuthorizationServer: ${end(judge, other)}, audience: "${judge.issuer}", scopes: [a, b], accessTokenScopes: [a], subjectToken: {tokenType: AccessToken}`;
      const served = await serveAuth(context, INLINE_AUTH, `{crossAppAccess: {${spec}}}`, CLIENT);
      const {
        aud,
        client_id: by,
        scope,
        acts_for: user,
      } = await judge.claims(tokenOf((await seen(served, "/", bearer(subject))).headers));
      assert.deepEqual([aud, by, scope, user], [ASSERTED_AUDIENCE, idOf(other), "a", "user"], method.name);
      assert.equal((await call(served.gateway.url(), bearer("unknown"))).status, 400);
    }
  },
);
