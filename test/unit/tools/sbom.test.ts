/** The bill of materials of the images: what is in them, with the checksums of the lock file. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderSbom, type SbomInput } from "../../../tools/sbom.ts";

const INTEGRITY = `sha512-${Buffer.alloc(64, 7).toString("base64")}`;
const INPUT: SbomInput = {
  version: "1.2.3",
  packages: ["node_modules/b", "node_modules/a/node_modules/@scope/name"],
  lock: {
    packages: {
      "node_modules/b": { version: "2.0.0", integrity: INTEGRITY, license: "MIT" },
      "node_modules/a/node_modules/@scope/name": { version: "1.0.0", integrity: INTEGRITY },
    },
  },
  nodeVersion: "24.0.0",
  files: new Map([["/lib/libm.so.6", Buffer.from("library")]]),
};

test("every bundled package is named with the checksum of its tarball, beside Node and its libraries", () => {
  const { components } = JSON.parse(renderSbom(INPUT)) as { components: readonly object[] };
  const hashes = [{ alg: "SHA-512", content: "07".repeat(64) }];
  assert.partialDeepStrictEqual(components, [
    { type: "library", name: "@scope/name", purl: "pkg:npm/%40scope/name@1.0.0", hashes },
    { type: "library", name: "b", purl: "pkg:npm/b@2.0.0", hashes, licenses: [{ expression: "MIT" }] },
    { type: "application", purl: "pkg:generic/node@24.0.0" },
    { type: "file", name: "/lib/libm.so.6" },
  ]);
  assert.equal(components.length, 4);
});

test("equal inputs give equal bytes, and a package that is not pinned is an error", () => {
  assert.equal(renderSbom(INPUT), renderSbom({ ...INPUT, packages: INPUT.packages.toReversed() }));
  assert.throws(() => renderSbom({ ...INPUT, packages: ["node_modules/c"] }), /node_modules\/c is bundled, but/);
});
