/** Tokens of a real OpenID Connect provider, over the rotation of its keys. */
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { Provider } from "oidc-provider";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

const JWT = "GwPolicy spec.traffic.jwtAuthentication.providers[]";
const API = "https://api.test";

interface OidcServer {
  readonly issuer: string;
  /** From now on it signs with the first key and publishes all. */
  rotate(...keys: JWK[]): void;
  /** An access token for the audience, as a client gets it. */
  token(): Promise<string>;
}

async function startProvider(context: ProofContext, ...keys: JWK[]): Promise<OidcServer> {
  let handle: RequestListener = () => undefined;
  const server = createServer((request, response) => handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a TCP server's address is one
  const rotate = (...current: JWK[]): void => {
    handle = new Provider(issuer, configuration(current)).callback();
  };
  rotate(...keys);
  return {
    issuer,
    rotate,
    async token() {
      const body = new URLSearchParams({ grant_type: "client_credentials", resource: API }).toString();
      const basic = Buffer.from("client:secret").toString("base64");
      const headers = { authorization: `Basic ${basic}`, "content-type": "application/x-www-form-urlencoded" };
      const answer = await call(`${issuer}/token`, { method: "POST", headers, body });
      assert.equal(answer.status, 200, answer.body);
      return (JSON.parse(answer.body) as { access_token: string }).access_token;
    },
  };
}

function configuration(keys: readonly JWK[]): object {
  const alg = keys[0]?.alg;
  const resource = { scope: "read", audience: API, accessTokenFormat: "jwt", jwt: { sign: { alg } } };
  return {
    jwks: { keys },
    clients: [
      {
        client_id: "client",
        client_secret: "secret",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        id_token_signed_response_alg: alg,
      },
    ],
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "ES256"] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: { enabled: true, getResourceServerInfo: () => resource, useGrantedResource: () => true },
    },
  };
}

async function privateKey(alg: string, kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg, use: "sig" };
}

prove(
  [`${JWT}.jwks.remote.url`, `${JWT}.jwks.remote.cacheDuration`],
  "tokens of an OpenID Connect provider pass over a rotation of its keys, and those of a withdrawn key do not",
  async (context) => {
    const [first, second] = [await privateKey("RS256", "2026-01"), await privateKey("ES256", "2026-02")];
    const provider = await startProvider(context, first);
    const echo = await startEcho(context);
    const remote = `{url: "${provider.issuer}/jwks", cacheDuration: 1s}`;
    const providers = `[{issuer: "${provider.issuer}", audiences: ["${API}"], jwks: {remote: ${remote}}}]`;
    const policy = routePolicy("tokens", "web", `  traffic: {jwtAuthentication: {providers: ${providers}}}`);
    const objects = [GATEWAY, staticBackend("web", echo.port), route("web", "web"), policy];
    const gateway = await startGateway(context, documents(...objects));
    const passes = async (token: string): Promise<boolean> =>
      (await call(gateway.url(), { headers: { authorization: `Bearer ${token}` } })).status === 200;

    const old = await provider.token();
    await gateway.until(() => passes(old));
    provider.rotate(second, first);
    const fresh = await provider.token();
    await gateway.until(() => passes(fresh));
    assert.ok(await passes(old), "a key that is still published stays good");
    provider.rotate(second);
    await gateway.until(async () => !(await passes(old)));
    assert.ok(await passes(fresh));
  },
);
