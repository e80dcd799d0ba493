/**
 * Tells the parent process which test proves which field: loads every feature test that has proofs. To be started with
 * a name pattern that no test has, because loading a file starts its tests.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { proofs } from "../support/proofs/prove.ts";

const ROOT = join(import.meta.dirname, "../..");
const found: [field: string, proof: { file: string; name: string }][] = [];

for (const file of globSync("test/feature/**/*.test.ts", { cwd: ROOT }).sort()) {
  // Hooks run whatever the pattern says, so a file without proofs is left alone.
  if (!readFileSync(join(ROOT, file), "utf8").includes("support/proofs/prove.ts")) continue;
  const before = proofs.length;
  await import(join(ROOT, file));
  for (const { field, name } of proofs.slice(before)) found.push([field, { file, name }]);
}
// Loading feature files may have left handles open; the list is complete.
process.send?.(found, () => process.exit(0));
