/** `gwproxy up` as a process: the quickstart, changes of files, and faults that close nothing else. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHello } from "../../../examples/quickstart/hello.ts";
import { serveMockProvider } from "../../../examples/mock-provider/mock-provider.ts";
import { call } from "../../support/clients/http.ts";
import { freePorts } from "../../support/fixtures/free-ports.ts";
import { eventually, type GwproxyProcess, startGwproxy } from "../../support/gateway/process.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { checkQuickstart, quickstartManifests } from "../../support/gateway/quickstart.ts";

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
  const mock = await serveMockProvider({ port: provider, keys: ["mock-key"] });
  context.after(() => mock.stop());
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

/** A mistake in a file of the quickstart, and the objects that are kept as they were. */
const LIVE_MISTAKES: readonly (readonly [file: string, sound: string | RegExp, broken: string, kept: string])[] = [
  ["policies.yaml", "apiKeyAuthentication:", "apiKeyAuthentification:", "GwPolicy default/chat"],
  ["policies.yaml", "kind: GwPolicy", "kind: GWPolicy", "GwPolicy default/chat"],
  ["policies.yaml", "gwproxy.dev/v1alpha1", "gwproxy.io/v1alpha1", "GwPolicy default/chat"],
  ["policies.yaml", "  name: chat", "  nam: chat", "GwPolicy default/chat"],
  ["policies.yaml", "    timeouts:", "    timeouts: [", "GwPolicy default/chat"],
  ["policies.yaml", "kind: Secret", "kind: Secrets", "Secret default/people"],
  ["policies.yaml", "stringData:\n  alice:", "data:\n  alice:", "Secret default/people"],
  ["routes.yaml", "kind: HTTPRoute", "kind: HTPRoute", "HTTPRoute default/hello"],
  ["routes.yaml", "parentRefs:", "parentsRef:", "HTTPRoute default/hello"],
  ["gateway.yaml", "protocol: HTTP", "protocol: 'HTTP", "Gateway default/quickstart"],
  ["gateway.yaml", "    - name: http", "    - nam: http", "Gateway default/quickstart"],
  ["backends.yaml", "kind: GwBackend", "kind: Gwbackends", "GwBackend default/hello"],
  ["backends.yaml", "    host: 127.0.0.1", "    host: [127.0.0.1", "GwBackend default/hello"],
];

prove(
  [],
  "an object that breaks while it is served is kept as it was accepted, until it is mended",
  async (context) => {
    const { url, folder, process, manifests } = await startUp(context);
    const chat = { method: "POST", headers: { authorization: "Bearer unknown-key" }, body: "{}" };
    for (const [file, sound, broken, kept] of LIVE_MISTAKES) {
      const text = manifests.get(file) ?? "";
      const before = process.output().length;
      writeFileSync(join(folder, file), text.replace(sound, broken));
      await process.printed(
        new RegExp(`^\\S*${file}:\\d+:\\d+: \\w+: .*; kept: .*${kept}.* as accepted before$`, "m"),
        before,
      );
      assert.equal((await call(`${url}/hello`)).status, 200, broken);
      assert.equal((await call(`${url}/v1/chat/completions`, chat)).status, 401, broken);
      writeFileSync(join(folder, file), text);
      await process.printed(new RegExp(`^mended: \\S*${file}`, "m"), before);
    }
    assert.doesNotMatch(process.output(), /^(changed|removed) /m, "nothing was taken from traffic");
  },
);

prove(
  [],
  "a policy that was never accepted closes what it targets and nothing else, until it is mended",
  async (context) => {
    const { url, folder, process, manifests } = await startUp(context);
    const policies = manifests.get("policies.yaml") ?? "";
    const chat = { method: "POST", headers: { authorization: "Bearer alice-key" }, body: "{}" };
    const mistakes = [
      ["apiKeyAuthentication:", "apiKeyAuthentification:"],
      ["kind: GwPolicy", "kind: Gwpolicy"],
      ["gwproxy.dev/", "gwproxy.io/"],
      ["metadata:\n  name: chat", "metadata:\n  nam: chat"],
    ] as const;
    for (const [sound, broken] of mistakes) {
      const before = process.output().length;
      rmSync(join(folder, "policies.yaml"));
      await process.printed(/^removed Policy /m, before);
      writeFileSync(join(folder, "policies.yaml"), policies.replace(sound, broken));
      await process.printed(
        /policies\.yaml:\d+:\d+: \w+: .*; closed: what GwPolicy .* targets answers 500 until it is mended$/m,
        before,
      );
      await eventually(async () => {
        const { status, body } = await call(`${url}/v1/chat/completions`, chat);
        assert.deepEqual(
          { status, isFixed: body.includes("this route is closed by an invalid policy") },
          { status: 500, isFixed: true },
          broken,
        );
      });
      assert.equal((await call(`${url}/hello`)).status, 200);
      writeFileSync(join(folder, "policies.yaml"), policies);
      await eventually(async () => assert.notEqual((await call(`${url}/v1/chat/completions`, chat)).status, 500));
    }
  },
);

prove([], "secrets reach neither the dump nor the terminal", async (context) => {
  const { admin, process } = await startUp(context);
  const dump = await call(`${admin}/config_dump`);
  assert.equal(dump.status, 200);
  assert.ok(dump.body.includes("default/chat"));
  for (const secret of ["mock-key", "alice-key", "bob-key"]) {
    assert.ok(!dump.body.includes(secret), secret);
    assert.ok(!process.output().includes(secret), secret);
  }
});
