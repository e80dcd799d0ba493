/** `mcp.authentication`: tokens, metadata, registration and token requests of an MCP backend, through real sockets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { askMcp } from "../../support/clients/mcp.ts";
import { call, parseJson, type Answer } from "../../support/clients/http.ts";
import { routePolicy, staticBackend } from "../../support/gateway/gateway.ts";
import { startMcpGateway, type McpGateway } from "../../support/gateway/mcp.ts";
import { BLOCK_PLACES, type BlockPlace } from "../../support/proofs/block-places.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startOAuthIssuer, type OAuthIssuer, type Product } from "../../support/servers/oauth-issuer.ts";
import { createIssuer, keySet } from "../../support/fixtures/tokens.ts";

const RESOURCE = "/.well-known/oauth-protected-resource/mcp";
const SERVER = "/.well-known/oauth-authorization-server/mcp";
const REALM = "/realms/one";

/** Claims of a token; undefined removes one. */
type Claims = Readonly<Record<string, unknown>>;

interface Guarded extends McpGateway {
  readonly issuer: OAuthIssuer;
  /** Status of a request with a token of these claims. */
  statusOf(claims?: Claims): Promise<number>;
  get(path: string): Promise<Answer>;
}

interface Setting {
  /** Further members of the block, in flow YAML. */
  readonly block?: string;
  readonly product?: Product;
  /** Flow YAML of `jwks`. */
  readonly jwks?: (issuer: OAuthIssuer) => string;
  readonly more?: (issuer: OAuthIssuer) => readonly string[];
}

/** Starts an issuer, and a gateway that takes its tokens; the issuer's keys may not have been fetched yet. */
async function start(
  context: ProofContext,
  place: BlockPlace,
  { block = "", product = "standard", jwks = keysByUrl, more = () => [] }: Setting = {},
): Promise<Guarded> {
  const issuer = await startOAuthIssuer(context, product, "s3cr3t");
  const members = `authentication: {issuer: "${issuer.issuer}", jwks: ${jwks(issuer)}, ${block}}`;
  const mcp = await startMcpGateway(context, place, members, ...more(issuer));
  return {
    ...mcp,
    issuer,
    async statusOf(claims) {
      const authorization = `Bearer ${await issuer.signer.token(claims)}`;
      return (await askMcp(mcp.url, "tools/list", {}, { authorization })).status;
    },
    get: (path) => call(mcp.gateway.url() + path),
  };
}

function keysByUrl({ issuer }: OAuthIssuer): string {
  return `{url: "${issuer}/keys"}`;
}

/** Waits until the keys of the issuer have been fetched. */
async function untilKeys({ gateway, statusOf }: Guarded, claims?: Claims): Promise<void> {
  await gateway.until(async () => (await statusOf(claims)) === 200);
}

/** Waits until the backend is served: one with an error in its own settings is not, until its keys are there. */
async function untilServed({ gateway, get }: Guarded): Promise<void> {
  await gateway.until(async () => (await get(RESOURCE)).status === 200);
}

function membersOf(answer: Answer): Readonly<Record<string, unknown>> {
  assert.equal(answer.status, 200, answer.body);
  assert.equal(answer.headers["access-control-allow-origin"], "*");
  return parseJson(answer.body) as Readonly<Record<string, unknown>>;
}

const SECRET = `
apiVersion: v1
kind: Secret
metadata: {name: client}
stringData: {clientSecret: s3cr3t, other: t0p}
`;

function secretIn(body: string | undefined): string | null {
  return new URLSearchParams(body ?? "").get("client_secret");
}

for (const place of BLOCK_PLACES) {
  const field = (name: string): string => place.field(`mcp.authentication.${name}`);
  const on = `(${place.kind})`;

  prove(
    [field("issuer"), field("jwks.url")],
    `a token of the issuer passes, and other callers are told where to get one ${on}`,
    async (context) => {
      const guarded = await start(context, place);
      await untilKeys(guarded);
      const { url, server, gateway, issuer, get } = guarded;
      assert.ok(server.calls.every(({ headers }) => headers["authorization"] === undefined));
      const missing = await call(url, { method: "POST" });
      assert.equal(missing.status, 401);
      assert.equal(missing.headers["www-authenticate"], `Bearer resource_metadata="${gateway.url()}${RESOURCE}"`);
      assert.equal(missing.body, '{"error":"unauthorized","error_description":"JWT token required"}');
      assert.deepEqual(membersOf(await get(RESOURCE))["authorization_servers"], [issuer.issuer]);
      const stranger = await (await createIssuer(issuer.issuer)).token();
      const refused = await call(url, { method: "POST", headers: { authorization: `Bearer ${stranger}` } });
      assert.match(String(refused.headers["www-authenticate"]), /^Bearer error="invalid_token", resource_metadata=/);
      assert.equal(await guarded.statusOf({ iss: "https://other.test" }), 401);
    },
  );

  prove(field("audiences[]"), `a token must be for one of the audiences ${on}`, async (context) => {
    const guarded = await start(context, place, { block: "audiences: [tools]" });
    await untilKeys(guarded, { aud: ["x", "tools"] });
    assert.equal(await guarded.statusOf({ aud: "other" }), 401);
    assert.equal(await guarded.statusOf(), 401);
  });

  prove(
    field("validation.requiredClaims[]"),
    `a token must hold the claims that are required ${on}`,
    async (context) => {
      const guarded = await start(context, place, { block: "validation: {requiredClaims: [sub]}" });
      await untilKeys(guarded, { exp: undefined });
      assert.equal(await guarded.statusOf({ sub: undefined }), 401);
    },
  );

  prove(field("mode"), `Optional lets callers without a token in, and none with a bad one ${on}`, async (context) => {
    const guarded = await start(context, place, { block: "mode: Optional" });
    await untilKeys(guarded);
    assert.equal((await askMcp(guarded.url, "tools/list")).status, 200);
    assert.equal(await guarded.statusOf({ iss: "https://other.test" }), 401);
  });

  prove(field("resourceMetadata"), `the operator adds members to the metadata ${on}`, async (context) => {
    const guarded = await start(context, place, { block: "resourceMetadata: {scopesSupported: [read]}" });
    await untilServed(guarded);
    assert.deepEqual(membersOf(await guarded.get(RESOURCE))["scopes_supported"], ["read"]);
  });

  prove(
    [field("provider"), field("clientId")],
    `metadata is adapted to the product, and clients are given ${on}`,
    async (context) => {
      const block = "provider: idpB, clientId: desk";
      const guarded = await start(context, place, { block, product: "keycloak" });
      await untilServed(guarded);
      const base = guarded.gateway.url();
      const metadata = membersOf(await guarded.get(SERVER));
      assert.equal(metadata["issuer"], `${base}/mcp`);
      assert.equal(metadata["registration_endpoint"], `${base}${SERVER}/client-registration`);
      const registered = await call(`${base}${SERVER}/client-registration`, { method: "POST", body: "{}" });
      assert.equal(registered.status, 201, registered.body);
      assert.equal((parseJson(registered.body) as { client_id?: string }).client_id, "desk");
    },
  );

  for (const [key, secret, fields] of [
    ["", "s3cr3t", ["clientSecretRef.name"]],
    [", key: other", "t0p", ["clientSecretRef.key"]],
  ] as const)
    prove(fields.map(field), `token requests of the operator's client get its secret${key} ${on}`, async (context) => {
      const block = `provider: idpA, clientId: desk, clientSecretRef: {name: client${key}}`;
      const guarded = await start(context, place, { block, product: "auth0", more: () => [SECRET] });
      await untilServed(guarded);
      const endpoint = `${guarded.gateway.url()}${SERVER}/token`;
      assert.equal(membersOf(await guarded.get(SERVER))["token_endpoint"], endpoint);
      const ask = async (form: string, headers: Readonly<Record<string, string>> = {}): Promise<string | undefined> => {
        const type = { "content-type": "application/x-www-form-urlencoded" };
        await call(endpoint, { method: "POST", headers: { ...type, ...headers }, body: form });
        return guarded.issuer.bodies.at(-1);
      };
      for (const grant of ["authorization_code", "refresh_token"])
        assert.equal(secretIn(await ask(`grant_type=${grant}&client_id=desk&code=a%26b`)), secret);
      assert.equal(new URLSearchParams(guarded.issuer.bodies[0]).get("code"), "a&b");
      // What does not prove the consent of a user passes as it is.
      for (const form of [
        "grant_type=client_credentials&client_id=desk",
        "grant_type=authorization_code&client_id=other",
        "grant_type=authorization_code",
        "grant_type=authorization_code&grant_type=client_credentials&client_id=desk",
        "grant_type=authorization_code&client_id=desk&client_id=other",
        "grant_type=authorization_code&client_id=desk&client_assertion=x",
      ])
        assert.equal(await ask(form), form);
      const form = "grant_type=authorization_code&client_id=desk";
      assert.equal(await ask(form, { authorization: "Basic eDp5" }), form);
      assert.equal(await ask(form, { "content-type": "application/json" }), form);
    });

  prove(
    [field("clientSecretRef.group"), field("clientSecretRef.kind")],
    `a Secret does not stand in for a credential of a kind that nobody knows ${on}`,
    async (context) => {
      const block = "clientId: desk, clientSecretRef: {name: client, group: vault.example, kind: Vault}";
      const { gateway } = await start(context, place, { block, more: () => [SECRET] });
      const problem = gateway.translator.diagnostics().find(({ path }) => path.endsWith("clientSecretRef"));
      assert.match(problem?.message ?? "", /unsupported credential kind Vault of group "vault.example"/);
    },
  );

  prove(
    [
      field("jwks.backendRef.group"),
      field("jwks.backendRef.kind"),
      field("jwks.backendRef.name"),
      field("jwks.jwksPath"),
    ],
    `keys are fetched from a path of a GwBackend ${on}`,
    async (context) => {
      const jwks = () => `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: keys}, jwksPath: ${REALM}/keys}`;
      const more = ({ port }: OAuthIssuer) => [staticBackend("keys", port)];
      await untilKeys(await start(context, place, { jwks, more }));
    },
  );

  prove(field("jwks.backendRef.namespace"), `keys may be in another namespace ${on}`, async (context) => {
    const ref = "{group: gwproxy.dev, kind: GwBackend, name: keys, namespace: idp}";
    const jwks = () => `{backendRef: ${ref}, jwksPath: ${REALM}/keys}`;
    const more = ({ port }: OAuthIssuer) => [
      staticBackend("keys", port).replace("{name: keys}", "{name: keys, namespace: idp}"),
    ];
    await untilKeys(await start(context, place, { jwks, more }));
  });

  prove(field("jwks.backendRef.port"), `keys are fetched from a Service port ${on}`, async (context) => {
    const jwks = () => `{backendRef: {name: keys, port: 80}, jwksPath: ${REALM}/keys}`;
    const more = ({ port }: OAuthIssuer) => [
      `
apiVersion: v1
kind: Service
metadata: {name: keys}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: keys-1, labels: {kubernetes.io/service-name: keys}}
addressType: IPv4
ports: [{name: http, port: ${port}}]
endpoints: [{addresses: [127.0.0.1]}]
`,
    ];
    await untilKeys(await start(context, place, { jwks, more }));
  });

  prove(field("jwks.cacheDuration"), `keys are fetched again after their time ${on}`, async (context) => {
    const jwks = ({ issuer }: OAuthIssuer) => `{url: "${issuer}/keys", cacheDuration: 1s}`;
    const guarded = await start(context, place, { jwks });
    await untilKeys(guarded);
    const next = await createIssuer(guarded.issuer.issuer, { kid: "key-2" });
    guarded.issuer.keys = keySet(next.jwk);
    const authorization = `Bearer ${await next.token()}`;
    await guarded.gateway.until(
      async () => (await askMcp(guarded.url, "tools/list", {}, { authorization })).status === 200,
    );
  });
}

const [IN_BACKEND, IN_POLICY] = BLOCK_PLACES;
assert.ok(IN_BACKEND !== undefined && IN_POLICY !== undefined);

test("Permissive lets everyone in", async (t) => {
  const guarded = await start(contextOf(t), IN_POLICY, { block: "mode: Permissive" });
  await untilKeys(guarded);
  assert.equal(await guarded.statusOf({ iss: "https://other.test" }), 200);
  assert.equal((await askMcp(guarded.url, "tools/list")).status, 200);
});

test("a token that a policy of the route has taken is missed, whatever the mode", async (t) => {
  const more = ({ issuer, signer }: OAuthIssuer): readonly string[] => {
    const provider = `{issuer: "${issuer}", jwks: {inline: '${keySet(signer.jwk)}'}}`;
    return [routePolicy("taker", "tools", `  traffic: {jwtAuthentication: {providers: [${provider}]}}`)];
  };
  const guarded = await start(contextOf(t), IN_BACKEND, { block: "mode: Optional", more });
  await guarded.gateway.until(async () => (await guarded.statusOf()) !== 500);
  assert.equal(await guarded.statusOf(), 401);
});

test("before the keys of the issuer have been fetched every token is refused", async (t) => {
  const guarded = await start(contextOf(t), IN_POLICY, { jwks: () => '{url: "http://127.0.0.1:1/keys"}' });
  assert.equal(await guarded.statusOf(), 401);
});
