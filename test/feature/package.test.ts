/** The published form: built, put into an empty folder without node_modules, and used from there. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { startHello } from "../../examples/quickstart/hello.ts";
import { startPracticeProvider } from "../../examples/practice-provider/practice-provider.ts";
import { freePorts } from "../support/free-ports.ts";
import { startGwproxy } from "../support/process.ts";
import { checkQuickstart, quickstartManifests } from "../support/quickstart.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
let folder = "";
let bin = "";

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "gwproxy-package-"));
  await run(process.execPath, [join(ROOT, "codegen/package.ts"), join(folder, "dist")]);
  for (const file of ["package.json", "bin"]) cpSync(join(ROOT, file), join(folder, file), { recursive: true });
  bin = join(folder, "bin/gwproxy.mjs");
});

after(() => rmSync(folder, { recursive: true, force: true }));

test("the package serves the quickstart", async (context) => {
  const [gateway = 0, hello = 0, provider = 0] = await freePorts(3);
  const service = await startHello(hello);
  context.after(() => void service.close());
  const practice = await startPracticeProvider({ port: provider, keys: ["practice-key"] });
  context.after(() => practice.stop());
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
});

test("the package knows its version and carries the licences of what is bundled", async () => {
  const { stdout } = await run(process.execPath, [bin, "version"]);
  assert.match(stdout, /\d+\.\d+\.\d+/);
  const { stdout: found } = await run("grep", ["-c", "^h3 .*(MIT)$", join(folder, "dist/LICENSES.txt")]);
  assert.equal(found.trim(), "1");
});

test("the package generates types where npm has put the tools beside it, and says so where nobody has", async () => {
  const args = [bin, "generate", "types", "-f", join(ROOT, "crds/gwproxy.dev_gwbackends.yaml")];
  await assert.rejects(run(process.execPath, args), { code: 2, stderr: /this build of gwproxy has no generator/ });
  const tools = join(folder, "node_modules");
  symlinkSync(join(ROOT, "node_modules"), tools);
  try {
    const { stdout } = await run(process.execPath, args, { maxBuffer: 1 << 26 });
    assert.match(stdout, /export interface GwBackend \{/);
    assert.match(stdout, /export function isGwBackend\(value\) \{/);
    assert.match(stdout, /function codePointLength\(/);
  } finally {
    rmSync(tools);
  }
});

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
