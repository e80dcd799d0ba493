/**
 * Measures admission in a process of its own and from a bundle, as users run it. The loader that runs TypeScript
 * sources sets the name of each function at run time, which for small functions costs more than their work.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";

const HERE = import.meta.dirname;
/** Lies as deep as test/support/fixtures/objects, which finds the schemas by a relative path. */
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
