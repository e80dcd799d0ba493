/** The published form: built, put into an empty folder without node_modules, and used from there. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { CONSOLE_SCRIPT } from "../../../generated/console/assets.ts";
import { startHello } from "../../../examples/quickstart/hello.ts";
import { serveMockProvider } from "../../../examples/mock-provider/mock-provider.ts";
import { call } from "../../support/clients/http.ts";
import { freePorts } from "../../support/fixtures/free-ports.ts";
import { startGwproxy } from "../../support/gateway/process.ts";
import { checkQuickstart, quickstartManifests } from "../../support/gateway/quickstart.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../..");
let folder = "";
let bin = "";

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "gwproxy-package-"));
  await run(process.execPath, [join(ROOT, "tools/package.ts"), join(folder, "dist")]);
  for (const file of ["package.json", "bin", "crds", "generated/editor"])
    cpSync(join(ROOT, file), join(folder, file), { recursive: true });
  bin = join(folder, "bin/gwproxy.mjs");
});

after(() => rmSync(folder, { recursive: true, force: true }));

test("the package serves the quickstart", async (context) => {
  const [gateway = 0, hello = 0, provider = 0] = await freePorts(3);
  const service = await startHello(hello);
  context.after(() => void service.close());
  const mock = await serveMockProvider({ port: provider, keys: ["mock-key"] });
  context.after(() => mock.stop());
  const manifests = join(folder, "manifests");
  mkdirSync(manifests);
  for (const [file, text] of quickstartManifests({ gateway, hello, provider })) {
    writeFileSync(join(manifests, file), text);
  }
  const addresses = ["--admin-address", "--metrics-address", "--readiness-address"];
  const flags = addresses.flatMap((flag) => [flag, "127.0.0.1:0"]);
  const up = startGwproxy(context, ["up", "-f", manifests, "--bind-address", "127.0.0.1", ...flags], {}, bin);
  await up.printed(`listening on 127.0.0.1:${gateway} for Gateway default/quickstart`);
  await checkQuickstart(`http://127.0.0.1:${gateway}`);
  await up.printed(/^console at .*\n/m);
  const [, url = ""] = /^console at (http:\S+)$/m.exec(up.output()) ?? [];
  assert.match((await call(url)).body, /<script type="module" src="\/console\/app\.js">/);
  assert.equal((await call(`${url}console/app.js`)).body, CONSOLE_SCRIPT);
});

test("the package knows its version and carries the licences of what is bundled", async () => {
  const { stdout } = await run(process.execPath, [bin, "version"]);
  assert.match(stdout, /\d+\.\d+\.\d+/);
  const { stdout: found } = await run("grep", ["-cE", "^(h3|preact) .*\\(MIT\\)$", join(folder, "dist/LICENSES.txt")]);
  assert.equal(found.trim(), "2");
});

test("the package generates types by itself", async () => {
  const args = [bin, "generate", "types", join(ROOT, "crds/gwproxy.dev_gwbackends.yaml")];
  const { stdout } = await run(process.execPath, args, { maxBuffer: 1 << 26 });
  assert.match(stdout, /export interface GwBackend \{/);
  assert.match(stdout, /export function isGwBackend\(value\) \{/);
  assert.match(stdout, /function codePointLength\(/);
});

test("what npm packs is below 60 MB installed, needs no other package, and has the command and the types", async () => {
  const archive = await pack(folder);
  const user = join(folder, "user");
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
  await run("npm", ["install", "--omit=dev", "--offline", "--no-audit", "--no-fund", archive], { cwd: user });
  assert.deepEqual(
    readdirSync(join(user, "node_modules")).filter((name) => !name.startsWith(".")),
    ["gwproxy"],
  );
  const { stdout: size } = await run("du", ["-sm", join(user, "node_modules")]);
  assert.ok(Number.parseInt(size, 10) < 60, size);
  const { stdout } = await run(process.execPath, [join(user, "node_modules/.bin/gwproxy"), "--version"]);
  assert.match(stdout, /^gwproxy \d/);
  const schema = join(user, "node_modules/gwproxy/generated/editor/all.json");
  assert.equal(typeof JSON.parse(readFileSync(schema, "utf8")), "object");
  await checkTypes(user);
});

/** Uses the types as a project of its own does, under both ways of finding modules. */
async function checkTypes(user: string): Promise<void> {
  writeFileSync(
    join(user, "use.ts"),
    `import type { GwBackend, GwModel, GwParameters, GwPolicy, HTTPRoute } from "gwproxy";
import { type GwPolicySpec } from "gwproxy";
const spec: GwPolicySpec = {
  targetRefs: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "r" }],
  traffic: { timeouts: { request: "10s" } },
};
export const policy: GwPolicy = { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwPolicy", metadata: { name: "p" }, spec };
// @ts-expect-error -- a duration is a text
export const wrong: GwPolicySpec = { ...spec, traffic: { timeouts: { request: 10 } } };
export type Others = GwBackend | GwModel | GwParameters | HTTPRoute;
`,
  );
  for (const module of ["nodenext", "preserve"]) {
    const options = ["--module", module, "--strict", "--target", "es2022", "--types", "", "--verbatimModuleSyntax"];
    await run(join(ROOT, "node_modules/.bin/tsc"), [...options, "use.ts"], { cwd: user }).catch((error: unknown) =>
      assert.fail(error instanceof Error && "stdout" in error ? String(error.stdout) : String(error)),
    );
    const { stdout } = await run(
      process.execPath,
      ["-e", 'import("./use.js").then(({ policy }) => console.log(policy.kind))'],
      {
        cwd: user,
      },
    );
    assert.equal(stdout, "GwPolicy\n");
  }
}

test("a package that was packed before it was built says so", async () => {
  const unbuilt = join(folder, "unbuilt");
  mkdirSync(unbuilt);
  for (const file of ["package.json", "bin"]) cpSync(join(ROOT, file), join(unbuilt, file), { recursive: true });
  await assert.rejects(run(process.execPath, [join(unbuilt, "bin/gwproxy.mjs"), "up", "."]), {
    code: 2,
    stderr: /packed before it was built.*\nBuild it first: `make package`/,
  });
});

/** @returns the archive */
async function pack(from: string): Promise<string> {
  const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--json"], { cwd: from });
  const [packed] = JSON.parse(stdout) as { filename: string }[]; // the documented answer of npm
  assert.ok(packed);
  return join(from, packed.filename);
}

test("the parts of the package for clusters load as well", async (context) => {
  const [port = 0] = await freePorts(1);
  const kubeconfig = join(folder, "kubeconfig");
  const cluster = { name: "c", cluster: { server: `https://127.0.0.1:${port}` } };
  const contexts = [{ name: "c", context: { cluster: "c", user: "u" } }];
  const config = { apiVersion: "v1", kind: "Config", clusters: [cluster], contexts, "current-context": "c" };
  writeFileSync(kubeconfig, JSON.stringify({ ...config, users: [{ name: "u", user: {} }] }));
  const addresses = [
    "--xds-address",
    "127.0.0.1:0",
    "--health-address",
    "127.0.0.1:0",
    "--metrics-address",
    "127.0.0.1:0",
    "--admin-address",
    "127.0.0.1:0",
  ];
  const controller = startGwproxy(context, ["controller", "-k", kubeconfig, ...addresses], {}, bin);
  // It keeps trying: what it says of the server proves that client and discovery server are there.
  await controller.printed(/ECONNREFUSED/);
  const proxy = [
    "proxy",
    "--xds-address",
    `127.0.0.1:${port}`,
    "--gateway",
    "default/none",
    "--bind-address",
    "127.0.0.1",
  ];
  const planes = ["--admin-address", "--metrics-address", "--readiness-address"];
  const plane = startGwproxy(context, [...proxy, ...planes.flatMap((flag) => [flag, "127.0.0.1:0"])], {}, bin);
  await plane.printed(/ECONNREFUSED/);
});
