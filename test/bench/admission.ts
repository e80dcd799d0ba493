/**
 * Measures admission in a process of its own, from a bundle as the product is one: the loader that runs sources gives
 * each function its name while it runs, which costs the small ones more than what they do.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";

const HERE = import.meta.dirname;
/** As deep as test/support/fixtures/objects, which looks for the schemas by its distance from them. */
const BUNDLE = join(HERE, "../../.tmp/bench/admission/objects/run.mjs");
const REQUIRE = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;

/** @returns a table, ready to be printed */
export async function admissionTable(): Promise<string> {
  await build({
    entryPoints: [join(HERE, "admission-run.ts")],
    outfile: BUNDLE,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node24",
    banner: { js: REQUIRE },
    logLevel: "warning",
  });
  const { stdout } = await promisify(execFile)(process.execPath, [BUNDLE]);
  return stdout;
}
