/** Sealed texts open with their keys and for their purpose only. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Seal } from "../../../../../src/proxy/mcp/session/seal.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

const [old, current] = [randomBytes(32), randomBytes(32)];
const seal = new Seal([current, old]);

describe("a seal", () => {
  it("opens what it has sealed, and seals the same bytes differently each time", () => {
    assertProperty(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = seal.seal("session", bytes);
        assert.match(text, /^[A-Za-z0-9_-]+$/);
        assert.deepEqual(seal.open("session", text), Buffer.from(bytes));
        assert.notEqual(seal.seal("session", bytes), text);
      }),
    );
  });

  it("opens what any of its keys has sealed, and seals with the first", () => {
    assert.deepEqual(seal.open("cursor", new Seal([old]).seal("cursor", Buffer.from("x"))), Buffer.from("x"));
    const text = seal.seal("cursor", Buffer.from("x"));
    assert.deepEqual(new Seal([current]).open("cursor", text), Buffer.from("x"));
    assert.equal(new Seal([old]).open("cursor", text), undefined);
  });

  it("does not open a text for another purpose", () => {
    assert.equal(seal.open("cursor", seal.seal("session", Buffer.from("x"))), undefined);
  });

  it("does not open a text that differs in one bit, in its length or in its spelling", () => {
    const text = seal.seal("session", Buffer.from("state"));
    const sealed = Buffer.from(text, "base64url");
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      assert.equal(seal.open("session", changed.toString("base64url")), undefined);
    }
    for (const changed of ["", "x", text.slice(0, -1), `${text}A`, `${text}=`, ` ${text}`, text.repeat(2)])
      assert.equal(seal.open("session", changed), undefined);
  });
});
