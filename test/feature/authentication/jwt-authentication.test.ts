/** traffic.jwtAuthentication with keys that stand in the policy, through real sockets. */
import assert from "node:assert/strict";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { routePolicy, startWeb, type TestGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { createIssuer, keySet, nowSeconds, type Issuer } from "../../support/fixtures/tokens.ts";

const JWT = "GwPolicy spec.traffic.jwtAuthentication";
const NAME = "https://issuer.test";

/** @param more members of the policy's block, and of its only provider, as YAML flow */
async function guard(
  context: ProofContext,
  { jwk }: Issuer,
  { block = "", provider = "", traffic = "" }: { block?: string; provider?: string; traffic?: string } = {},
): Promise<TestGateway> {
  const echo = await startEcho(context);
  const providers = `[{issuer: "${NAME}", jwks: {inline: '${keySet(jwk)}'}, ${provider}}]`;
  const policy = routePolicy(
    "tokens",
    "web",
    `  traffic: {jwtAuthentication: {providers: ${providers}, ${block}}, ${traffic}}`,
  );
  return startWeb(context, echo.port, policy);
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

prove(
  [`${JWT}.providers[].issuer`, `${JWT}.providers[].jwks.inline`],
  "a token that an issuer signed passes and is taken out; others are refused with the reason",
  async (context) => {
    const issuer = await createIssuer(NAME);
    const gateway = await guard(context, issuer);
    for (let at = 0; at < 2; at++) {
      const passed = await call(gateway.url(), bearer(await issuer.token()));
      assert.equal(passed.status, 200);
      assert.equal(echoed(passed.body).headers["authorization"], undefined);
    }
    const missing = await call(gateway.url());
    assert.equal(missing.status, 401);
    assert.equal(missing.headers["www-authenticate"], "Bearer");
    assert.equal(missing.headers["content-type"], "text/plain; charset=utf-8");
    assert.equal(missing.body, "authentication failure: no bearer token found");
    const refusals = [
      [await issuer.token({ exp: nowSeconds() - 300 }), "the token is invalid or malformed"],
      [await issuer.token({ iss: "https://other.test" }), "the token is invalid or malformed"],
      [await (await createIssuer(NAME)).token(), "the token is invalid or malformed"],
      [await issuer.token({}, { kid: "other" }), "token uses the unknown key"],
      [await issuer.token({}, { kid: undefined }), "the token header does not specify a `kid`"],
      ["nonsense", "the token header is malformed"],
    ] as const;
    for (const [token, reason] of refusals) {
      const refused = await call(gateway.url(), bearer(token));
      assert.equal(refused.status, 401, reason);
      assert.equal(refused.headers["www-authenticate"], 'Bearer error="invalid_token"');
      assert.equal(refused.body, `authentication failure: ${reason}`);
    }
  },
);

prove(`${JWT}.providers[].audiences[]`, "a token must name one of the audiences", async (context) => {
  const issuer = await createIssuer(NAME);
  const gateway = await guard(context, issuer, { provider: "audiences: [api, web]" });
  assert.equal((await call(gateway.url(), bearer(await issuer.token({ aud: ["x", "web"] })))).status, 200);
  assert.equal((await call(gateway.url(), bearer(await issuer.token({ aud: "x" })))).status, 401);
  assert.equal((await call(gateway.url(), bearer(await issuer.token()))).status, 401);
});

prove(
  `${JWT}.providers[].validation.requiredClaims[]`,
  "a token must hold the claims that are required",
  async (context) => {
    const issuer = await createIssuer(NAME);
    const gateway = await guard(context, issuer, { provider: "validation: {requiredClaims: [sub, nbf]}" });
    const lasting = { exp: undefined as never };
    assert.equal(
      (await call(gateway.url(), bearer(await issuer.token({ nbf: nowSeconds(), ...lasting })))).status,
      200,
    );
    assert.equal((await call(gateway.url(), bearer(await issuer.token()))).status, 401);
  },
);

prove(`${JWT}.mode`, "Optional lets requests without a token pass, Permissive all of them", async (context) => {
  const issuer = await createIssuer(NAME);
  const optional = await guard(context, issuer, { block: "mode: Optional" });
  assert.equal((await call(optional.url())).status, 200);
  assert.equal((await call(optional.url(), bearer("nonsense"))).status, 401);
  const permissive = await guard(context, issuer, { block: "mode: Permissive" });
  assert.equal((await call(permissive.url(), bearer("nonsense"))).status, 200);
});

prove(`${JWT}.preserveToken`, "a good token is left in the request", async (context) => {
  const issuer = await createIssuer(NAME);
  const gateway = await guard(context, issuer, { block: "preserveToken: true" });
  const token = await issuer.token();
  const { headers } = echoed((await call(gateway.url(), bearer(token))).body);
  assert.equal(headers["authorization"], `Bearer ${token}`);
});

prove(
  [`${JWT}.location.header.name`, `${JWT}.location.header.prefix`],
  "the token is read from the header that the policy names",
  async (context) => {
    const issuer = await createIssuer(NAME);
    const gateway = await guard(context, issuer, { block: 'location: {header: {name: x-token, prefix: "Token "}}' });
    const token = await issuer.token();
    assert.equal((await call(gateway.url(), { headers: { "x-token": `token ${token}` } })).status, 200);
    assert.equal((await call(gateway.url(), { headers: { "x-token": token } })).status, 401);
    assert.equal((await call(gateway.url(), bearer(token))).status, 401);
  },
);

prove(
  `${JWT}.location.header.name`,
  "a token for a proxy is asked for with 407 and never forwarded",
  async (context) => {
    const issuer = await createIssuer(NAME);
    const block = 'preserveToken: true, location: {header: {name: Proxy-Authorization, prefix: "Bearer "}}';
    const gateway = await guard(context, issuer, { block });
    const token = await issuer.token();
    const refused = await call(gateway.url(), bearer(token));
    assert.equal(refused.status, 407);
    assert.equal(refused.headers["proxy-authenticate"], "Bearer");
    const passed = await call(gateway.url(), { headers: { "proxy-authorization": `Bearer ${token}` } });
    assert.equal(passed.status, 200);
    assert.equal(echoed(passed.body).headers["proxy-authorization"], undefined);
  },
);

prove(`${JWT}.location.queryParameter.name`, "the token is read from a query parameter", async (context) => {
  const issuer = await createIssuer(NAME);
  const gateway = await guard(context, issuer, { block: "location: {queryParameter: {name: t}}" });
  const passed = await call(`${gateway.url()}/a?t=${await issuer.token()}&x=1`);
  assert.equal(passed.status, 200);
  assert.equal(echoed(passed.body).url, "/a?x=1");
  assert.equal((await call(`${gateway.url()}/a?x=1`)).status, 401);
});

prove(`${JWT}.location.cookie.name`, "the token is read from a cookie", async (context) => {
  const issuer = await createIssuer(NAME);
  const gateway = await guard(context, issuer, { block: "location: {cookie: {name: t}}" });
  const passed = await call(gateway.url(), { headers: { cookie: `a=1; t=${await issuer.token()}` } });
  assert.equal(passed.status, 200);
  assert.equal(echoed(passed.body).headers["cookie"], "a=1");
});

prove(`${JWT}.location.expression`, "the token is what an expression yields", async (context) => {
  const issuer = await createIssuer(NAME);
  const gateway = await guard(context, issuer, { block: `location: {expression: 'request.headers["x-a"]'}` });
  assert.equal((await call(gateway.url(), { headers: { "x-a": await issuer.token() } })).status, 200);
  assert.equal((await call(gateway.url())).status, 401);
});

prove([], "claims decide, and the token itself reaches no header that a policy computes", async (context) => {
  const issuer = await createIssuer(NAME);
  const gateway = await guard(context, issuer, {
    traffic: `authorization: {policy: {matchExpressions: ['jwt.groups.exists(g, g == "eng")']}}, transformation: {request: {set: [{name: x-sub, value: jwt.sub}, {name: x-token, value: jwt.rawToken}]}}`,
  });
  const passed = await call(gateway.url(), bearer(await issuer.token({ groups: ["ops", "eng"] })));
  assert.equal(passed.status, 200);
  assert.equal(echoed(passed.body).headers["x-sub"], "ann");
  assert.equal(echoed(passed.body).headers["x-token"], "<redacted>");
  assert.equal((await call(gateway.url(), bearer(await issuer.token({ groups: ["ops"] })))).status, 403);
  assert.equal((await call(gateway.url(), bearer(await issuer.token()))).status, 403);
});

prove([], "a JWKS without a usable key lets nobody in, and status says why", async (context) => {
  const echo = await startEcho(context);
  const issuer = await createIssuer(NAME);
  const { privateKey: _key, ...signer } = issuer;
  const useless = keySet({ kty: "oct", kid: "key-1", k: "c2VjcmV0" }, { ...signer.jwk, use: "enc" });
  const providers = `[{issuer: "${NAME}", jwks: {inline: '${useless}'}}]`;
  const policy = routePolicy("tokens", "web", `  traffic: {jwtAuthentication: {providers: ${providers}}}`);
  const gateway = await startWeb(context, echo.port, policy);
  assert.equal((await call(gateway.url(), bearer(await issuer.token()))).status, 401);
  const [problem] = gateway.translator.diagnostics();
  assert.equal(problem?.path, "spec.traffic.jwtAuthentication.providers[0].jwks.inline");
  assert.match(problem?.message ?? "", /no key of the set can be used/);
});
