import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { CredentialLocationSchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import {
  AMBIGUOUS,
  type CompiledLocation,
  compileLocation,
} from "../../../../../src/proxy/policies/shared/credential-location.ts";
import { makeDeps, makeExchange } from "../../../../support/gateway/exchange.ts";

function at(location: MessageInitShape<typeof CredentialLocationSchema>["location"] & object): CompiledLocation {
  return compileLocation(create(CredentialLocationSchema, { location }), makeDeps());
}

const BEARER = at({ case: "header", value: { name: "Authorization", prefix: "Bearer " } });

test("two different credentials at one place are ambiguous, twice the same is one", () => {
  const two = ["authorization", "Bearer a", "authorization", "bearer b"];
  assert.equal(BEARER.read(makeExchange({ headers: two })), AMBIGUOUS);
  const same = ["authorization", "Bearer a", "authorization", "Bearer a"];
  assert.equal(BEARER.read(makeExchange({ headers: same })), "a");
  const query = at({ case: "queryParameter", value: "k" });
  assert.equal(query.read(makeExchange({ target: "/?k=a&%6b=b" })), AMBIGUOUS);
  assert.equal(query.read(makeExchange({ target: "/?k=a&k=" })), "a");
  const cookie = at({ case: "cookie", value: "k" });
  assert.equal(cookie.read(makeExchange({ headers: ["cookie", "k=a; k=b"] })), AMBIGUOUS);
  assert.equal(cookie.read(makeExchange({ headers: ["cookie", "k=a", "cookie", "k=a"] })), "a");
});

test("a field of another scheme is that of another policy: it is not read and stays", () => {
  const exchange = makeExchange({ headers: ["authorization", "Basic x", "authorization", "Bearer a", "x-b", "1"] });
  assert.equal(BEARER.read(exchange), "a");
  BEARER.strip(exchange);
  assert.deepEqual(exchange.requestHeaders.getAll("authorization"), ["Basic x"]);
});

test("a header without a prefix gives its whole value, and all of it is taken out", () => {
  const plain = at({ case: "header", value: { name: "x-key", prefix: "" } });
  const exchange = makeExchange({ headers: ["x-key", " a b ", "x-key", "a b"] });
  assert.equal(plain.read(exchange), "a b");
  plain.strip(exchange);
  assert.deepEqual(exchange.requestHeaders.raw, []);
});

test("Proxy-Authorization is read from where it is kept and asks for 407", () => {
  const proxy = at({ case: "header", value: { name: "Proxy-Authorization", prefix: "Basic " } });
  assert.ok(proxy.forProxy && !BEARER.forProxy);
  assert.equal(proxy.read(makeExchange({ proxyAuthorization: ["Bearer x", "basic a"] })), "a");
  assert.equal(proxy.read(makeExchange({ proxyAuthorization: ["Basic a", "Basic b"] })), AMBIGUOUS);
  assert.equal(proxy.read(makeExchange({ headers: ["proxy-authorization", "Basic a"] })), undefined);
});
