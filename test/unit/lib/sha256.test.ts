import fc from "fast-check";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { sha256, toHex } from "../../../src/lib/sha256.ts";

test("SHA-256 agrees with the platform's for any bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      assert.equal(toHex(sha256(bytes)), createHash("sha256").update(bytes).digest("hex"));
    }),
  );
});

test("text is hashed as UTF-8", () => {
  assert.equal(toHex(sha256("kēy")), createHash("sha256").update("kēy").digest("hex"));
});
