/** The committed tree is what the generator writes from the committed schemas. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { generate } from "../../../codegen/generate.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

test("every generated file is fresh, byte by byte", async () => {
  const files = await generate(ROOT);
  const stale = [...files].filter(([path, text]) => readFileSync(ROOT + path, "utf8") !== text).map(([path]) => path);
  assert.deepEqual(stale, [], "run `make generate`");
});
