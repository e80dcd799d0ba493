/** Errors on routes to models, as the official clients read them: from policies, from the gateway itself and from providers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { test, type TestContext } from "node:test";
import { isOperation } from "../../../src/proxy/llm/operations/index.ts";
import { CLIENT_FORMATS } from "../../../src/proxy/llm/client-formats/index.ts";
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
import { BAD, GOOD, UNREADABLE, UNSERVED } from "../../support/gateway/llm-requests.ts";
import { type Answer, call } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { startUpstream, type TestUpstream } from "../../support/servers/upstream.ts";

const TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "invalid_request_error",
  429: "rate_limit_error",
};
const GOOGLE: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  413: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  501: "UNIMPLEMENTED",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

function backend(name: string, provider: string, port: number, more = ""): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: {provider: {${provider}, host: 127.0.0.1, port: ${port}}}
${more}`;
}

interface Served {
  readonly gateway: TestGateway;
  readonly provider: TestUpstream;
}

/** Routes by name at /name: each to a provider that counts what reaches it. @param answer of the provider */
async function serve(
  t: TestContext,
  manifests: (port: number) => readonly string[],
  answer: (path: string) => { status: number; body: string; type?: string } = () => ({ status: 200, body: "{}" }),
): Promise<Served> {
  const provider = await startUpstream((request, response) => {
    request.resume();
    request.on("end", () => {
      const { status, body, type = "application/json" } = answer(request.headers["x-case"] as string);
      response.writeHead(status, { "content-type": type });
      response.end(body);
    });
  });
  t.after(() => provider.close());
  const gateway = await startGateway(contextOf(t), documents(GATEWAY, ...manifests(provider.port)));
  return { gateway, provider };
}

const KEYS = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {one: good-key}
`;

interface Refusal {
  readonly name: string;
  readonly status: number;
  readonly message: string;
  /** `spec.traffic` of a policy on the route, as YAML flow members. */
  readonly traffic: string;
  /** A header that comes with it. */
  readonly header?: string;
  /** It may come before the choice of a route. */
  readonly early?: true;
  /** Requests that are let through before. */
  readonly first?: number;
}

const REFUSALS: readonly Refusal[] = [
  {
    name: "key",
    status: 401,
    message: "api key authentication failure: no API Key found",
    traffic: "apiKeyAuthentication: {secretRef: {name: keys}, location: {header: {name: x-key}}}",
    header: "www-authenticate",
    early: true,
  },
  {
    name: "denied",
    status: 403,
    message: "authorization failed",
    traffic: "authorization: {action: Deny, policy: {matchExpressions: ['true']}}",
    early: true,
  },
  {
    name: "limited",
    status: 429,
    message: "rate limit exceeded",
    traffic: "rateLimit: {local: [{requests: 1, unit: Hours}]}",
    header: "x-ratelimit-limit",
    first: 1,
  },
  {
    name: "long",
    status: 413,
    message: "Payload Too Large: the limit is 4 bytes",
    traffic: "buffer: {request: {maxBytes: 4}}",
  },
  {
    name: "slow",
    status: 504,
    message: "request timeout",
    traffic: "timeouts: {request: 50ms}, delay: {duration: 1h}",
  },
];

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => assert.fail("it was answered"),
    (error: unknown) => error,
  );
}

function openAi(gateway: TestGateway, prefix = ""): OpenAI {
  return new OpenAI({ apiKey: "client", baseURL: `${gateway.url()}${prefix}/v1`, maxRetries: 0 });
}

function anthropic(gateway: TestGateway, prefix = ""): Anthropic {
  return new Anthropic({ apiKey: "client", baseURL: `${gateway.url()}${prefix}`, maxRetries: 0 });
}

/** @returns what each official client makes of the answer: status, message, type, code */
async function chat(client: OpenAI, headers: Record<string, string> = {}): Promise<readonly unknown[]> {
  const error = await failureOf(
    client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "hi" }] }, { headers }),
  );
  assert.ok(error instanceof OpenAI.APIError, String(error));
  const { message } = error.error as { message?: string };
  return [error.status, message, error.type, error.code];
}

async function message(client: Anthropic): Promise<readonly unknown[]> {
  const error = await failureOf(
    client.messages.create({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] }),
  );
  assert.ok(error instanceof Anthropic.APIError, String(error));
  const body = error.error as { type: string; error: { type: string; message: string } };
  assert.equal(body.type, "error");
  assert.deepEqual(Object.keys(body.error).sort(), ["message", "type"]);
  return [error.status, body.error.message, error.type];
}

function post(gateway: TestGateway, path: string, body = "{}"): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  return call(gateway.url() + path, { method: "POST", headers, body });
}

for (const phase of ["PostRouting", "PreRouting"])
  test(`what a policy refuses is read by the official clients (${phase})`, async (t) => {
    for (const each of REFUSALS) {
      // The others may only stand after the choice of a route.
      const isEarly = phase === "PreRouting";
      if (isEarly && each.early !== true) continue;
      const says = `  traffic: {${isEarly ? "phase: PreRouting, " : ""}${each.traffic}}`;
      const policy = isEarly ? gatewayPolicy("p", says) : routePolicy("p", "ai", says);
      const { gateway, provider } = await serve(t, (port) => [
        KEYS,
        backend("ai", "llma: {}", port),
        route("ai", "ai"),
        policy,
      ]);
      for (let at = 0; at < (each.first ?? 0); at++) await post(gateway, "/v1/chat/completions");
      const { length } = provider.requests;
      const type = TYPES[each.status] ?? "api_error";
      const code = each.status === 413 ? "request_body_too_large" : null;
      assert.deepEqual(await chat(openAi(gateway)), [each.status, each.message, type, code], each.name);
      assert.deepEqual(await message(anthropic(gateway)), [each.status, each.message, type], each.name);
      const google = await post(gateway, "/v1beta/models/g:generateContent", "long enough");
      assert.deepEqual(JSON.parse(google.body), {
        error: { code: each.status, message: each.message, status: GOOGLE[each.status] },
      });
      assert.equal(google.headers["content-type"], "application/json");
      assert.ok(google.headers["x-request-id"]);
      if (each.header !== undefined) assert.ok(google.headers[each.header], each.header);
      assert.equal(provider.requests.length, length, "nothing is sent upstream");
    }
  });

test("what the gateway itself fails in is read by the official clients", async (t) => {
  const cases: readonly (readonly [string, number, string, readonly string[]])[] = [
    ["unreachable", 503, "upstream call failed", [backend("ai", "llma: {}", 1)]],
    [
      "closed",
      500,
      "this route is closed by an invalid policy",
      [
        backend("ai", "llma: {}", 1),
        routePolicy("p", "ai", "  traffic: {jwtAuthentication: {providers: [{issuer: i, jwks: {inline: '{'}}]}}"),
      ],
    ],
  ];
  for (const [name, status, text, manifests] of cases) {
    const { gateway } = await serve(t, () => [...manifests, route("ai", "ai")]);
    assert.deepEqual(await chat(openAi(gateway)), [status, text, "api_error", null], name);
    const type = status === 503 ? "overloaded_error" : "api_error";
    assert.deepEqual(await message(anthropic(gateway)), [status, text, type], name);
  }
});

test("other routes, other answers and CONNECT stay as they are", async (t) => {
  const { gateway } = await serve(t, (port) => [
    backend("ai", "llma: {}", port),
    staticBackend("web", port),
    route("ai", "ai", "/ai"),
    route("direct", "ai", "/direct"),
    route("web", "web", "/web"),
    `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: both}
spec:
  parentRefs: [{name: gw}]
  rules:
    - matches: [{path: {value: /both}}]
      backendRefs:
        - {group: gwproxy.dev, kind: GwBackend, name: ai, weight: 0}
        - {group: gwproxy.dev, kind: GwBackend, name: nothing}
`,
    routePolicy("deny", "web", "  traffic: {authorization: {action: Deny, policy: {matchExpressions: ['true']}}}"),
    routePolicy(
      "deny-both",
      "both",
      "  traffic: {authorization: {action: Deny, policy: {matchExpressions: ['true']}}}",
    ),
    routePolicy("direct", "direct", "  traffic: {directResponse: {status: 418, body: short and stout}}"),
  ]);
  const web = await post(gateway, "/web/v1/chat/completions");
  assert.deepEqual(
    [web.status, web.headers["content-type"], web.body],
    [403, "text/plain; charset=utf-8", "authorization failed"],
  );
  const direct = await post(gateway, "/direct/v1/chat/completions");
  assert.deepEqual([direct.status, direct.body], [418, "short and stout"]);
  const none = await post(gateway, "/nothing/v1/chat/completions");
  assert.deepEqual([none.status, none.body], [404, "route not found"]);
  const both = await post(gateway, "/both/v1/messages");
  assert.deepEqual(JSON.parse(both.body), {
    type: "error",
    error: { type: "permission_error", message: "authorization failed" },
  });
  const grpc = await call(`${gateway.url()}/ai/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/grpc" },
    body: "x",
  });
  assert.deepEqual([grpc.status, grpc.headers["grpc-status"], grpc.body], [200, "13", ""]);
});

test("what is not served yet is 501 in the format of its clients, with every provider and for every body", async (t) => {
  const { gateway, provider } = await serve(t, (port) => [
    backend("a", "llma: {}", port),
    route("a", "a", "/a"),
    backend("e", "llme: {}", port),
    route("e", "e", "/e"),
    backend("c", "custom: {formats: [{type: Completions}, {type: Messages}, {type: Embeddings}]}", port),
    route("c", "c", "/c"),
  ]);
  const bodies = ['{"model":"m","messages":[{"role":"user","content":"hi"}],"input":"x"}', ""];
  for (const prefix of ["/a", "/e", "/c"])
    for (const [path, format, shape, method = "POST"] of UNSERVED)
      for (const body of method === "GET" ? [""] : bodies) {
        const headers = { "content-type": "application/json" };
        const answer = await call(gateway.url() + prefix + path, { method, headers, body });
        const text = `failed to process LLM request: ${format} requests are not served yet`;
        assert.deepEqual([answer.status, answer.headers["content-type"]], [501, "application/json"], path);
        const shapes = {
          openai: { error: { message: text, type: "api_error", param: null, code: null } },
          anthropic: { type: "error", error: { type: "api_error", message: text } },
          google: { error: { code: 501, message: text, status: "UNIMPLEMENTED" } },
        };
        assert.deepEqual(JSON.parse(answer.body), shapes[shape], path);
      }
  assert.equal(provider.requests.length, 0);
  const named = new Set(UNSERVED.map(([, format]) => format));
  const rows = CLIENT_FORMATS.filter(({ name, format }) => format === undefined && !isOperation(name)).map(
    ({ name }) => name,
  );
  assert.deepEqual(
    rows.filter((name) => !named.has(name)),
    [],
    "every row of the table is called",
  );
});

test("an upgrade on a path of Responses is 426, on which its clients fall back to HTTP", async (t) => {
  const { gateway } = await serve(t, (port) => [backend("ai", "llme: {}", port), route("ai", "ai")]);
  const headers = {
    connection: "upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAA",
  };
  const sent = request(`${gateway.url()}/v1/responses`, { headers });
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  assert.deepEqual([response.statusCode, response.headers["upgrade"]], [426, undefined]);
});

test("a body of the wrong shape is 400 with the place, reaches nobody and costs no tokens", async (t) => {
  const { gateway, provider } = await serve(t, (port) => [
    backend("a", "llma: {}", port),
    route("a", "a", "/a"),
    backend("e", "llme: {}", port),
    route("e", "e", "/e"),
    ...["a", "e"].map((name) => routePolicy(name, name, "  traffic: {rateLimit: {local: [{tokens: 1, unit: Hours}]}}")),
  ]);
  const refuse = async (prefix: string, body: unknown, path: RegExp): Promise<void> => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await post(gateway, `${prefix}/v1/chat/completions`, text);
    assert.equal(answer.status, 400, `${text} ${answer.body}`);
    const { error } = JSON.parse(answer.body) as { error: Record<string, unknown> };
    assert.match(String(error["message"]), path, text);
    assert.equal(error["type"], "invalid_request_error", text);
    const [, about] = /(missing field: model|model must be)/.exec(String(error["message"])) ?? [];
    const codes: Readonly<Record<string, string>> = {
      "missing field: model": "missing_model",
      "model must be": "invalid_model",
    };
    assert.equal(error["code"], codes[about ?? ""] ?? "invalid_request_body", text);
  };
  for (const [body, path] of BAD) for (const prefix of ["/a", "/e"]) await refuse(prefix, body, path);
  for (const [body, path] of UNREADABLE) await refuse("/e", body, path);
  assert.equal(provider.requests.length, 0);
  // One token is left, as at the beginning: the request is sent.
  for (const prefix of ["/a", "/e"]) await post(gateway, `${prefix}/v1/chat/completions`, JSON.stringify(GOOD));
  assert.equal(provider.requests.length, 2);
});

test("what a provider refuses is read by the official client, translated or not", async (t) => {
  const kinds: Readonly<Record<number, string>> = {
    ...TYPES,
    403: "permission_error",
    500: "api_error",
    503: "api_error",
  };
  const { gateway } = await serve(
    t,
    (port) => [
      backend("a", "llma: {}", port),
      route("a", "a", "/a"),
      backend("e", "llme: {}", port),
      route("e", "e", "/e"),
    ],
    (wanted) => {
      const [vendor, status] = wanted.split(" ");
      const error = { type: kinds[Number(status)], message: `refused with ${status}`, param: null, code: "own" };
      return { status: Number(status), body: JSON.stringify(vendor === "a" ? { error } : { type: "error", error }) };
    },
  );
  for (const vendor of ["a", "e"])
    for (const status of [400, 401, 403, 404, 429, 500, 503]) {
      const seen = await chat(openAi(gateway, `/${vendor}`), { "x-case": `${vendor} ${status}` });
      const code = vendor === "a" ? "own" : null;
      assert.deepEqual(seen, [status, `refused with ${status}`, kinds[status], code], vendor);
    }
});
