/** What an authorization server learns of a caller whom an earlier policy authenticated. */
import assert from "node:assert/strict";
import { startAuthServer } from "../../support/servers/auth-server.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { routePolicy, startWeb } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";
import { createIssuer, keySet } from "../../support/fixtures/tokens.ts";

prove(
  ["GwPolicy spec.traffic.extAuth.url", "GwPolicy spec.traffic.jwtAuthentication.providers[].jwks.inline"],
  "the claims of a verified token reach the server under both names that servers read, and the token does not",
  async (context) => {
    const issuer = await createIssuer("https://issuer.test");
    const auth = await startAuthServer(context);
    const echo = await startEcho(context);
    const jwt = `jwtAuthentication: {providers: [{issuer: "https://issuer.test", jwks: {inline: '${keySet(issuer.jwk)}'}}]}`;
    const gateway = await startWeb(
      context,
      echo.port,
      routePolicy("who", "web", `  traffic: {${jwt}, extAuth: {url: "http://127.0.0.1:${auth.port}", grpc: {}}}`),
    );
    const token = await issuer.token({ groups: ["eng"] });
    assert.equal((await call(gateway.url(), { headers: { authorization: `Bearer ${token}` } })).status, 200);
    const metadata = auth.seen[0]?.attributes?.metadataContext?.filterMetadata ?? {};
    assert.deepEqual(Object.keys(metadata).sort(), ["envoy.filters.http.jwt_authn", "ext.filters.http.jwt_authn"]);
    for (const namespace of Object.values(metadata)) {
      const { sub, groups, iss, rawToken } = namespace["jwt_payload"] as Record<string, unknown>; // an object of claims
      assert.deepEqual([sub, groups, iss, rawToken], ["ann", ["eng"], "https://issuer.test", undefined]);
    }
    assert.ok(!JSON.stringify(auth.seen[0]?.attributes?.request?.http?.headers).includes(token));
    assert.equal((await call(gateway.url())).status, 401);
    assert.equal(auth.seen.length, 1, "who is not known is not asked for");
  },
);
