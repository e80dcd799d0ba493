import fc from "fast-check";
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJwks } from "../../../../../src/translator/policies/jwks/jwks.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

const ED = { kid: "ed", kty: "OKP", crv: "Ed25519", x: "AA" };

function kids(...keys: readonly unknown[]): string[] | string {
  const parsed = parseJwks(JSON.stringify({ keys }));
  return typeof parsed === "string" ? parsed : parsed.map(({ id }) => id);
}

test("keys for signatures are taken, all others are left out", () => {
  assert.deepEqual(kids(ED, { ...ED, kid: "enc", use: "enc" }, { kty: "oct", kid: "hmac", k: "AA" }), ["ed"]);
  assert.deepEqual(kids(ED, { ...ED, kid: "sign", key_ops: ["sign"] }, { ...ED, kid: "ok", key_ops: ["verify"] }), [
    "ed",
    "ok",
  ]);
  assert.deepEqual(kids(ED, { ...ED, kid: "none", alg: "none" }, { ...ED, kid: "hs", alg: "HS256" }), ["ed"]);
  assert.deepEqual(kids(ED, { ...ED, kid: "" }, { ...ED, kid: 7 }, { ...ED, kid: undefined }, null, [], "x"), ["ed"]);
  assert.deepEqual(kids(ED, { ...ED, kid: "x25519", crv: "X25519" }, { ...ED, kid: "empty", x: "" }), ["ed"]);
});

test("members of a private key never leave", () => {
  const [key] = parseJwks(JSON.stringify({ keys: [{ ...ED, d: "top-secret", p: "top-secret", k: "top-secret" }] }));
  assert.ok(typeof key === "object" && !JSON.stringify(key).includes("top-secret"));
});

test("a set that cannot be used says why and repeats nothing of it", () => {
  for (const text of ["", "{", "[]", "null", '"keys"', '{"keys": {}}', '{"keys": [{"d": "top-secret"'])
    assert.equal(parseJwks(text), "not a JSON Web Key Set: an object with a list keys", text);
  assert.match(String(kids({ ...ED, d: "top-secret", use: "enc" })), /^no key of the set can be used(?!.*top-secret)/);
  assert.match(String(kids(...Array.from({ length: 129 }, () => ED))), /128 keys at most/);
});

test("no text and no JSON makes it throw", () => {
  assertProperty(fc.property(fc.string(), (text) => void parseJwks(text)));
  const key = fc.record({
    kid: fc.anything(),
    kty: fc.constantFrom("RSA", "EC", "OKP", "__proto__", 1),
    n: fc.anything(),
  });
  assertProperty(
    fc.property(fc.oneof(fc.jsonValue(), fc.record({ keys: fc.array(key) })), (value) => {
      const parsed = parseJwks(JSON.stringify(value) ?? "");
      assert.ok(typeof parsed === "string" || parsed.length > 0);
    }),
  );
});
