/**
 * Runs the counter-proofs of the feature files given as arguments, all in this process and several at a time; started
 * by main.ts with a name pattern that only counter-proofs have, because loading a file starts its tests.
 */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { describe, test } from "node:test";
import { proofs } from "../support/proofs/prove.ts";

/** Most of them wait for something that does not come. */
const AT_ONCE = 8;
const LIMIT_MS = 60_000;

const wanted = new RegExp(process.env["GWPROXY_FIELDS_PATTERN"] ?? "");

for (const file of process.argv.slice(2)) {
  const before = proofs.length;
  await import(file);
  const name = relative(process.cwd(), file);
  const chosen = proofs.slice(before).filter(({ field }) => wanted.test(field));
  // The environment belongs to the process: proofs that change it would change it for each other.
  const concurrency = /setEnvironment|process\.env/.test(readFileSync(file, "utf8")) ? 1 : AT_ONCE;
  describe(`counter-proofs of ${name}`, { concurrency }, () => {
    for (const proof of chosen) {
      for (const { title, run } of proof.counterProofs)
        test(`counter-proof ${title}: ${proof.name} (${name})`, { timeout: LIMIT_MS }, (t) => run(t));
    }
  });
}
