/**
 * The example for clusters without one: the programs of its ConfigMaps run as processes in place of pods, its other
 * manifests are served as they stand, and the commands of docs/cluster.md get the answers that the page promises. On a
 * real node test/slow/chart.test.ts applies the same files.
 */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import OpenAI from "openai";
import { parseAllDocuments, stringify } from "yaml";
import { call } from "../../support/clients/http.ts";
import { freePort } from "../../support/fixtures/free-ports.ts";
import { documents, startGateway } from "../../support/gateway/gateway.ts";
import { eventually } from "../../support/gateway/process.ts";
import { contextOf } from "../../support/proofs/prove.ts";

const ROOT = join(import.meta.dirname, "../../..");

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: unknown;
}

/** What the test reads of a Deployment. */
interface DeploymentSpec {
  readonly template: {
    readonly spec: {
      readonly containers: readonly {
        readonly command: readonly string[];
        readonly readinessProbe: { readonly httpGet: { readonly path: string; readonly port: number } };
      }[];
      readonly volumes: readonly { readonly configMap: { readonly name: string } }[];
    };
  };
}

const MANIFESTS = globSync("examples/cluster/*.yaml", { cwd: ROOT })
  .sort()
  .flatMap((path) => parseAllDocuments(readFileSync(join(ROOT, path), "utf8")))
  .map((document) => document.toJS() as Manifest);

/** Starts the program of a Deployment as its pod would, on a free port. @returns the port, once the probe succeeds */
async function startPod(t: TestContext, { spec }: Manifest): Promise<number> {
  const { containers, volumes } = (spec as DeploymentSpec).template.spec;
  const [{ command: [program, path = ""] = [], readinessProbe } = assert.fail("no container")] = containers;
  const { path: probe, port: ownPort } = readinessProbe.httpGet;
  assert.equal(program, "node");
  const script = MANIFESTS.find(
    ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === volumes[0]?.configMap.name,
  );
  const text = script?.data?.[basename(path)];
  assert.ok(text !== undefined, path);
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-pod-"));
  const port = await freePort();
  const listening = `server.listen(${ownPort})`;
  assert.ok(text.includes(listening), "it listens on the port of the probe");
  writeFileSync(join(folder, basename(path)), text.replace(listening, `server.listen(${port}, "127.0.0.1")`));
  const pod = spawn(process.execPath, [join(folder, basename(path))], { stdio: "inherit" });
  t.after(() => {
    pod.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  await eventually(async () => assert.equal((await call(`http://127.0.0.1:${port}${probe}`)).status, 200));
  return port;
}

/** @returns the addresses of a Service, as its controller would write them */
function endpointSlice(name: string, port: number): object {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, namespace: "default", labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    ports: [{ port }],
    endpoints: [{ addresses: ["127.0.0.1"] }],
  };
}

/** Returns the commands below a heading of the page. */
function commandsOf(heading: string): string {
  const page = readFileSync(join(ROOT, "docs/cluster.md"), "utf8");
  const [section = ""] = page.split(`\n## ${heading}\n`).slice(1);
  const [, commands] = /```sh\n([^]*?)```/.exec(section) ?? [];
  assert.ok(commands !== undefined, heading);
  return commands;
}

test("the example serves its service and a chat with a guard and a limit, as the page for clusters says", async (t) => {
  const slices: object[] = [];
  for (const deployment of MANIFESTS.filter(({ kind }) => kind === "Deployment"))
    slices.push(endpointSlice(deployment.metadata.name, await startPod(t, deployment)));
  assert.equal(slices.length, 2);
  const served = MANIFESTS.filter(({ kind }) => kind !== "Deployment" && kind !== "ConfigMap");
  const gateway = await startGateway(contextOf(t), documents(...[...served, ...slices].map((each) => stringify(each))));
  assert.deepEqual(gateway.problems(), []);
  assert.match((await call(`${gateway.url()}/hello`)).body, /"hello":"world","path":"\/hello"/);

  const commands = `set -eu; gateway=${gateway.url()}\n${commandsOf("A chat")}`;
  const { stdout } = await promisify(execFile)("bash", ["-c", commands.replaceAll("curl ", "curl -sS ")]);
  assert.match(stdout, /"content":"You said: Hello there"/);
  assert.match(stdout, /^HTTP\/1\.1 422 /m);
  assert.match(stdout, /Leave card numbers out\.$/m);

  const openai = new OpenAI({ baseURL: `${gateway.url()}/v1`, apiKey: "any", maxRetries: 0 });
  const ask = (content: string): Promise<OpenAI.ChatCompletion> =>
    openai.chat.completions.create({ model: "mock", messages: [{ role: "user", content }] });
  const stream = await openai.chat.completions.create({
    model: "mock",
    messages: [{ role: "user", content: "word by word" }],
    stream: true,
  });
  let streamed = "";
  for await (const { choices } of stream) streamed += choices[0]?.delta.content ?? "";
  assert.equal(streamed, "You said: word by word");
  assert.equal((await ask("word ".repeat(2000))).usage?.prompt_tokens, 2000);
  await assert.rejects(ask("one more"), { status: 429 });
});
