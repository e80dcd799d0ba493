/**
 * The whole OAuth flow of the official client: challenge, metadata of the resource and of its authorization server,
 * registration, code with PKCE, token, and then a call. Each product is a strict fake of it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { connectMcp } from "../../support/clients/mcp.ts";
import { call } from "../../support/clients/http.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { startMcpGateway } from "../../support/gateway/mcp.ts";
import { BLOCK_PLACES } from "../../support/proofs/block-places.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";
import { startOAuthIssuer, type OAuthIssuer, type Product } from "../../support/servers/oauth-issuer.ts";

const BACK = "http://127.0.0.1:1/back";

/** What a client without a user does: it keeps what it learns, and follows redirects by itself. */
class TestAuthorization implements OAuthClientProvider {
  readonly redirectUrl = BACK;
  readonly clientMetadata = {
    client_name: "test",
    redirect_uris: [BACK],
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code"],
    response_types: ["code"],
  };
  /** Where the client sends its user. */
  target: URL | undefined;
  #client: Awaited<ReturnType<OAuthClientProvider["clientInformation"]>>;
  #tokens: Awaited<ReturnType<OAuthClientProvider["tokens"]>>;
  #verifier = "";

  clientInformation(): Awaited<ReturnType<OAuthClientProvider["clientInformation"]>> {
    return this.#client;
  }

  saveClientInformation(client: NonNullable<Awaited<ReturnType<OAuthClientProvider["clientInformation"]>>>): void {
    this.#client = client;
  }

  tokens(): Awaited<ReturnType<OAuthClientProvider["tokens"]>> {
    return this.#tokens;
  }

  saveTokens(tokens: NonNullable<Awaited<ReturnType<OAuthClientProvider["tokens"]>>>): void {
    this.#tokens = tokens;
  }

  redirectToAuthorization(target: URL): void {
    this.target = target;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }
}

/** Signs a client in, and returns the names of the tools that it then sees. */
async function signIn(context: ProofContext, url: string): Promise<string[]> {
  const authProvider = new TestAuthorization();
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  const first = new Client({ name: "test-client", version: "1.0.0" });
  await assert.rejects(first.connect(transport as Parameters<Client["connect"]>[0]), /Unauthorized/);
  const redirect = await call(authProvider.target?.href ?? assert.fail("the client was sent nowhere"));
  assert.equal(redirect.status, 302, redirect.body);
  const code = new URL(String(redirect.headers["location"])).searchParams.get("code") ?? "";
  await transport.finishAuth(code);
  const { client } = await connectMcp(context, url, undefined, { authProvider });
  return (await client.listTools()).tools.map(({ name }) => name).sort();
}

const ALL = ["ask", "count", "echo"];

interface Variant {
  readonly name: string;
  readonly product: Product;
  /** Members of the block, in flow YAML. */
  readonly block: string;
  /** Audience of the tokens; undefined for the URL of the resource. */
  readonly audience?: string;
  /** What the issuer is asked for, besides keys and its metadata. */
  readonly asked: (issuer: OAuthIssuer) => readonly string[];
}

const REGISTERED = ["POST /realms/one/clients-registrations/openid-connect", "GET /authorize", "POST /token"];

const VARIANTS: readonly Variant[] = [
  { name: "an issuer without a provider", product: "standard", block: "", asked: () => REGISTERED },
  { name: "Auth0", product: "auth0", block: "provider: idpA", audience: "tools", asked: () => REGISTERED },
  { name: "Keycloak", product: "keycloak", block: "provider: idpB", asked: () => REGISTERED },
  {
    name: "a client of the operator",
    product: "keycloak",
    block: "provider: idpB, clientId: desk",
    asked: () => REGISTERED.slice(1),
  },
];

function audiencesOf({ audience }: Variant): string {
  return audience === undefined ? "" : `audiences: [${audience}],`;
}

function steps({ asked }: OAuthIssuer): string[] {
  return asked.filter((line) => !line.includes("/.well-known/") && !line.endsWith("/keys"));
}

for (const variant of VARIANTS) {
  test(`the official client signs in with ${variant.name}, by a policy of the route`, async (t) => {
    const context = contextOf(t);
    const issuer = await startOAuthIssuer(context, variant.product);
    const server = await startMcpServer(context);
    const provider = `{issuer: "${issuer.issuer}", ${audiencesOf(variant)} jwks: {inline: '${issuer.keys}'}}`;
    const block = `{providers: [${provider}], mcp: {${variant.block}}}`;
    const gateway = await startGateway(
      context,
      documents(
        GATEWAY,
        backendOf(server.port),
        route("tools", "tools", "/mcp"),
        routePolicy("tokens", "tools", `  traffic: {jwtAuthentication: ${block}}`),
      ),
    );
    assert.deepEqual(await signIn(context, `${gateway.url()}/mcp`), ALL);
    assert.deepEqual(steps(issuer), variant.asked(issuer));
  });

  for (const place of BLOCK_PLACES)
    test(`the official client signs in with ${variant.name}, by the block of a ${place.kind}`, async (t) => {
      const context = contextOf(t);
      const issuer = await startOAuthIssuer(context, variant.product);
      const keys = `jwks: {url: "${issuer.issuer}/keys"}`;
      const block = `authentication: {issuer: "${issuer.issuer}", ${keys}, ${audiencesOf(variant)} ${variant.block}}`;
      const { gateway, url } = await startMcpGateway(context, place, block);
      await untilKeys(gateway, url, await issuer.signer.token({ aud: variant.audience ?? url }));
      assert.deepEqual(await signIn(context, url), ALL);
      assert.deepEqual(steps(issuer), variant.asked(issuer));
    });
}

test("the official client signs in as a confidential client of the operator, whose secret it does not know", async (t) => {
  const context = contextOf(t);
  const issuer = await startOAuthIssuer(context, "keycloak", "s3cr3t");
  const [place] = BLOCK_PLACES;
  assert.ok(place);
  const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: client}\nstringData: {clientSecret: s3cr3t}";
  const client = "provider: idpB, clientId: desk, clientSecretRef: {name: client}";
  const block = `authentication: {issuer: "${issuer.issuer}", jwks: {url: "${issuer.issuer}/keys"}, ${client}}`;
  const { gateway, url } = await startMcpGateway(context, place, block, secret);
  await untilKeys(gateway, url, await issuer.signer.token());
  assert.deepEqual(await signIn(context, url), ALL);
  assert.equal(new URLSearchParams(issuer.bodies.at(-1)).get("client_secret"), "s3cr3t");
});

function backendOf(port: number): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec: {mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]}}
`;
}

/** Waits until the keys of the issuer have been fetched. */
async function untilKeys(gateway: TestGateway, url: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  await gateway.until(async () => ![401, 500].includes((await call(url, { method: "PUT", headers })).status));
}
