import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { CorsSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../src/lib/errors.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import type { Reply } from "../../../../src/proxy/exchange/exchange.ts";
import { cors } from "../../../../src/proxy/policies/cors.ts";
import { type ExchangeParts, makeDeps, makeExchange, makeReply } from "../../../support/gateway/exchange.ts";

type Spec = MessageInitShape<typeof CorsSchema>;

async function answer(spec: Spec, parts: ExchangeParts, upstream: string[] = ["content-type", "x"]): Promise<Reply> {
  const policy = cors.compile(create(CorsSchema, { maxAgeSeconds: 5, ...spec }), makeDeps());
  return policy(makeExchange(parts), () => makeReply({ headers: new HeaderList(upstream) }));
}

function fromPage(origin: string, ...headers: string[]): ExchangeParts {
  return { headers: ["origin", origin, ...headers] };
}

function preflight(origin: string, ...headers: string[]): ExchangeParts {
  return { method: "OPTIONS", headers: ["origin", origin, "access-control-request-method", "PUT", ...headers] };
}

async function allows(spec: Spec, origin: string): Promise<boolean> {
  return (await answer(spec, fromPage(origin))).headers.has("access-control-allow-origin");
}

test("without an origin nothing happens, also to OPTIONS", async () => {
  const reply = await answer({ allowOrigins: ["*"] }, { method: "OPTIONS" });
  assert.deepEqual(reply.headers.raw, ["content-type", "x"]);
});

test("an origin matches by scheme, host and port, and a missing port is the scheme's own", async () => {
  const spec = { allowOrigins: ["https://a.example", "http://b.example:8080"] };
  for (const origin of ["https://a.example", "https://a.example:443", "HTTPS://A.EXAMPLE", "http://b.example:8080"])
    assert.ok(await allows(spec, origin), origin);
  for (const origin of ["http://a.example", "https://a.example:8443", "https://a.example.evil", "http://b.example"])
    assert.ok(!(await allows(spec, origin)), origin);
  for (const origin of ["null", "https://a.example/", "https://x@a.example", "https://a.example, https://b", ""])
    assert.ok(!(await allows(spec, origin)), origin);
});

test("a wildcard host stands for at least one label, and a star alone for every origin", async () => {
  const spec = { allowOrigins: ["https://*.example.com", "http://*:8080"] };
  for (const origin of ["https://a.example.com", "https://a.b.example.com", "http://anything:8080"])
    assert.ok(await allows(spec, origin), origin);
  for (const origin of ["https://example.com", "https://.example.com", "https://evilexample.com", "http://a.example"])
    assert.ok(!(await allows(spec, origin)), origin);
  assert.ok(await allows({ allowOrigins: ["*"] }, "null"));
});

test("a pattern that is no origin is a configuration error", () => {
  for (const pattern of ["a.example", "https://a*.example", "https://*.*.example", "ftp://a"])
    assert.throws(
      () => cors.compile(create(CorsSchema, { allowOrigins: [pattern] }), makeDeps()),
      ConfigError,
      pattern,
    );
});

test("a preflight of an allowed origin is answered with what is allowed", async () => {
  const spec = {
    allowOrigins: ["https://a.example"],
    allowMethods: ["PUT", "GET"],
    allowHeaders: ["x-a", "x-b"],
    exposeHeaders: ["x-c"],
    allowCredentials: true,
    maxAgeSeconds: 60,
  };
  const { status, headers, body } = await answer(spec, preflight("https://a.example"));
  assert.equal(status, 200);
  assert.equal(body, null);
  const expected = HeaderList.of({
    "access-control-allow-origin": "https://a.example",
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "x-c",
    vary: "Origin",
    "access-control-allow-methods": "PUT, GET",
    "access-control-allow-headers": "x-a, x-b",
    "access-control-max-age": "60",
  });
  assert.deepEqual(headers.raw, expected.raw);
});

test("a preflight of another origin is answered empty, and other requests of it go on without a mark", async () => {
  const spec = { allowOrigins: ["https://a.example"] };
  const refused = await answer(spec, preflight("https://evil.example"));
  assert.equal(refused.status, 200);
  assert.deepEqual(refused.headers.raw, []);
  const passed = await answer(spec, fromPage("https://evil.example"));
  assert.deepEqual(passed.headers.raw, ["content-type", "x"]);
  const options = await answer(spec, { method: "OPTIONS", headers: ["origin", "https://evil.example"] });
  assert.deepEqual(options.headers.raw, ["content-type", "x"]);
});

test("a star echoes what was asked for; with nothing to echo it is sent unless credentials are on", async () => {
  const spec = { allowOrigins: ["*"], allowMethods: ["*"], allowHeaders: ["*"] };
  const asked = await answer(spec, preflight("https://a.example", "access-control-request-headers", "x-a, x-b"));
  assert.equal(asked.headers.get("access-control-allow-methods"), "PUT");
  assert.equal(asked.headers.get("access-control-allow-headers"), "x-a, x-b");
  assert.equal((await answer(spec, preflight("https://a.example"))).headers.get("access-control-allow-headers"), "*");
  const secured = await answer({ ...spec, allowCredentials: true }, preflight("https://a.example"));
  assert.equal(secured.headers.has("access-control-allow-headers"), false);
});

test("the policy replaces what an upstream says, and never widens it", async () => {
  const upstream = HeaderList.of({
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Expose-Headers": "x-secret",
    Vary: "accept-encoding, origin",
  });
  const spec = { allowOrigins: ["https://a.example"] };
  const { headers } = await answer(spec, fromPage("https://a.example"), upstream.raw);
  const expected = HeaderList.of({
    "Access-Control-Allow-Origin": "https://a.example",
    Vary: "accept-encoding, origin",
  });
  assert.deepEqual(headers.raw, expected.raw);
});
