/** traffic.jwtAuthentication.mcp: OAuth metadata, registration and challenges, through real sockets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startOAuthIssuer, type OAuthIssuer, type Product } from "../../support/servers/oauth-issuer.ts";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call, parseJson, type Answer, type Call } from "../../support/clients/http.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { keySet } from "../../support/fixtures/tokens.ts";

const MCP = "GwPolicy spec.traffic.jwtAuthentication.mcp";
const RESOURCE = "/.well-known/oauth-protected-resource";
const SERVER = "/.well-known/oauth-authorization-server";

interface Setting {
  /** Members of the block `mcp`, as YAML flow. */
  readonly mcp?: string;
  readonly product?: Product;
  readonly audiences?: string;
  /** Further manifests. */
  readonly more?: readonly string[];
}

interface Guarded {
  readonly gateway: TestGateway;
  readonly issuer: OAuthIssuer;
  ask(path: string, request?: Call): Promise<Answer>;
}

/** Starts an issuer, and a gateway whose route /mcp takes its tokens. */
async function guard(
  context: ProofContext,
  { mcp = "", product = "standard", audiences = "", more = [] }: Setting = {},
): Promise<Guarded> {
  const issuer = await startOAuthIssuer(context, product);
  const echo = await startEcho(context);
  const jwks = `jwks: {inline: '${keySet(issuer.signer.jwk)}'}`;
  const block = `{providers: [{issuer: "${issuer.issuer}", ${audiences} ${jwks}}], mcp: {${mcp}}}`;
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      staticBackend("tools", echo.port),
      route("tools", "tools", "/mcp"),
      routePolicy("tokens", "tools", `  traffic: {jwtAuthentication: ${block}}`),
      ...more,
    ),
  );
  return { gateway, issuer, ask: (path, request) => call(gateway.url() + path, request) };
}

function membersOf(answer: Answer): Readonly<Record<string, unknown>> {
  assert.equal(answer.status, 200, answer.body);
  assert.equal(answer.headers["content-type"], "application/json");
  assert.equal(answer.headers["access-control-allow-origin"], "*");
  return parseJson(answer.body) as Readonly<Record<string, unknown>>;
}

prove(
  `${MCP}.resourceMetadata`,
  "the metadata of a resource names its issuer and what the operator adds, in snake_case",
  async (context) => {
    const mcp = "resourceMetadata: {scopesSupported: [read, write], bearerMethodsSupported: [header], mcpVersion: 1}";
    const { ask, gateway, issuer } = await guard(context, { mcp });
    const origin = gateway.url();
    const expected = {
      authorization_servers: [issuer.issuer],
      mcp_protocol_version: "2025-06-18",
      resource_type: "mcp-server",
      bearer_methods_supported: ["header"],
      mcp_version: 1,
      scopes_supported: ["read", "write"],
    };
    assert.deepEqual(membersOf(await ask(`${RESOURCE}/mcp`)), { resource: `${origin}/mcp`, ...expected });
    assert.deepEqual(membersOf(await ask(`${RESOURCE}/mcp/deep?team=a`)), {
      resource: `${origin}/mcp/deep?team=a`,
      ...expected,
    });
    const challenge = `Bearer resource_metadata="${origin}${RESOURCE}/mcp", scope="read write"`;
    assert.equal((await ask("/mcp")).headers["www-authenticate"], challenge);
  },
);

prove(
  `${MCP}.resourceMetadata`,
  "the resource that the operator names replaces the computed one, and challenges lead to its origin",
  async (context) => {
    const mcp = 'resourceMetadata: {resource: "https://tools.example/mcp"}';
    const { ask } = await guard(context, { mcp });
    assert.equal(membersOf(await ask(`${RESOURCE}/mcp`))["resource"], "https://tools.example/mcp");
    const challenge = `Bearer resource_metadata="https://tools.example${RESOURCE}/mcp/x%22"`;
    assert.equal((await ask('/mcp/x"')).headers["www-authenticate"], challenge);
  },
);

test("a missing and a bad token are challenged, and a token of the issuer passes", async (t) => {
  const { ask, gateway, issuer } = await guard(contextOf(t));
  const missing = await ask("/mcp/a?b=c");
  const url = `${gateway.url()}${RESOURCE}/mcp/a`;
  assert.equal(missing.status, 401);
  assert.equal(missing.headers["www-authenticate"], `Bearer resource_metadata="${url}"`);
  assert.equal(missing.headers["content-type"], "application/json");
  assert.equal(missing.body, '{"error":"unauthorized","error_description":"JWT token required"}');
  const bad = await ask("/mcp/a", { headers: { authorization: "Bearer nonsense" } });
  assert.equal(bad.status, 401);
  assert.equal(bad.headers["www-authenticate"], `Bearer error="invalid_token", resource_metadata="${url}"`);
  const authorization = `Bearer ${await issuer.signer.token()}`;
  assert.equal((await ask("/mcp", { headers: { authorization } })).status, 200);
});

prove(
  `${MCP}.provider`,
  "for Auth0 the audience is a parameter, and the gateway is the authorization server",
  async (context) => {
    const audiences = 'audiences: ["api & more", other],';
    const { ask, gateway, issuer } = await guard(context, { mcp: "provider: idpA", product: "auth0", audiences });
    const resource = `${gateway.url()}/mcp`;
    assert.deepEqual(membersOf(await ask(`${RESOURCE}/mcp`))["authorization_servers"], [resource]);
    const server = membersOf(await ask(`${SERVER}/mcp`));
    const base = issuer.issuer.slice(0, -"/realms/one".length);
    assert.equal(server["issuer"], resource);
    assert.equal(server["authorization_endpoint"], `${base}/authorize?audience=api%20%26%20more`);
    assert.equal(server["token_endpoint"], `${base}/token`);
    assert.equal(server["client_id_metadata_document_supported"], true);
    assert.deepEqual(issuer.asked, ["GET /.well-known/oauth-authorization-server/realms/one"]);
  },
);

prove(
  `${MCP}.provider`,
  "for Keycloak metadata is that of OpenID Connect, and registrations pass through the gateway",
  async (context) => {
    const { ask, gateway, issuer } = await guard(context, { mcp: "provider: idpB", product: "keycloak" });
    issuer.metadata = { authorization_response_iss_parameter_supported: true };
    const server = membersOf(await ask(`${SERVER}/mcp`));
    assert.equal(server["issuer"], `${gateway.url()}/mcp`);
    assert.equal(server["authorization_response_iss_parameter_supported"], undefined);
    assert.equal(server["registration_endpoint"], `${gateway.url()}${SERVER}/mcp/client-registration`);
    const body = JSON.stringify({ client_name: "it", redirect_uris: ["http://127.0.0.1/back"] });
    const headers = { "content-type": "application/json", cookie: "secret=1" };
    const registered = await ask(`${SERVER}/mcp/client-registration`, { method: "POST", headers, body });
    assert.equal(registered.status, 201, registered.body);
    assert.equal(registered.headers["access-control-allow-origin"], "*");
    assert.equal(registered.headers["access-control-allow-methods"], "POST, OPTIONS");
    assert.equal((parseJson(registered.body) as { client_id: string }).client_id, "client-1");
    assert.deepEqual(issuer.bodies, [body]);
    assert.deepEqual(issuer.asked, [
      "GET /realms/one/.well-known/openid-configuration",
      "POST /realms/one/clients-registrations/openid-connect",
    ]);
  },
);

prove(`${MCP}.clientId`, "every registration is answered with the client of the operator", async (context) => {
  const { ask, issuer } = await guard(context, { mcp: "clientId: desk" });
  const path = `${SERVER}/mcp/client-registration`;
  const body = '{"redirect_uris":["http://127.0.0.1/back"],"client_name":"it"}';
  const registered = await ask(path, { method: "POST", body });
  assert.equal(registered.status, 201, registered.body);
  assert.deepEqual(parseJson(registered.body), {
    client_id: "desk",
    client_id_issued_at: 0,
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code"],
    response_types: ["code"],
    redirect_uris: ["http://127.0.0.1/back"],
  });
  assert.equal((await ask(path, { method: "POST", body: "{" })).body, '{"error":"invalid_client_metadata"}');
  assert.equal((await ask(path, { method: "POST", body: "x".repeat(65_537) })).status, 413);
  assert.deepEqual(issuer.asked, []);
});

test("metadata of an issuer without a provider passes byte for byte, and once in five minutes", async (t) => {
  const { ask, issuer } = await guard(contextOf(t));
  issuer.metadata = { long: 1, spelled: "a\\u0062" };
  const answers = await Promise.all([1, 2, 3].map(() => ask(`${SERVER}/mcp`)));
  for (const answer of answers) assert.equal(membersOf(answer)["issuer"], issuer.issuer);
  issuer.failure = 503;
  assert.equal((await ask(`${SERVER}/mcp`)).body, answers[0]?.body);
  assert.deepEqual(issuer.asked, ["GET /.well-known/oauth-authorization-server/realms/one"]);
});

/** Answers of an issuer that no client may get; objects are members of metadata that is well otherwise. */
const USELESS: Readonly<
  Record<string, Exclude<OAuthIssuer["failure"], undefined> | string | { readonly issuer: unknown }>
> = {
  "an error": 503,
  "nothing, with success": 204,
  HTML: "<p>hello</p>",
  "a list": "[{}]",
  "no value": "null",
  "too deep a value": `{"issuer":"ISSUER","a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`,
  "too large a value": `{"issuer":"ISSUER","a":"${"x".repeat(10_000_000)}"}`,
  "a value without end": (response) => {
    const write = (): void => {
      while (response.write(" ".repeat(65_536)));
    };
    response.writeHead(200, { "content-type": "application/json" }).on("drain", write);
    write();
  },
  "part of a value": (response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("{", () => response.destroy());
  },
  "a redirect": (response) => void response.writeHead(302, { location: "/elsewhere" }).end("{}"),
  "another issuer": { issuer: "https://evil.test" },
  "its own name with a slash": { issuer: "ISSUER/" },
  "its own name in another case": { issuer: "HTTP://127.0.0.1/realms/one" },
  "no issuer": { issuer: null },
  "an issuer that is no text": { issuer: ["ISSUER"] },
};
const PRODUCTS: readonly (readonly [product: Product, mcp: string])[] = [
  ["standard", ""],
  ["auth0", "provider: idpA"],
  ["keycloak", "provider: idpB"],
];

for (const [product, mcp] of PRODUCTS)
  test(`what an issuer must not answer is not used, and the next client asks again: ${product}`, async (t) => {
    const { ask, issuer } = await guard(contextOf(t), { mcp, product, audiences: "audiences: [api]," });
    const named = (text: string): string => text.replace("ISSUER", issuer.issuer);
    for (const [what, answer] of Object.entries(USELESS)) {
      issuer.metadata =
        typeof answer === "object" ? (parseJson(named(JSON.stringify(answer))) as typeof issuer.metadata) : {};
      issuer.failure = typeof answer === "string" ? (response) => void response.end(named(answer)) : undefined;
      if (typeof answer === "number" || typeof answer === "function") issuer.failure = answer;
      const failed = await ask(`${SERVER}/mcp`);
      assert.deepEqual([failed.status, failed.body], [500, "the issuer of tokens cannot be reached"], what);
    }
    assert.equal(new Set(issuer.asked).size, 1, "a redirect is not followed");
    issuer.metadata = {};
    issuer.failure = undefined;
    assert.equal((await ask(`${SERVER}/mcp`)).status, 200);
  });

test("metadata without what the provider's rules need is answered with 500", async (t) => {
  const { ask, issuer } = await guard(contextOf(t), { mcp: "provider: idpB", product: "keycloak" });
  issuer.metadata = { registration_endpoint: undefined };
  assert.equal((await ask(`${SERVER}/mcp`)).status, 500);
});

test("scripts may ask from any origin, and other methods are refused", async (t) => {
  const { ask } = await guard(contextOf(t));
  const preflight = { method: "OPTIONS", headers: { origin: "https://app.example" } };
  for (const [path, methods] of [
    [`${RESOURCE}/mcp`, "GET, OPTIONS"],
    [`${SERVER}/mcp`, "GET, OPTIONS"],
    [`${SERVER}/mcp/client-registration`, "POST, OPTIONS"],
  ] as const) {
    const answer = await ask(path, preflight);
    assert.equal(answer.status, 204);
    assert.equal(answer.body, "");
    assert.equal(answer.headers["access-control-allow-origin"], "*");
    assert.equal(answer.headers["access-control-allow-methods"], methods);
    assert.equal(answer.headers["access-control-allow-headers"], "content-type");
    for (const method of [methods.startsWith("GET") ? "POST" : "GET", "DELETE", "TRACE", "HEAD"]) {
      const refused = await ask(path, { method });
      assert.deepEqual([refused.status, refused.headers["allow"]], [405, methods], `${method} ${path}`);
    }
  }
});

test("metadata is answered below the prefixes of the policy's route, unless a rule names its path", async (t) => {
  const { ask } = await guard(contextOf(t));
  assert.equal((await ask(`${RESOURCE}/mcp/deep`)).status, 200);
  for (const path of [`${RESOURCE}/other`, RESOURCE, `${RESOURCE}x/mcp`, `/.well-known/oauth-other/mcp`])
    assert.equal((await ask(path)).status, 404, path);
  // The path behind the resource is one of the route itself.
  assert.equal((await ask("/mcp/.well-known/oauth-authorization-server")).status, 200);
  const echo = await startEcho(contextOf(t));
  const site = [staticBackend("site", echo.port), route("site", "site", "/")];
  const beside = await guard(contextOf(t), { more: site });
  assert.equal(membersOf(await beside.ask(`${RESOURCE}/mcp`))["resource_type"], "mcp-server");
  assert.equal(echoed((await beside.ask(`${RESOURCE}/other`)).body).url, `${RESOURCE}/other`);
  const own = [staticBackend("own", echo.port), route("own", "own", RESOURCE)];
  const replaced = await guard(contextOf(t), { more: own });
  assert.equal(echoed((await replaced.ask(`${RESOURCE}/mcp`)).body).url, `${RESOURCE}/mcp`);
});

test("the public scheme is that of a trusted proxy, and never a stranger's", async (t) => {
  const forwarded = { headers: { "x-forwarded-proto": "https" } };
  const { ask, gateway } = await guard(contextOf(t));
  assert.equal(membersOf(await ask(`${RESOURCE}/mcp`, forwarded))["resource"], `${gateway.url()}/mcp`);
  const more = [gatewayPolicy("front", "  frontend: {http: {trustedProxies: [127.0.0.0/8]}}")];
  const trusting = await guard(contextOf(t), { more });
  const resource = `${trusting.gateway.url()}/mcp`.replace("http:", "https:");
  assert.equal(membersOf(await trusting.ask(`${RESOURCE}/mcp`, forwarded))["resource"], resource);
});
