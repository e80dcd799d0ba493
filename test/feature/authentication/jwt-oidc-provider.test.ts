/** Tokens of a real OpenID Connect provider, over the rotation of its keys. */
import assert from "node:assert/strict";
import type { JWK } from "jose";
import { Provider } from "oidc-provider";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";
import { createPrivateJwk, startOidcServer } from "../../support/servers/oidc-server.ts";

const JWT = "GwPolicy spec.traffic.jwtAuthentication.providers[]";
const API = "https://api.test";

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

prove(
  [`${JWT}.jwks.remote.url`, `${JWT}.jwks.remote.cacheDuration`],
  "tokens of an OpenID Connect provider pass over a rotation of its keys, and those of a withdrawn key do not",
  async (context) => {
    const [first, second] = [await createPrivateJwk("RS256", "2026-01"), await createPrivateJwk("ES256", "2026-02")];
    const provider = await startOidcServer(context);
    /** It signs with the first key and publishes all. */
    const rotate = (...keys: JWK[]): void => provider.use(new Provider(provider.issuer, configuration(keys)));
    const token = (): Promise<string> =>
      provider.token("client:secret", { grant_type: "client_credentials", resource: API });
    rotate(first);
    const echo = await startEcho(context);
    const remote = `{url: "${provider.issuer}/jwks", cacheDuration: 1s}`;
    const providers = `[{issuer: "${provider.issuer}", audiences: ["${API}"], jwks: {remote: ${remote}}}]`;
    const policy = routePolicy("tokens", "web", `  traffic: {jwtAuthentication: {providers: ${providers}}}`);
    const objects = [GATEWAY, staticBackend("web", echo.port), route("web", "web"), policy];
    const gateway = await startGateway(context, documents(...objects));
    const passes = async (bearer: string): Promise<boolean> =>
      (await call(gateway.url(), { headers: { authorization: `Bearer ${bearer}` } })).status === 200;

    const old = await token();
    await gateway.until(() => passes(old));
    rotate(second, first);
    const fresh = await token();
    await gateway.until(() => passes(fresh));
    assert.ok(await passes(old), "a key that is still published stays good");
    rotate(second);
    await gateway.until(async () => !(await passes(old)));
    assert.ok(await passes(fresh));
  },
);
