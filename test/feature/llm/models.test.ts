/** GwModel through real sockets: attachment, choice by name, policies, the list, and errors. */
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { test } from "node:test";
import { documents, startGateway } from "../../support/gateway/gateway.ts";
import {
  gwModel,
  model,
  MODEL_GATEWAY,
  modelRoute,
  readRefusal,
  serveModels,
  service,
  serviceApart,
  virtual,
} from "../../support/gateway/models.ts";
import { call, parseJson } from "../../support/clients/http.ts";
import { contextOf, prove } from "../../support/proofs/prove.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startForwardProxy } from "../../support/servers/forward-proxy.ts";

const SPEC = "GwModel spec";

prove(
  [`${SPEC}.match.model`, `${SPEC}.parentRefs[].name`, `${SPEC}.provider`, `${SPEC}.custom.backendRef.name`],
  "an exact name comes before patterns, and the longer pattern before the shorter one",
  async (context) => {
    const { ask, asked } = await serveModels(
      context,
      model("any", { more: `match: {model: "g*"}` }),
      model("long", { more: `match: {model: "gpt-*"}`, to: "two" }),
      model("gpt-exact"),
      model("tail", { more: `match: {model: "*-mini"}`, to: "two" }),
    );
    assert.equal(await asked("gpt-exact"), "one gpt-exact");
    assert.equal(await asked("gpt-4"), "two gpt-4");
    assert.equal(await asked("gemini"), "one gemini");
    assert.equal(await asked("o1-mini"), "two o1-mini");
    assert.equal(await readRefusal(ask("tail")), "404 model_not_found");
  },
);

prove(
  [`${SPEC}.parentRefs[].sectionName`, `${SPEC}.parentRefs[].port`],
  "a model serves on the listeners that it names, and no listener without it has the paths of models",
  async (context) => {
    const { ask, asked } = await serveModels(
      context,
      model("by-section", { parents: "{name: gw, sectionName: second}" }),
      model("by-port", { parents: "{name: gw, port: 8081}" }),
    );
    assert.equal(await asked("by-section", { port: 8081 }), "one by-section");
    assert.equal(await asked("by-port", { port: 8081 }), "one by-port");
    assert.equal((await ask("by-section", { port: 8080 })).status, 404);
    assert.equal((await ask("by-port", { port: 8080 })).status, 404);
  },
);

prove(
  [`${SPEC}.parentRefs[].group`, `${SPEC}.parentRefs[].namespace`],
  "a model may name a Gateway of another namespace that takes models of all of them",
  async (context) => {
    const one = await startEcho(context, { tag: "one" });
    const apart = model("away", { parents: "{group: gateway.networking.k8s.io, name: gw, namespace: default}" });
    const open = MODEL_GATEWAY.replaceAll("allowedRoutes: {", "allowedRoutes: {namespaces: {from: All}, ");
    const gateway = await startGateway(
      context,
      documents(
        open,
        serviceApart("apart", "one", one.port),
        apart.replace("metadata: {", "metadata: {namespace: apart, "),
      ),
    );
    const { status } = await call(`${gateway.url()}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "away", messages: [{ role: "user", content: "hi" }] }),
    });
    assert.deepEqual([status, one.seen.length], [200, 1]);
  },
);

prove(
  `${SPEC}.parentRefs[].kind`,
  "a rule of a route offers the models that name it, below its prefix",
  async (context) => {
    const { ask, asked } = await serveModels(
      context,
      modelRoute("team", "name: models"),
      model("small", { parents: "{kind: HTTPRoute, name: team, sectionName: models}" }),
      model("large", { parents: "{kind: HTTPRoute, name: team, sectionName: models}", to: "two" }),
    );
    assert.equal(await asked("small", { path: "/team/v1/chat/completions" }), "one small");
    assert.equal(await asked("large", { path: "/team/v1/chat/completions" }), "two large");
    assert.equal((await ask("small")).status, 404, "the listener itself has no models");
    assert.equal(await readRefusal(ask("none", { path: "/team/v1/chat/completions" })), "404 model_not_found");
  },
);

prove(
  [`${SPEC}.visibility`, `${SPEC}.virtualModel.weighted.targets[].modelRef.name`],
  "an internal model is reached through a virtual one alone, and is not listed",
  async (context) => {
    const { gateway, ask, asked } = await serveModels(
      context,
      model("hidden", { more: "visibility: Internal" }),
      virtual("front", "weighted: {targets: [{modelRef: {name: hidden}}]}"),
    );
    assert.equal(await readRefusal(ask("hidden")), "404 model_not_found");
    assert.equal(await asked("front"), "one hidden");
    const { body } = await call(`${gateway.url()}/v1/models`);
    assert.deepEqual(
      (parseJson(body) as { data: { id: string }[] }).data.map(({ id }) => id),
      ["front"],
    );
  },
);

prove(
  [`${SPEC}.policies.authorization.action`, `${SPEC}.policies.authorization.policy.matchExpressions[]`],
  "a model that the client may not use is passed over, denied, and not listed",
  async (context) => {
    const rule = `policies: {authorization: {action: Allow, policy: {matchExpressions: ["request.headers['x-team'] == 'a'"]}}}`;
    const { gateway, ask, asked } = await serveModels(
      context,
      model("gpt", { more: rule }),
      model("rest", { more: `match: {model: "g*"}`, to: "two" }),
      model("closed", { more: rule }),
    );
    const headers = { "x-team": "a" };
    assert.equal(await asked("gpt", { headers }), "one gpt");
    assert.equal(await asked("gpt"), "two gpt");
    assert.equal(await readRefusal(ask("closed")), "403 model_authorization_denied");
    const listed = async (more: Record<string, string>): Promise<string[]> => {
      const { body } = await call(`${gateway.url()}/v1/models`, { headers: more });
      return (parseJson(body) as { data: { id: string }[] }).data.map(({ id }) => id);
    };
    assert.deepEqual([await listed(headers), await listed({})], [["closed", "gpt"], []]);
  },
);

prove(
  [
    `${SPEC}.policies.transformations[].field`,
    `${SPEC}.policies.transformations[].expression`,
    `${SPEC}.policies.finalTransformations[].field`,
    `${SPEC}.policies.finalTransformations[].expression`,
    `${SPEC}.policies.headers.request.set[].name`,
    `${SPEC}.policies.headers.request.set[].value`,
    `${SPEC}.policies.headers.request.add[].name`,
    `${SPEC}.policies.headers.request.add[].value`,
    `${SPEC}.policies.headers.request.remove[]`,
    `${SPEC}.policies.headers.response.set[].name`,
    `${SPEC}.policies.headers.response.set[].value`,
    `${SPEC}.policies.auth.key`,
  ],
  "policies of a model change its requests and answers",
  async (context) => {
    const final = `finalTransformations: [{field: user, expression: "'of ' + llmRequest.model"}]`;
    const headers = `headers: {request: {set: [{name: x-set, value: 'a"\\b'}], add: [{name: x-add, value: more}], remove: [x-gone]}, response: {set: [{name: x-upstream, value: hidden}]}}`;
    const { ask } = await serveModels(
      context,
      model("m", {
        more: `policies: {transformations: [{field: max_tokens, expression: "llmRequest.max_tokens * 2"}], ${final}, auth: {key: secret}, ${headers}}`,
      }),
    );
    const answer = await ask("m", {
      headers: { "x-gone": "1", "x-add": "one", authorization: "Bearer of-the-client" },
      body: { max_tokens: 4 },
    });
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.headers["x-upstream"], "hidden");
    const sent = parseJson(answer.body) as { headers: Record<string, string>; body: string };
    const { "x-set": set, "x-add": add, "x-gone": gone, authorization } = sent.headers;
    assert.deepEqual([set, add, gone, authorization], ['a"\\b', "one, more", undefined, "Bearer secret"]);
    const { max_tokens, user } = parseJson(sent.body) as { max_tokens: number; user: string };
    assert.deepEqual([max_tokens, user], [8, "of m"]);
  },
);

/** A service that answers by the model that it is asked about, and keeps what it was sent. */
prove(
  [`${SPEC}.baseURL`, `${SPEC}.policies.tunnel.url`, `${SPEC}.policies.tunnel.mode`],
  "the path of baseURL stands in place of the provider's base, and a tunnel leads to its host",
  async (context) => {
    const echo = await startEcho(context, { tag: "far" });
    const proxy = await startForwardProxy(context, { places: { "models.test:8000": `127.0.0.1:${echo.port}` } });
    const policies = `policies: {tunnel: {url: "http://127.0.0.1:${proxy.port}", mode: Connect}}`;
    const { asked } = await serveModels(
      context,
      ...["", "/", "/api/v2"].map((path, at) =>
        gwModel(
          `m${at}`,
          `parentRefs: [{name: gw}], provider: llma, baseURL: "http://models.test:8000${path}", ${policies}`,
        ),
      ),
    );
    for (const at of [0, 1, 2]) assert.equal(await asked(`m${at}`), `far m${at}`);
    assert.deepEqual(
      echo.seen.map(({ url, headers }) => `${headers["host"]} ${url}`),
      ["/chat/completions", "/chat/completions", "/api/v2/chat/completions"].map((path) => `models.test:8000 ${path}`),
    );
    assert.deepEqual([...new Set(proxy.asked)], ["CONNECT models.test:8000"]);
  },
);

test("a native path names the model, which a virtual one may replace", async (t) => {
  const { ask, one } = await serveModels(
    contextOf(t),
    model("small"),
    virtual("auto", "weighted: {targets: [{modelRef: {name: small}}]}"),
  );
  const contents = { model: undefined, messages: undefined, contents: [{ role: "user", parts: [{ text: "hi" }] }] };
  const missing = await ask("", { path: "/v1beta/models/large:generateContent", body: contents });
  assert.equal(missing.status, 404);
  assert.equal((parseJson(missing.body) as { error: { status: string } }).error.status, "NOT_FOUND");
  await ask("", { path: "/v1beta/models/auto:generateContent", body: contents });
  const raw = { model: undefined, anthropic_version: "vertex-2023-10-16", max_tokens: 9 };
  await ask("", { path: "/v1/projects/p/locations/l/publishers/anthropic/models/small:rawPredict", body: raw });
  assert.deepEqual(
    one.seen.map(({ url, body }) => `${url} ${(parseJson(body) as { model: string }).model}`),
    ["/v1/chat/completions small", "/v1/chat/completions small"],
  );
});

test("both official clients read the list of models and one entry of it", async (t) => {
  const { gateway } = await serveModels(
    contextOf(t),
    model("plain"),
    model("pattern", { more: `match: {model: "p*"}` }),
    model("slash", { more: "match: {model: meta/llama}" }),
    virtual("auto", "weighted: {targets: [{modelRef: {name: plain}}]}"),
  );
  const openai = new OpenAI({ baseURL: `${gateway.url()}/v1`, apiKey: "k", maxRetries: 0 });
  const anthropic = new Anthropic({ baseURL: gateway.url(), apiKey: "k", maxRetries: 0 });
  const ids: string[] = [];
  for await (const { id } of openai.models.list()) ids.push(id);
  assert.deepEqual(ids, ["auto", "meta/llama", "plain"]);
  const names: string[] = [];
  for await (const { id, display_name, created_at } of anthropic.models.list())
    names.push(`${id} ${display_name} ${created_at}`);
  assert.deepEqual(
    names,
    ids.map((id) => `${id} ${id} 2026-01-02T03:04:05.000Z`),
  );
  const one = await openai.models.retrieve("meta/llama");
  assert.deepEqual([one.id, one.object, one.owned_by, one.created], ["meta/llama", "model", "custom", 1767323045]);
  assert.equal((await anthropic.models.retrieve("plain")).id, "plain");
  await assert.rejects(openai.models.retrieve("pattern"), { status: 404, code: "model_not_found" });
});

test("errors on a listener with models have the format of the client", async (t) => {
  const { ask, one } = await serveModels(
    contextOf(t),
    model("m"),
    model("elsewhere", { parents: "{name: gw, sectionName: second}" }),
    virtual("deep", "weighted: {targets: [{modelRef: {name: flat}}]}"),
    virtual("flat", "weighted: {targets: [{modelRef: {name: m}}]}"),
    virtual("far", "weighted: {targets: [{modelRef: {name: elsewhere}}]}"),
  );
  assert.equal(await readRefusal(ask("deep")), "404 virtual_model_not_resolved");
  assert.equal(await readRefusal(ask("far")), "404 virtual_model_target_not_found");
  assert.equal(await readRefusal(ask("")), "400 missing_model");
  assert.equal(await readRefusal(ask("m", { body: { model: 5 } })), "400 invalid_model");
  assert.equal(one.seen.length, 0);
});

test("a route of every path and models on the same listener are refused, and mended by an edit", async (t) => {
  const routed = model("small", { parents: "{kind: HTTPRoute, name: all}" });
  const { ask, asked, gateway, one } = await serveModels(
    contextOf(t),
    modelRoute("all", "", "/"),
    routed,
    model("direct"),
  );
  assert.equal((await ask("small")).status, 500);
  const services = [service("one", one.port)];
  await gateway.change(documents(MODEL_GATEWAY, ...services, modelRoute("all", "", "/"), routed));
  assert.equal(await asked("small"), "one small");
});

test("an edit of a model takes effect while others serve on", async (t) => {
  const { ask, asked, gateway, one, two } = await serveModels(contextOf(t), model("a"), model("b"));
  const services = [service("one", one.port), service("two", two.port)];
  await gateway.change(documents(MODEL_GATEWAY, ...services, model("a", { to: "two" }), model("c")));
  assert.equal(await asked("a"), "two a");
  assert.equal(await asked("c"), "one c");
  assert.equal(await readRefusal(ask("b")), "404 model_not_found");
});

prove([], "models are listed for the client of Google too", async (context) => {
  const { gateway } = await serveModels(context, model("small"), model("any", { more: `match: {model: "g*"}` }));
  // The client shares a path with those of other vendors unless it is told the older version.
  for (const apiVersion of ["v1", "v1beta"]) {
    const client = new GoogleGenAI({ apiKey: "of-the-client", apiVersion, httpOptions: { baseUrl: gateway.url() } });
    const names: (string | undefined)[] = [];
    for await (const { name } of await client.models.list()) names.push(name);
    assert.deepEqual(names, ["models/small"]);
    assert.equal((await client.models.get({ model: "small" })).displayName, "small");
  }
  const { status, body } = await call(`${gateway.url()}/v1beta/models/other`);
  assert.deepEqual([status, (parseJson(body) as { error: { status: string } }).error.status], [404, "NOT_FOUND"]);
});

/** Returns a form with a picture between its fields. */
function form(...fields: readonly string[]): { headers: Record<string, string>; body: string } {
  const parts = [
    'name="prompt"\r\n\r\na hat',
    'name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\nmodel=no\r\n--sea',
    ...fields.map((field) => `name=${field}`),
  ];
  const body = `${parts.map((part) => `--seam\r\nContent-Disposition: form-data; ${part}\r\n`).join("")}--seam--\r\n`;
  return { headers: { "content-type": "multipart/form-data; boundary=seam" }, body };
}

prove(
  [`${SPEC}.virtualModel.failover.targets[].model`],
  "a form with a picture names its model, and goes to the one that a virtual model chooses",
  async (context) => {
    const { gateway, one } = await serveModels(
      context,
      model("pictures", { more: `match: {model: "img-*"}` }),
      virtual("draw", "failover: {targets: [{modelRef: {name: pictures}, model: img-2, priority: 0}]}"),
    );
    for (const path of ["/v1/images/edits", "/v1/images/variations"]) {
      const { headers, body } = form('"model"\r\n\r\ndraw', '"n"\r\n\r\n1');
      const { status, body: text } = await call(gateway.url() + path, { method: "POST", headers, body });
      assert.equal(status, 200, text);
      const sent = echoed(text);
      assert.deepEqual([sent.url, sent.headers["content-type"]], [path, headers["content-type"]]);
      assert.equal(sent.body, body.replace("draw", "img-2"));
    }
    const asJson = await call(`${gateway.url()}/v1/images/generations`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"prompt":"a hat","model":"draw"}',
    });
    assert.equal(echoed(asJson.body).body, '{"prompt":"a hat","model":"img-2"}');
    const seen = one.seen.length;
    for (const [fields, refusal] of [
      [['"n"\r\n\r\n1'], "400 missing_model"],
      [['"model"\r\n\r\nnone'], "404 model_not_found"],
      [['"model"\r\n\r\ndraw', '"model"\r\n\r\nother'], "400 invalid_request_body"],
      [['"model"; filename="a"\r\n\r\ndraw'], "400 invalid_request_body"],
      [['"model"\r\n\r\ndraw', "n; name*=UTF-8''model\r\n\r\nother"], "400 invalid_request_body"],
    ] as const) {
      const refused = call(`${gateway.url()}/v1/images/edits`, { method: "POST", ...form(...fields) });
      assert.equal(await readRefusal(refused), refusal);
    }
    assert.equal(one.seen.length, seen, "nothing is sent");
  },
);
