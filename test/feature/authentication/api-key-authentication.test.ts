/** traffic.apiKeyAuthentication through real sockets. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  startWeb,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

const API_KEY = "GwPolicy spec.traffic.apiKeyAuthentication";

const KEYS = `
apiVersion: v1
kind: Secret
metadata: {name: keys, labels: {role: keys}}
stringData:
  plain: open-sesame
  rich: '{"key": "alice-key", "metadata": {"user": "alice"}}'
`;

function guard(context: ProofContext, settings: string, ...more: readonly string[]): Promise<TestGateway> {
  return startEcho(context).then((echo) =>
    startWeb(
      context,
      echo.port,
      KEYS,
      routePolicy("keys", "web", `  traffic: {apiKeyAuthentication: ${settings}}`),
      ...more,
    ),
  );
}

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

prove(
  `${API_KEY}.secretRef.name`,
  "a known key passes and is stripped; a missing and an unknown one get 401",
  async (context) => {
    const gateway = await guard(context, "{secretRef: {name: keys}}");
    const passed = await call(gateway.url(), bearer("open-sesame"));
    assert.equal(passed.status, 200);
    assert.equal(echoed(passed.body).headers["authorization"], undefined);
    assert.equal((await call(gateway.url())).status, 401);
    assert.equal((await call(gateway.url(), bearer("wrong"))).status, 401);
  },
);

prove(
  `${API_KEY}.secretSelector.matchLabels`,
  "keys are collected from every Secret that carries the labels, and from no other",
  async (context) => {
    const other = `
apiVersion: v1
kind: Secret
metadata: {name: others, labels: {role: others}}
stringData:
  eve: eve-key
`;
    const gateway = await guard(context, "{secretSelector: {matchLabels: {role: keys}}}", other);
    assert.equal((await call(gateway.url(), bearer("alice-key"))).status, 200);
    assert.equal((await call(gateway.url())).status, 401);
    assert.equal((await call(gateway.url(), bearer("eve-key"))).status, 401);
  },
);

prove(
  `${API_KEY}.configMapSelector.matchLabels`,
  "a ConfigMap holds hashes, and the key of a hash passes if the map carries the labels",
  async (context) => {
    const hash = createHash("sha256").update("hashed-key").digest("hex");
    const otherHash = createHash("sha256").update("eve-key").digest("hex");
    const map = `
apiVersion: v1
kind: ConfigMap
metadata: {name: hashes, labels: {role: keys}}
data:
  bob: '{"keyHash": "sha256:${hash}"}'
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other-hashes, labels: {role: others}}
data:
  eve: '{"keyHash": "sha256:${otherHash}"}'
`;
    const gateway = await guard(context, "{configMapSelector: {matchLabels: {role: keys}}}", map);
    assert.equal((await call(gateway.url(), bearer("hashed-key"))).status, 200);
    assert.equal((await call(gateway.url(), bearer(hash))).status, 401);
    assert.equal((await call(gateway.url(), bearer("eve-key"))).status, 401);
  },
);

prove(`${API_KEY}.mode`, "Optional lets a request without a key pass and refuses an unknown key", async (context) => {
  const gateway = await guard(context, "{mode: Optional, secretRef: {name: keys}}");
  assert.equal((await call(gateway.url())).status, 200);
  assert.equal((await call(gateway.url(), bearer("wrong"))).status, 401);
});

prove(`${API_KEY}.mode`, "Permissive never refuses", async (context) => {
  const gateway = await guard(context, "{mode: Permissive, secretRef: {name: keys}}");
  assert.equal((await call(gateway.url())).status, 200);
  assert.equal((await call(gateway.url(), bearer("wrong"))).status, 200);
});

prove(
  [`${API_KEY}.location.header.name`, `${API_KEY}.location.header.prefix`],
  "the key is read from the header that the policy names",
  async (context) => {
    const gateway = await guard(
      context,
      '{secretRef: {name: keys}, location: {header: {name: x-key, prefix: "Key "}}}',
    );
    assert.equal((await call(gateway.url(), { headers: { "x-key": "Key open-sesame" } })).status, 200);
    assert.equal((await call(gateway.url(), { headers: { "x-key": "open-sesame" } })).status, 401);
    assert.equal((await call(gateway.url(), bearer("open-sesame"))).status, 401);
  },
);

prove(
  `${API_KEY}.location.queryParameter.name`,
  "the key is read from a query parameter and stripped from it",
  async (context) => {
    const gateway = await guard(context, "{secretRef: {name: keys}, location: {queryParameter: {name: key}}}");
    const passed = await call(`${gateway.url()}/a?x=1&key=open-sesame`);
    assert.equal(passed.status, 200);
    assert.equal(echoed(passed.body).url, "/a?x=1");
    assert.equal((await call(`${gateway.url()}/a?key=wrong`)).status, 401);
  },
);

prove(`${API_KEY}.location.cookie.name`, "the key is read from a cookie and the others stay", async (context) => {
  const gateway = await guard(context, "{secretRef: {name: keys}, location: {cookie: {name: key}}}");
  const passed = await call(gateway.url(), { headers: { cookie: "a=1; key=open-sesame; b=2" } });
  assert.equal(passed.status, 200);
  assert.equal(echoed(passed.body).headers["cookie"], "a=1; b=2");
  assert.equal((await call(gateway.url(), { headers: { cookie: "key=wrong" } })).status, 401);
});

prove(`${API_KEY}.location.expression`, "the key is what an expression yields", async (context) => {
  const gateway = await guard(
    context,
    `{secretRef: {name: keys}, location: {expression: 'request.headers["x-a"] + "-sesame"'}}`,
  );
  assert.equal((await call(gateway.url(), { headers: { "x-a": "open" } })).status, 200);
  assert.equal((await call(gateway.url())).status, 401);
});

prove([], "a policy whose Secret is missing refuses everyone, and a Secret that appears opens it", async (context) => {
  const echo = await startEcho(context);
  const policy = routePolicy("keys", "web", "  traffic: {apiKeyAuthentication: {secretRef: {name: keys}}}");
  const base = documents(GATEWAY, staticBackend("web", echo.port), route("web", "web"), policy);
  const gateway = await startGateway(context, base);
  assert.equal((await call(gateway.url(), bearer("open-sesame"))).status, 401);
  await gateway.change(documents(base, KEYS));
  assert.equal((await call(gateway.url(), bearer("open-sesame"))).status, 200);
  await gateway.change(base);
  assert.equal((await call(gateway.url(), bearer("open-sesame"))).status, 401);
});

prove([], "a refusal says which scheme is wanted, and whether the key was missing or wrong", async (context) => {
  const gateway = await guard(context, "{secretRef: {name: keys}}");
  const missing = await call(gateway.url());
  assert.equal(missing.headers["www-authenticate"], "Bearer");
  assert.equal(missing.body, "api key authentication failure: no API Key found");
  const wrong = await call(gateway.url(), bearer("wrong"));
  assert.equal(wrong.headers["www-authenticate"], 'Bearer error="invalid_token"');
  assert.equal(wrong.body, "api key authentication failure: invalid credentials");
});

prove(
  `${API_KEY}.location.header.name`,
  "a key in Proxy-Authorization is read, refused with 407 and never forwarded",
  async (context) => {
    const gateway = await guard(
      context,
      '{secretRef: {name: keys}, location: {header: {name: Proxy-Authorization, prefix: "Bearer "}}}',
    );
    const refused = await call(gateway.url(), bearer("open-sesame"));
    assert.equal(refused.status, 407);
    assert.equal(refused.headers["proxy-authenticate"], "Bearer");
    assert.equal(refused.headers["www-authenticate"], undefined);
    const headers = { "proxy-authorization": "Bearer open-sesame", authorization: "Bearer own" };
    const passed = await call(gateway.url(), { headers });
    assert.equal(passed.status, 200);
    assert.equal(echoed(passed.body).headers["proxy-authorization"], undefined);
    assert.equal(echoed(passed.body).headers["authorization"], "Bearer own");
  },
);

prove(
  [],
  "two different keys in one request are refused: we and the upstream could read different ones",
  async (context) => {
    const gateway = await guard(context, "{secretRef: {name: keys}}");
    const both = { headers: { authorization: ["Bearer open-sesame", "Bearer wrong"] } };
    assert.equal((await call(gateway.url(), both)).status, 401);
  },
);

prove(
  [`${API_KEY}.secretRef.group`, `${API_KEY}.secretRef.kind`],
  "a credential of a kind that nobody knows lets nobody in, and status names it",
  async (context) => {
    const gateway = await guard(context, "{secretRef: {name: keys, group: vault.example, kind: Keys}}");
    assert.equal((await call(gateway.url(), bearer("open-sesame"))).status, 401);
    const [problem] = gateway.translator.diagnostics();
    assert.match(problem?.message ?? "", /unsupported credential kind Keys of group "vault.example"/);
  },
);
