/** Checksums of parts in a row, against those that zlib computes of the whole. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { joinChecksums, withChecksum } from "../../../src/lib/crc32.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

const bytes = fc.uint8Array({ maxLength: 300 });

function bigEndian(value: number): Buffer {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(value);
  return four;
}

test("the checksum of two parts follows from theirs, also when the second is empty or long", () => {
  const second = fc.oneof(
    bytes,
    fc.integer({ min: 4_000, max: 70_000 }).map((length) => new Uint8Array(length).fill(7)),
  );
  assertProperty(
    fc.property(bytes, second, (a, b) => {
      assert.equal(joinChecksums(crc32(a), crc32(b), b.length), crc32(Buffer.concat([a, b])));
    }),
  );
});

test("the checksum of a part and its checksum follows from the checksum", () => {
  assertProperty(
    fc.property(bytes, (part) => {
      const checksum = crc32(part);
      assert.equal(withChecksum(checksum), crc32(Buffer.concat([part, bigEndian(checksum)])));
    }),
  );
});
