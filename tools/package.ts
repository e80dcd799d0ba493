/**
 * Builds the published form in dist/ or in the folder of the first argument (`make build`). All commands are one
 * bundle, split at the dynamic imports, so that a command loads only the code that it needs. The package has no
 * dependencies, so nothing is installed twice. The types of the API and the licences of third parties are included.
 */
import { globSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { bundleConsole } from "../codegen/emit/console.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = resolve(process.argv[2] ?? join(ROOT, "dist"));
/** CommonJS packages load Node's modules with `require`, which an ES module does not have. */
const REQUIRE = `import { createRequire as createRequireOfNode } from "node:module";
const require = createRequireOfNode(import.meta.url);`;

/** Threads start from a file of their own, which is expected beside the code that starts them. */
const threads = globSync(["src/**/worker.ts", "src/**/*-worker.ts"], { cwd: ROOT });

rmSync(DIST, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: ["src/cli/main.ts", ...threads].map((file) => ({ in: file, out: `src/cli/${basename(file, ".ts")}` })),
  outdir: DIST,
  // Keep every chunk at the depth of the sources: files that are read at run time are located relative to the code.
  chunkNames: "src/cli/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  banner: { js: REQUIRE },
  // Node keeps the text of its modules in memory, so remove white space; keep names for stack traces.
  minifyWhitespace: true,
  sourcemap: "linked",
  sourcesContent: false,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
const { inputs: consoleInputs } = await bundleConsole(ROOT);
const packages = bundledPackages([...Object.keys(metafile.inputs), ...consoleInputs]);
writeFileSync(join(DIST, "LICENSES.txt"), packages.map(licenceOf).join("\n"));
// For the bill of materials of the images; it is not part of the npm package.
writeFileSync(join(DIST, "packages.json"), JSON.stringify(packages));
writeTypes(join(DIST, "types"));

/** Writes the generated types as declarations. They contain only types, so only the names of their imports change. */
function writeTypes(folder: string): void {
  const source = join(ROOT, "generated/types");
  for (const file of globSync("**/*.ts", { cwd: source })) {
    const target = join(folder, file.replace(/\.ts$/, ".d.ts"));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, readFileSync(join(source, file), "utf8").replaceAll(/(from ".*)\.ts";/g, '$1.js";'));
  }
  // For imports that remain in JavaScript, such as `import { type GwPolicy }`.
  writeFileSync(join(folder, "index.js"), "export {};\n");
}

/** @param inputs paths of bundled files, relative to the root of the project */
function bundledPackages(inputs: readonly string[]): string[] {
  return [...new Set(inputs.filter((path) => path.startsWith("node_modules/")).map(packageOf))].sort();
}

/** Returns the folder of a package, such as "node_modules/@scope/name", including nested ones. */
function packageOf(path: string): string {
  let folder = dirname(path);
  while (!/(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/.test(folder)) folder = dirname(folder);
  return folder;
}

function licenceOf(folder: string): string {
  const manifest = join(ROOT, folder, "package.json");
  // npm writes this file for every installed package.
  const { name, version, license } = JSON.parse(readFileSync(manifest, "utf8")) as Record<string, unknown>;
  const files = readdirSync(join(ROOT, folder)).filter((file) => /^(?:licen[cs]e|notice|copying)/i.test(file));
  const body = files.map((file) => readFileSync(join(ROOT, folder, file), "utf8").trim()).join("\n\n");
  return `${String(name)} ${String(version)} (${String(license)})\n\n${body}\n\n${"=".repeat(80)}\n`;
}
