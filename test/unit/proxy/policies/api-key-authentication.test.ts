import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { ApiKeyAuthenticationSchema, AuthenticationMode } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../src/lib/errors.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { apiKeyAuthentication } from "../../../../src/proxy/policies/api-key-authentication.ts";
import {
  type ExchangeParts,
  makeDeps,
  makeExchange,
  makeReply,
  type TestExchange,
} from "../../../support/gateway/exchange.ts";

const KEY = "sk-test-1";
const KEYS = [
  { sha256: createHash("sha256").update(KEY).digest(), metadataJson: '{"group":"eng","key":"from metadata"}' },
];

function run(spec: MessageInitShape<typeof ApiKeyAuthenticationSchema>, parts: ExchangeParts): TestExchange {
  const exchange = makeExchange(parts);
  const reply = makeReply();
  const complete = create(ApiKeyAuthenticationSchema, { keys: KEYS, mode: AuthenticationMode.STRICT, ...spec });
  assert.equal(
    apiKeyAuthentication.compile(complete, makeDeps())(exchange, () => reply),
    reply,
  );
  return exchange;
}

function fails(code: string): (error: unknown) => boolean {
  return (error) => error instanceof ProxyError && error.code === code;
}

test("a known key passes, is taken out of the request and gives its metadata to expressions", () => {
  const exchange = run({}, { headers: ["Authorization", `Bearer ${KEY}`, "Accept", "*/*"] });
  assert.deepEqual(exchange.requestHeaders.raw, ["Accept", "*/*"]);
  const { expression } = makeDeps();
  assert.equal(expression("apiKey.group", "request").evaluate(exchange), "eng");
  assert.equal(expression("apiKey.key", "request").evaluate(exchange), "<redacted>");
  assert.equal(expression("apiKey.key.unredacted()", "request").evaluate(exchange), KEY);
});

test("the scheme word of the header compares without case", () => {
  assert.equal(run({}, { headers: ["authorization", `bearer ${KEY}`] }).requestHeaders.has("authorization"), false);
});

test("a header without the prefix, or with nothing behind it, is a missing key", () => {
  for (const value of [KEY, `Basic ${KEY}`, "Bearer ", "Bearer"]) {
    assert.throws(() => run({}, { headers: ["Authorization", value] }), fails("api_key_missing"));
  }
});

test("an unknown key is refused and its text is nowhere in the error", () => {
  assert.throws(
    () => run({}, { headers: ["Authorization", "Bearer sk-wrong"] }),
    (error) => fails("api_key_invalid")(error) && !JSON.stringify({ ...(error as object) }).includes("sk-wrong"),
  );
});

test("optional lets a missing key pass and refuses a wrong one", () => {
  const mode = AuthenticationMode.OPTIONAL;
  assert.equal(run({ mode }, {}).roots.has("apiKey"), false);
  assert.throws(() => run({ mode }, { headers: ["Authorization", "Bearer x"] }), fails("api_key_invalid"));
});

test("permissive lets everything pass and identifies only known keys", () => {
  const mode = AuthenticationMode.PERMISSIVE;
  assert.equal(run({ mode }, { headers: ["Authorization", "Bearer x"] }).roots.has("apiKey"), false);
  assert.equal(run({ mode }, { headers: ["Authorization", `Bearer ${KEY}`] }).roots.has("apiKey"), true);
});

test("a key in a query parameter is read decoded and removed, the other parameters keep their bytes", () => {
  const location = { location: { case: "queryParameter", value: "api key" } } as const;
  const exchange = run({ location }, { target: `/v1?a=%7e&api+key=${KEY.replace("-", "%2D")}&b=+&api%20key=${KEY}` });
  assert.equal(exchange.target, "/v1?a=%7e&b=+");
  assert.equal(run({ location }, { target: `/v1?api+key=${KEY}` }).target, "/v1");
});

test("a key in a cookie is removed and the other cookies stay", () => {
  const location = { location: { case: "cookie", value: "key" } } as const;
  const exchange = run({ location }, { headers: ["Cookie", `a=1; key=${KEY}; b=2`] });
  assert.equal(exchange.requestHeaders.get("cookie"), "a=1; b=2");
  assert.equal(run({ location }, { headers: ["Cookie", `key=${KEY}`] }).requestHeaders.has("cookie"), false);
});

test("a key found by an expression works, and a failing expression is a missing key", () => {
  const location = { location: { case: "expression", value: 'request.headers["x-key"]' } } as const;
  assert.equal(run({ location }, { headers: ["X-Key", KEY] }).roots.has("apiKey"), true);
  assert.throws(() => run({ location }, {}), fails("api_key_missing"));
});

test("metadata that are not a JSON object are a configuration error", () => {
  for (const metadataJson of ["[1]", "nope", "null"]) {
    const spec = create(ApiKeyAuthenticationSchema, { keys: [{ sha256: new Uint8Array(32), metadataJson }] });
    assert.throws(() => apiKeyAuthentication.compile(spec, makeDeps()), ConfigError);
  }
});
