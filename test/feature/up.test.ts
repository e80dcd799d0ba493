/** `gwproxy up` as a process: the quickstart, changes of files, and faults that close nothing else. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHello } from "../../examples/quickstart/hello.ts";
import { startPracticeProvider } from "../../examples/practice-provider/practice-provider.ts";
import { call } from "../support/http.ts";
import { freePorts } from "../support/free-ports.ts";
import { eventually, type GwproxyProcess, startGwproxy } from "../support/process.ts";
import { prove, type ProofContext } from "../support/prove.ts";
import { checkQuickstart, quickstartManifests } from "../support/quickstart.ts";

interface Up {
  readonly url: string;
  readonly admin: string;
  readonly folder: string;
  readonly process: GwproxyProcess;
  readonly manifests: ReadonlyMap<string, string>;
}

async function startUp(context: ProofContext): Promise<Up> {
  const [gateway = 0, hello = 0, provider = 0, admin = 0] = await freePorts(4);
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-up-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const manifests = quickstartManifests({ gateway, hello, provider });
  for (const [file, text] of manifests) writeFileSync(join(folder, file), text);
  const service = await startHello(hello);
  context.after(() => void service.close());
  const practice = await startPracticeProvider({ port: provider, keys: ["practice-key"] });
  context.after(() => practice.stop());
  const process = startGwproxy(context, [
    "up",
    "-f",
    folder,
    "--bind-address",
    "127.0.0.1",
    "--admin-address",
    `127.0.0.1:${admin}`,
    "--metrics-address",
    "127.0.0.1:0",
    "--readiness-address",
    "127.0.0.1:0",
    "--log-level",
    "warn",
  ]);
  await process.printed(`listening on 127.0.0.1:${gateway} for Gateway default/quickstart`);
  return { url: `http://127.0.0.1:${gateway}`, admin: `http://127.0.0.1:${admin}`, folder, process, manifests };
}

prove([], "the quickstart does what its README says, with the official client", async (context) => {
  const { url } = await startUp(context);
  await checkQuickstart(url);
});

prove([], "a changed file changes traffic, and the terminal says what changed", async (context) => {
  const { url, folder, process, manifests } = await startUp(context);
  const routes = manifests.get("routes.yaml") as string;
  writeFileSync(join(folder, "routes.yaml"), routes.replace("value: /hello", "value: /hi"));
  await process.printed(/changed HttpRoute .*default\/hello/);
  assert.equal((await call(`${url}/hi`)).status, 200);
  assert.equal((await call(`${url}/hello`)).status, 404);
  assert.doesNotMatch(process.output(), /changed HttpRoute .*default\/chat/);
});

prove([], "a broken file keeps its last good state and is named with its place", async (context) => {
  const { url, folder, process } = await startUp(context);
  writeFileSync(join(folder, "routes.yaml"), "kind: HTTPRoute\n  bad: [indent\n");
  await process.printed(/routes\.yaml:\d+:\d+: error:/);
  assert.equal((await call(`${url}/hello`)).status, 200);
});

prove([], "a refused policy closes what it targets and nothing else, until it is mended", async (context) => {
  const { url, folder, process, manifests } = await startUp(context);
  const policies = manifests.get("policies.yaml") as string;
  writeFileSync(join(folder, "policies.yaml"), policies.replace("apiKeyAuthentication:", "apiKeyAuthentification:"));
  await process.printed(/policies\.yaml:\d+:\d+: error: .*spec\.traffic\.apiKeyAuthentification.*apiKeyAuthentication/);
  const chat = { method: "POST", headers: { authorization: "Bearer alice-key" }, body: "{}" };
  await eventually(async () => assert.equal((await call(`${url}/v1/chat/completions`, chat)).status, 500));
  assert.equal((await call(`${url}/hello`)).status, 200);
  writeFileSync(join(folder, "policies.yaml"), policies);
  await eventually(async () => assert.notEqual((await call(`${url}/v1/chat/completions`, chat)).status, 500));
});

prove([], "secrets reach neither the dump nor the terminal", async (context) => {
  const { admin, process } = await startUp(context);
  const dump = await call(`${admin}/config_dump`);
  assert.equal(dump.status, 200);
  assert.ok(dump.body.includes("default/chat"));
  for (const secret of ["practice-key", "alice-key", "bob-key"]) {
    assert.ok(!dump.body.includes(secret), secret);
    assert.ok(!process.output().includes(secret), secret);
  }
});
