/** `gwproxy validate --server` lays the verdicts of a real API server beside ours. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runValidate } from "../../src/cli/validate/validate.ts";
import { defineOurKinds } from "../support/kubernetes/cluster.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

const HEAD = "apiVersion: gwproxy.dev/v1alpha1\nkind: GwPolicy\n";
const TARGET = "  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]\n";
let server: ApiServer;
let files = 0;

before(async () => {
  server = await startApiServer();
  await defineOurKinds(server);
});

after(async () => {
  await server?.stop();
});

interface Row {
  readonly object: string;
  readonly path: string;
  readonly severity: string;
  readonly message: string;
  readonly line: number;
  readonly saidBy: readonly string[];
}

async function run(
  manifest: string,
  output: "json" | "text",
  context?: string,
): Promise<{ code: number; text: string }> {
  const file = join(server.directory, `manifest-${++files}.yaml`);
  await writeFile(file, manifest);
  let text = "";
  const terminal = { isColoured: false, out: (part: string) => void (text += part), err: () => undefined };
  const code = await runValidate(
    {
      file: [file],
      output,
      strict: false,
      schemaOnly: true,
      enableInference: false,
      server: true,
      kubeconfig: server.kubeconfig,
      context,
    },
    terminal,
  );
  return { code, text };
}

async function rows(manifest: string): Promise<Row[]> {
  return JSON.parse((await run(manifest, "json")).text) as Row[];
}

test("what both say in the same words is said once, by both", async () => {
  const found = await rows(
    `${HEAD}metadata: {name: bounds}\nspec:\n${TARGET}  traffic: {timeouts: {request: 1x}, directResponse: {status: 700}}\n`,
  );
  assert.deepEqual(
    found.map(({ path, saidBy, line }) => [path, saidBy, line]),
    [
      ["spec.traffic.timeouts.request", ["gwproxy", "server"], 6],
      ["spec.traffic.directResponse.status", ["gwproxy", "server"], 6],
    ],
  );
});

test("rules and unknown fields are found by both, also in one object", async () => {
  const found = await rows(
    `${HEAD}metadata: {name: rules}\nspec:\n  traffic: {}\n---\n${HEAD}metadata: {name: names}\nspec:\n${TARGET}  traffic: {timeout: {}}\n`,
  );
  assert.deepEqual(
    found.map(({ path, saidBy }) => [path, saidBy]),
    [
      ["spec", ["gwproxy", "server"]],
      ["spec.traffic.timeout", ["gwproxy", "server"]],
    ],
  );
});

test("each judge's own findings are its own: expressions are ours, core kinds are the server's", async () => {
  const manifest = `${HEAD}metadata: {name: cel}
spec:
${TARGET}  traffic: {authorization: {action: Allow, policy: {matchExpressions: ["request.nonsense((("]}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports: [{port: 70000}]
`;
  const found = await rows(manifest);
  const ours = found.filter(({ saidBy }) => saidBy.join() === "gwproxy");
  const theirs = found.filter(({ saidBy }) => saidBy.join() === "server");
  assert.deepEqual([...new Set(ours.map(({ object }) => object))], ["GwPolicy default/cel"]);
  assert.ok(
    theirs.some(
      ({ object, path, line }) => object === "Service default/web" && path === "spec.ports[0].port" && line === 12,
    ),
  );
  const { text, code } = await run(manifest, "text");
  assert.equal(code, 1);
  assert.match(text, /= said by: gwproxy\n/);
  assert.match(text, /= said by: the API server\n/);
  assert.match(text, new RegExp(`2 objects checked by gwproxy and by the API server ${server.server}\n`));
});

test("a change to an object that exists is judged as a change, and nothing is stored", async () => {
  const sound = `apiVersion: v1\nkind: Service\nmetadata: {name: live}\nspec: {ports: [{port: 80}], clusterIP: 10.96.0.40}\n`;
  assert.deepEqual(await rows(sound), []);
  await server.kubectl(["apply", "-f", "-"], sound);
  assert.deepEqual(await rows(sound), []);
  const changed = await rows(sound.replace("10.96.0.40", "10.96.0.41"));
  assert.ok(
    changed.some(
      ({ path, message }) => path.startsWith("spec.clusterIP") && /immutable|may not change once set/.test(message),
    ),
  );
  assert.match(await server.kubectl(["get", "service", "live", "-o", "jsonpath={.spec.clusterIP}"]), /10\.96\.0\.40/);
  assert.equal((await run(sound, "text")).code, 0);
});

test("a kind that the cluster does not have is an error, a namespace that it does not have a warning", async () => {
  const found = await rows(
    `apiVersion: apps.example.dev/v1\nkind: Thing\nmetadata: {name: t}\n---\n${HEAD}metadata: {name: p, namespace: nowhere}\nspec:\n${TARGET}  traffic: {timeouts: {request: 1s}}\n`,
  );
  assert.deepEqual(
    found.map(({ object, path, severity, saidBy }) => [object, path, severity, saidBy]),
    [
      // Ours is about the kind alone: the server may have one that we do not know.
      ["Thing default/t", "kind", "warning", ["gwproxy"]],
      ["Thing default/t", "kind", "error", ["server"]],
      ["GwPolicy nowhere/p", "metadata.namespace", "warning", ["server"]],
    ],
  );
});

test("a context that does not exist, or a server that does not answer, is exit code 2 with the reason", async () => {
  const manifest = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n";
  await assert.rejects(run(manifest, "text", "elsewhere"), {
    exitCode: 2,
    message: /cannot be asked: the kubeconfig has no context "elsewhere"; it has: test/,
  });
  await server.crash();
  await assert.rejects(run(manifest, "text"), { exitCode: 2, message: /cannot be asked: .*ECONNREFUSED/ });
  await server.restart();
});
