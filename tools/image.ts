/**
 * Builds the container images of controller and proxy as one archive, dist/gwproxy-images.tar or the path in the first
 * argument (`make image`), writes a bill of materials beside it, and prints the sums of both. The images contain the
 * published program, this machine's Node and the libraries that Node needs; they have neither a shell nor a package
 * manager. Nothing is written inside them at run time, so the root file system can be read-only.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { packImages, type Image } from "./image-archive.ts";
import { renderSbom, type SbomInput } from "./sbom.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const OUT = resolve(process.argv[2] ?? join(ROOT, "dist/gwproxy-images.tar"));
const SBOM = OUT.replace(/(?:\.tar)?$/, ".cdx.json");
const REGISTRY = "ghcr.io/gwproxy";
const USER = "10101";
// The cast is safe: package.json is our own file.
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
const images = ["controller", "proxy"].map((command): Image => ({
  // The chart asks for the tag with a "v", as other charts do; `gwproxy controller` by itself for the bare version.
  names: [`${REGISTRY}/${command}:${version}`, `${REGISTRY}/${command}:v${version}`],
  entrypoint: ["/usr/bin/node", "--enable-source-maps", "/app/bin/gwproxy.mjs", command],
  user: `${USER}:${USER}`,
}));

const root = mkdtempSync(join(tmpdir(), "gwproxy-root-"));
try {
  const app = join(root, "app");
  execFileSync(process.execPath, [join(ROOT, "tools/package.ts"), join(app, "dist")], { stdio: "inherit" });
  for (const path of ["bin", "package.json"]) cpSync(join(ROOT, path), join(app, path), { recursive: true });
  const packages = takePackages(join(app, "dist/packages.json"));
  const libraries = addNode(root);
  write("etc/passwd", `gwproxy:x:${USER}:${USER}::/:/nonexistent\n`);
  write("etc/group", `gwproxy:x:${USER}:\n`);
  // Without this file the C library asks name servers before it reads /etc/hosts.
  write("etc/nsswitch.conf", "hosts: files dns\n");
  mkdirSync(dirname(OUT), { recursive: true });
  packImages(root, images, OUT);
  writeFileSync(SBOM, describe(packages, libraries));
} finally {
  rmSync(root, { recursive: true, force: true });
}
process.stdout.write(`${images.flatMap(({ names }) => names).join(", ")}\n`);
for (const path of [OUT, SBOM]) process.stdout.write(`${sha256(path)}  ${path}\n`);

/** Reads the packages that the bundle holds, and leaves the list out of the images. */
function takePackages(path: string): readonly string[] {
  const packages = JSON.parse(readFileSync(path, "utf8")) as readonly string[]; // written by tools/package.ts
  rmSync(path);
  return packages;
}

function describe(packages: readonly string[], libraries: readonly string[]): string {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as SbomInput["lock"]; // npm wrote it
  const paths = ["/usr/bin/node", ...libraries];
  const files = new Map(paths.map((path) => [path, readFileSync(join(root, path))]));
  return renderSbom({ version, packages, lock, nodeVersion: process.versions.node, files });
}

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/** Copies Node and its libraries to the paths where the loader looks for them. @returns paths of the libraries */
function addNode(into: string): readonly string[] {
  const linked = execFileSync("ldd", [process.execPath], { encoding: "utf8" });
  const libraries = [...linked.matchAll(/(?:=>\s+|^\s*)(\/\S+) \(0x/gm)].map((found) => found[1] as string); // the group matched
  if (libraries.length < 4) throw new Error(`the libraries of ${process.execPath} could not be found:\n${linked}`);
  for (const path of libraries) copy(path, join(into, path));
  copy(process.execPath, join(into, "usr/bin/node"));
  return libraries;
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}

function write(path: string, text: string): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
