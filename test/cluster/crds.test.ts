/** Our CRDs on a real API server: kubectl applies and explains both sets, and their objects reach the source. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { createKubernetesClient, type KubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { OWN_KINDS, STANDARD_KINDS } from "../../src/sources/kubernetes/kinds.ts";
import { createKubernetesSource } from "../../src/sources/kubernetes/kubernetes-source.ts";
import { createKubernetesStatusClient } from "../../src/sources/kubernetes/status-client.ts";
import { createStatusWriter } from "../../src/status/writer.ts";
import { RecordingSink } from "../support/gateway/recording-sink.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

const CRDS = join(import.meta.dirname, "../../crds");
const FILES = globSync("*.yaml", { cwd: CRDS }).map((file) => join(CRDS, file));
const DOCUMENTED = FILES.map((file) => join(CRDS, "documented", basename(file)));

let server: ApiServer;
let client: KubernetesClient;

before(async () => {
  server = await startApiServer();
  client = await createKubernetesClient(server.kubeconfig);
});

after(async () => {
  client?.close();
  await server?.stop();
});

test("the CRDs apply with the plain client-side form, and a second time without a change", async () => {
  assert.equal(FILES.length, OWN_KINDS.length);
  const files = FILES.flatMap((file) => ["-f", file]);
  const first = await server.kubectl(["apply", ...files]);
  assert.equal(first.match(/ created$/gm)?.length, OWN_KINDS.length);
  const second = await server.kubectl(["apply", ...files]);
  assert.equal(second.match(/ unchanged$/gm)?.length, OWN_KINDS.length);
  const established = await server.kubectl(["wait", "--for=condition=Established", ...files, "--timeout=60s"]);
  assert.equal(established.match(/condition met$/gm)?.length, OWN_KINDS.length);
});

test("kubectl explains a field of the plain set down to three levels, and all of the documented set", async () => {
  const plain = ["gwbackend", "gwbackend.spec", "gwbackend.spec.ai", "gwpolicy.spec.traffic.rateLimit.local"];
  assert.deepEqual((await Promise.all(plain.map(explain))).flatMap(unexplained), []);
  const before = await explain("gwbackend.spec.ai.provider");
  assert.notDeepEqual(unexplained(before), [], "a plain CRD has no room for what is below");

  const files = DOCUMENTED.flatMap((file) => ["-f", file]);
  const changed = await server.kubectl(["apply", "--server-side", ...files]);
  assert.equal(changed.match(/ serverside-applied$/gm)?.length, OWN_KINDS.length);
  // The API server publishes what it explains a while after it took the CRD.
  while ((await explain("gwbackend.spec.ai.provider")) === before);
  const deep = ["gwbackend.spec.ai.provider", "gwbackend.spec.policies.tls", "gwbackend.spec.mcp.targets.static"];
  assert.deepEqual((await Promise.all(deep.map(explain))).flatMap(unexplained), []);
});

test("the documented CRDs apply server-side where there were none", async () => {
  // Under another group, because the API server takes minutes to delete the CRDs that are there.
  const texts = DOCUMENTED.map((file) => readFileSync(file, "utf8").replaceAll("gwproxy.dev", "documented.example"));
  const names = OWN_KINDS.map(({ plural }) => `crd/${plural}.documented.example`);
  const applied = await server.kubectl(["apply", "--server-side", "-f", "-"], texts.join("---\n"));
  assert.equal(applied.match(/ serverside-applied$/gm)?.length, OWN_KINDS.length);
  const established = await server.kubectl(["wait", "--for=condition=Established", ...names, "--timeout=60s"]);
  assert.equal(established.match(/condition met$/gm)?.length, OWN_KINDS.length);
});

async function explain(field: string): Promise<string> {
  return server.kubectl(["explain", field]);
}

/** Lines of kubectl that stand where a description would; the object itself or a field below it has none. */
function unexplained(text: string): string[] {
  return text.match(/^.*\n +<(?:no description|empty)>$/gm) ?? [];
}

test("a policy is seen with its changes, and its status can be written beside another controller's", async () => {
  const sink = new RecordingSink();
  const { log } = recordingLog();
  const kinds = [...STANDARD_KINDS, ...OWN_KINDS];
  const source = createKubernetesSource({ client, kinds, log });
  await source.start(sink);
  const policy = (seconds: number): string =>
    JSON.stringify({
      apiVersion: "gwproxy.dev/v1alpha1",
      kind: "GwPolicy",
      metadata: { name: "slow", namespace: "default" },
      spec: {
        targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" }],
        traffic: { timeouts: { request: `${seconds}s` } },
      },
    });
  const key = "gwproxy.dev/GwPolicy/default/slow";
  await server.kubectl(["apply", "-f", "-"], policy(5));
  await sink.until(({ objects }) => objects.has(key));
  await server.kubectl(["apply", "-f", "-"], policy(6));
  await sink.until(({ objects }) => objects.get(key)?.metadata.generation === 2);

  const foreign = {
    ancestorRef: { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" },
    controllerName: "example.com/other",
    conditions: [
      { type: "Accepted", status: "True", reason: "Accepted", message: "", lastTransitionTime: "2020-01-01T00:00:00Z" },
    ],
  };
  const patch = JSON.stringify({ status: { ancestors: [foreign] } });
  await server.kubectl(["patch", "gwpolicy", "slow", "--subresource=status", "--type=merge", "-p", patch]);

  const current = source.current.bind(source);
  const statusClient = createKubernetesStatusClient({ client, kinds, fieldManager: "gwproxy.dev/gwproxy", current });
  const writer = createStatusWriter({ client: statusClient, log });
  writer.put({
    id: { group: "gwproxy.dev", kind: "GwPolicy", namespace: "default", name: "slow" },
    form: "listed",
    list: "ancestors",
    controllerName: "gwproxy.dev/gwproxy",
    entries: [
      {
        ref: { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "default", name: "gw" },
        conditions: [{ type: "Accepted", status: "True", reason: "Valid", message: "", observedGeneration: 2 }],
      },
    ],
  });
  await writer.idle();
  const stored = JSON.parse(await server.kubectl(["get", "gwpolicy", "slow", "-o", "json"])) as {
    status: { ancestors: { controllerName: string }[] };
  };
  assert.deepEqual(stored.status.ancestors[0], foreign);
  assert.equal(stored.status.ancestors[1]?.controllerName, "gwproxy.dev/gwproxy");

  await server.kubectl(["delete", "gwpolicy", "slow"]);
  await sink.until(({ objects }) => !objects.has(key));
  await writer.stop();
  await source.stop();
});
