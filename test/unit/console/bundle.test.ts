/** The files of the console as the admin server delivers them, and what its sources never use. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CONSOLE_SCRIPT, CONSOLE_STYLE } from "../../../generated/console/assets.ts";

test("script and style are below 100 kB together, and name no other server", () => {
  assert.ok(CONSOLE_SCRIPT.length + CONSOLE_STYLE.length < 100_000);
  const addresses = new Set((CONSOLE_SCRIPT + CONSOLE_STYLE).match(/https?:\/\/[^"'`\s)]+/g));
  // Names of XML vocabularies, which nothing is fetched from.
  assert.deepEqual(
    [...addresses].filter((address) => !address.startsWith("http://www.w3.org/")),
    [],
  );
});

test("no source of the console makes markup or code of a text, or keeps anything in the browser", () => {
  const folder = join(import.meta.dirname, "../../../src/console");
  const files = globSync("**/*.{ts,tsx}", { cwd: folder });
  assert.ok(files.length > 20);
  const forbidden =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\b(local|session)Storage\b/i;
  assert.deepEqual(
    files.filter((file) => forbidden.test(readFileSync(join(folder, file), "utf8"))),
    [],
  );
});
