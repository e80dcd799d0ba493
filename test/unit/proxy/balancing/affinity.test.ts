/** The hashes of session affinity, against vectors made with the C library of xxHash (0.8.4) and whole numbers of Python. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as uint64 from "../../../../src/lib/uint64.ts";
import { pickByHash, hashKey, hashEndpoint, mix, SessionKey } from "../../../../src/proxy/balancing/affinity.ts";
import { makeExchange } from "../../../support/gateway/exchange.ts";
import { testMembers } from "../../../support/gateway/endpoints.ts";

test("key and member give the number that all replicas and versions agree on", () => {
  const vectors: readonly [string, string, string][] = [
    ["alice", "10.0.0.1:8080", "50f0c0121496a7fe"],
    ["bob", "10.0.0.1:8080", "ffeb418ed6039e97"],
    ["Zoë", "provider-a", "07d6984aa82f742f"],
    ["x".repeat(300), "10.0.0.2:8080", "0c4a1d0c3364e346"],
  ];
  for (const [key, member, expected] of vectors) {
    const hash = hashKey(key);
    assert.ok(hash);
    mix(hash, hashEndpoint(member));
    const hex = [uint64.high, uint64.low].map((half) => half.toString(16).padStart(8, "0")).join("");
    assert.equal(hex, expected, `${key} on ${member}`);
  }
});

test("text and bytes are keys, what is empty or anything else is none", () => {
  assert.deepEqual(hashKey("alice"), hashKey(Buffer.from("alice")));
  assert.deepEqual(hashKey(new Uint8Array([1, 2])), hashKey(Buffer.from([1, 2])));
  for (const value of ["", new Uint8Array(), 7n, true, null, undefined, ["a"]]) assert.equal(hashKey(value), undefined);
});

test("the preferred one is the same in whatever order members are listed", () => {
  const key = hashKey("alice");
  assert.ok(key);
  for (const capacities of [
    [1, 1, 1],
    [1, 2, 5],
  ]) {
    const [a, b, c] = ["a", "b", "c"].map((name, at) => ({
      name,
      capacity: capacities[at] ?? 1,
      hash: hashEndpoint(name),
    }));
    assert.ok(a && b && c);
    const names: string[] = [
      pickByHash(key, [a, b, c]),
      pickByHash(key, [c, b, a]),
      pickByHash(key, [b, c, a]),
      pickByHash(key, [b, a, c]),
    ].map(({ name }) => name);
    assert.equal(new Set(names).size, 1, names.join());
  }
});

test("the key of a session is what its expression yields; one that fails is none, and the body is read when it is asked for", async () => {
  const { expression } = testMembers();
  const key = (source: string) =>
    new SessionKey({ $typeName: "gwproxy.config.v1.SessionAffinity", source }, expression);
  const exchange = makeExchange({ headers: ["user", "alice"], body: Buffer.from("alice") });
  assert.deepEqual(key("request.headers['user']").of(exchange), hashKey("alice"));
  assert.equal(key("request.headers['other']").of(exchange), undefined);
  assert.equal(key("1 + 1").of(exchange), undefined);
  const body = key("request.body").of(exchange);
  assert.ok(body instanceof Promise);
  assert.deepEqual(await body, hashKey("alice"));
});
