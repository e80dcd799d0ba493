/** Keys, signed tokens and exchanged tokens of `auth` in MCP targets and models. */
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { decodeProtectedHeader, jwtVerify } from "jose";
import { createIssuer, keySet } from "../../../support/fixtures/tokens.ts";
import { assertBearer, placeRows, type AuthRow, type AuthScene } from "../../../support/gateway/auth-places.ts";
import { secret } from "../../../support/gateway/backend-auth.ts";
import { staticBackend } from "../../../support/gateway/gateway.ts";
import { prove } from "../../../support/proofs/prove.ts";
import type { Echoed } from "../../../support/servers/echo.ts";
import { startTokenServer, type TokenServer } from "../../../support/servers/token-endpoint.ts";

const TYPE = "urn:ietf:params:oauth:token-type:";
const P256 = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

const located =
  (location: string, check: AuthScene["check"]): AuthRow["arrange"] =>
  async () => ({
    auth: `{secretRef: {name: s, key: k}, location: ${location}}`,
    more: [secret("s", { Authorization: "other", k: "v1" })],
    check,
  });

const STATIC: readonly AuthRow[] = [
  {
    name: "a key of a Secret in a header",
    fields: ["secretRef.name", "secretRef.key", "location.header.name", "location.header.prefix"],
    arrange: located(`{header: {name: x-key, prefix: "K "}}`, ({ headers }) => assert.equal(headers["x-key"], "K v1")),
  },
  {
    name: "a key in a cookie",
    fields: ["location.cookie.name"],
    arrange: located("{cookie: {name: c}}", ({ headers }) => assert.equal(headers["cookie"], "c=v1")),
  },
  {
    name: "a key in the query",
    fields: ["location.queryParameter.name"],
    arrange: located("{queryParameter: {name: q}}", ({ url }) =>
      assert.equal(new URL(url, "http://x").searchParams.get("q"), "v1"),
    ),
  },
  {
    name: "further credentials",
    fields: [
      "credentials[].secretRef.name",
      "credentials[].secretRef.key",
      "credentials[].location.header.name",
      "credentials[].location.header.prefix",
      "credentials[].location.cookie.name",
      "credentials[].location.queryParameter.name",
    ],
    arrange: async () => {
      const at = (location: string): string => `{location: ${location}, secretRef: {name: s, key: k}}`;
      return {
        auth: `{credentials: [${at('{header: {name: x-more, prefix: "P "}}')}, ${at("{cookie: {name: c}}")}, ${at("{queryParameter: {name: q}}")}]}`,
        more: [secret("s", { Authorization: "other", k: "v1" })],
        check({ headers, url }) {
          assert.deepEqual([headers["x-more"], headers["cookie"]], ["P v1", "c=v1"]);
          assert.equal(new URL(url, "http://x").searchParams.get("q"), "v1");
        },
      };
    },
  },
  {
    name: "the verified token of the client",
    fields: ["passthrough"],
    arrange: async () => {
      const issuer = await createIssuer("https://issuer.test");
      const token = await issuer.token();
      const providers = `[{issuer: "${issuer.name}", jwks: {inline: '${keySet(issuer.jwk)}'}}]`;
      const target = "{group: gateway.networking.k8s.io, kind: Gateway, name: gw}";
      return {
        auth: "{passthrough: {}}",
        more: [
          `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: tokens}
spec: {targetRefs: [${target}], traffic: {jwtAuthentication: {providers: ${providers}}}}
`,
        ],
        headers: { authorization: `Bearer ${token}` },
        check: (request) => assertBearer(request, token),
      };
    },
  },
  {
    name: "a token that the gateway signs",
    isUnknownToModels: true,
    fields: ["signingKeyRef.name", "alg", "kid", "claims", "ttl", "location.header.name", "location.header.prefix"].map(
      (name) => `jwtSign.${name}`,
    ),
    arrange: async () => ({
      auth: `{jwtSign: {signingKeyRef: {name: key}, alg: ES256, kid: k1, claims: {iss: gw}, ttl: 60s, location: {header: {name: x-token, prefix: "T "}}}}`,
      more: [secret("key", { signingKey: P256 })],
      async check({ headers }) {
        const [prefix, token = ""] = headers["x-token"]?.split(" ") ?? [];
        const verified = await jwtVerify(token, createPublicKey(P256), { algorithms: ["ES256"] }).catch(
          () => undefined,
        );
        assert.ok(verified, "a token of ours");
        const { iat = 0, exp = 0, iss } = verified.payload;
        assert.deepEqual([prefix, iss, exp - iat, decodeProtectedHeader(token).kid], ["T", "gw", 70, "k1"]);
      },
    }),
  },
  ...(
    [
      ["a cookie", "cookie", ({ headers }) => headers["cookie"]?.replace("t=", "")],
      ["the query", "queryParameter", ({ url }) => new URL(url, "http://x").searchParams.get("t") ?? undefined],
    ] satisfies readonly (readonly [string, string, (request: Echoed) => string | undefined])[]
  ).map(([place, form, find]): AuthRow => ({
    name: `a token that the gateway signs, in ${place}`,
    isUnknownToModels: true,
    fields: [`jwtSign.location.${form}.name`],
    arrange: async () => ({
      auth: `{jwtSign: {signingKeyRef: {name: key}, alg: ES256, location: {${form}: {name: t}}}}`,
      more: [secret("key", { signingKey: P256 })],
      async check(request) {
        const verified = await jwtVerify(find(request) ?? "", createPublicKey(P256)).catch(() => undefined);
        assert.ok(verified, "a token of ours");
      },
    }),
  })),
];

const oauth = (...names: readonly string[]): string[] => names.map((name) => `oauthTokenExchange.${name}`);

/** A token of the client is exchanged at the server with the members of the block. */
const exchanges =
  (
    auth: (server: TokenServer) => string,
    check: (server: TokenServer, request: Echoed) => void | Promise<void>,
    more: (server: TokenServer) => readonly string[] = () => [],
  ): AuthRow["arrange"] =>
  async (context) => {
    const server = await startTokenServer(context);
    server.reply = ({ form }) =>
      form.get("requested_token_type")?.endsWith("id-jag") === true
        ? { members: { issued_token_type: `${TYPE}id-jag`, token_type: "N_A" } }
        : {};
    return {
      auth: auth(server),
      more: more(server),
      headers: { authorization: "Bearer of-the-client", "x-subject": "s", "x-actor": "a" },
      check: (request) => check(server, request),
    };
  };

const CLIENT_KEY = secret("client", { clientSecret: "first", other: "second", signingKey: P256 });

const EXCHANGES: readonly AuthRow[] = [
  {
    name: "a token for that of the client",
    fields: oauth(
      "url",
      "audiences[]",
      "resources[]",
      "scopes[]",
      "requestedTokenType",
      "additionalParams",
      "subjectToken.tokenType",
    ),
    arrange: exchanges(
      ({ url }) =>
        `{oauthTokenExchange: {url: "${url}/token", audiences: [a], resources: ["https://r.test"], scopes: [s1, s2], requestedTokenType: Jwt, additionalParams: {method: request.method}, subjectToken: {tokenType: IdToken}}}`,
      ({ calls }, request) => {
        assertBearer(request, "minted-1");
        const { grant_type: _grant, ...form } = Object.fromEntries(calls[0]?.form ?? []);
        assert.deepEqual(form, {
          subject_token: "of-the-client",
          subject_token_type: `${TYPE}id_token`,
          audience: "a",
          resource: "https://r.test",
          scope: "s1 s2",
          requested_token_type: `${TYPE}jwt`,
          method: "POST",
        });
      },
    ),
  },
  {
    name: "an assertion for a token, at a backend",
    fields: oauth("backendRef.name", "backendRef.group", "backendRef.kind", "path", "grantType"),
    arrange: exchanges(
      () =>
        "{oauthTokenExchange: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: issuer}, path: /own, grantType: JwtBearer}}",
      ({ calls }, request) => {
        assertBearer(request, "minted-1");
        assert.deepEqual([calls[0]?.path, calls[0]?.form.get("assertion")], ["/own", "of-the-client"]);
      },
      ({ port }) => [staticBackend("issuer", port)],
    ),
  },
  {
    name: "a token for a subject and an actor in headers of their own",
    fields: oauth(
      "subjectToken.source.header.name",
      "actorToken.source.header.name",
      "actorToken.tokenType",
      "location.header.name",
    ),
    arrange: exchanges(
      ({ url }) =>
        `{oauthTokenExchange: {url: "${url}", subjectToken: {source: {header: {name: x-subject}}}, actorToken: {source: {header: {name: x-actor}}, tokenType: "urn:own"}, location: {header: {name: x-token}}}}`,
      ({ calls }, { headers }) => {
        assert.equal(headers["x-token"], "minted-1");
        const { subject_token: subject, actor_token: actor, ...rest } = Object.fromEntries(calls[0]?.form ?? []);
        assert.deepEqual([subject, actor, rest["actor_token_type"]], ["s", "a", "urn:own"]);
      },
    ),
  },
  {
    name: "a token for a gateway with a secret",
    fields: oauth("clientAuth.clientId", "clientAuth.method", "clientAuth.secretRef.name", "clientAuth.secretRef.key"),
    arrange: exchanges(
      ({ url }) =>
        `{oauthTokenExchange: {url: "${url}", clientAuth: {clientId: me, method: ClientSecretPost, secretRef: {name: client, key: other}}}}`,
      ({ calls }) => {
        const form = calls[0]?.form;
        assert.deepEqual([form?.get("client_id"), form?.get("client_secret")], ["me", "second"]);
      },
      () => [CLIENT_KEY],
    ),
  },
  {
    name: "a token for a gateway that signs",
    fields: oauth(
      ...["signingKeyRef.name", "alg", "kid", "assertionAudience"].map((name) => `clientAuth.privateKeyJwt.${name}`),
    ),
    arrange: exchanges(
      ({ url }) =>
        `{oauthTokenExchange: {url: "${url}", clientAuth: {clientId: me, method: PrivateKeyJwt, privateKeyJwt: {signingKeyRef: {name: client}, alg: ES256, kid: k9, assertionAudience: "https://as.test"}}}}`,
      async ({ calls }) => {
        const assertion = calls[0]?.form.get("client_assertion") ?? "";
        const verified = await jwtVerify(assertion, createPublicKey(P256)).catch(() => undefined);
        assert.equal(verified?.payload.aud, "https://as.test");
        assert.equal(decodeProtectedHeader(assertion).kid, "k9");
      },
      () => [CLIENT_KEY],
    ),
  },
  {
    name: "a token of another application",
    isUnknownToModels: true,
    fields: [
      ...["identityProvider", "resourceAuthorizationServer"].flatMap((end) => [
        `${end}.url`,
        `${end}.clientAuth.clientId`,
        `${end}.clientAuth.secretRef.name`,
      ]),
      "audience",
      "resources[]",
      "scopes[]",
      "accessTokenScopes[]",
      "subjectToken.tokenType",
    ].map((name) => `crossAppAccess.${name}`),
    arrange: exchanges(
      ({ url }) => {
        const end = (name: string): string =>
          `{url: "${url}/${name}", clientAuth: {clientId: ${name}, secretRef: {name: client}}}`;
        return `{crossAppAccess: {identityProvider: ${end("idp")}, resourceAuthorizationServer: ${end("as")}, audience: a, resources: [r], scopes: [s1, s2], accessTokenScopes: [s1], subjectToken: {tokenType: Jwt}}}`;
      },
      ({ calls }, request) => {
        assertBearer(request, "minted-2");
        const credential = (name: string): string => `Basic ${Buffer.from(`${name}:first`).toString("base64")}`;
        assert.deepEqual(
          calls.map(({ path, headers }) => [path, headers["authorization"]]),
          [
            ["/idp", credential("idp")],
            ["/as", credential("as")],
          ],
        );
        const { audience, resource, scope, subject_token_type: type } = Object.fromEntries(calls[0]?.form ?? []);
        assert.deepEqual([audience, resource, scope, type], ["a", "r", "s1 s2", `${TYPE}jwt`]);
        assert.equal(calls[1]?.form.get("scope"), "s1");
      },
      () => [CLIENT_KEY],
    ),
  },
];

for (const { fields, title, run } of placeRows([...STATIC, ...EXCHANGES])) prove(fields, title, run);
