/** The Kubernetes source against a real API server: what is made, changed and deleted there is seen here. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createKubernetesClient, type KubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { STANDARD_KINDS } from "../../src/sources/kubernetes/kinds.ts";
import { createKubernetesSource, type KubernetesSource } from "../../src/sources/kubernetes/kubernetes-source.ts";
import { defineGatewayKinds } from "../support/kubernetes/cluster.ts";
import { RecordingSink } from "../support/gateway/recording-sink.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

const ROUTE = "gateway.networking.k8s.io/HTTPRoute/default";

let server: ApiServer;
let client: KubernetesClient;
const sources: KubernetesSource[] = [];

before(async () => {
  server = await startApiServer();
  client = await createKubernetesClient(server.kubeconfig);
});

after(async () => {
  for (const source of sources) await source.stop();
  client?.close();
  await server?.stop();
});

function createSource(): KubernetesSource {
  const source = createKubernetesSource({ client, kinds: STANDARD_KINDS, log: recordingLog().log });
  sources.push(source);
  return source;
}

function route(name: string, host: string): string {
  return JSON.stringify({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name, namespace: "default" },
    spec: { parentRefs: [{ name: "gw" }], hostnames: [host], rules: [{ backendRefs: [{ name: "web", port: 80 }] }] },
  });
}

test("kinds that are not defined yet do not hold up the start, and are watched once they exist", async () => {
  const sink = new RecordingSink();
  await createSource().start(sink);
  assert.equal(sink.batches.length, 1, "the first state is one step");
  assert.ok(sink.objects.has("/Namespace//default"), "the rest is there");

  await defineGatewayKinds(server);
  await server.kubectl(["apply", "-f", "-"], route("early", "early.example"));
  await sink.until(({ objects }) => objects.has(`${ROUTE}/early`));
});

test("a create, an update and a delete each arrive once, frozen and without bookkeeping", async () => {
  const sink = new RecordingSink();
  const source = createSource();
  await source.start(sink);
  await server.kubectl(["apply", "-f", "-"], route("one", "a.example"));
  await sink.until(({ objects }) => objects.has(`${ROUTE}/one`));
  await server.kubectl(["apply", "-f", "-"], route("one", "b.example"));
  await sink.until(({ objects }) => objects.get(`${ROUTE}/one`)?.metadata.generation === 2);

  const seen = sink.objects.get(`${ROUTE}/one`);
  assert.ok(seen !== undefined);
  assert.deepEqual((seen as unknown as { spec: { hostnames: string[] } }).spec.hostnames, ["b.example"]);
  assert.ok(!("managedFields" in seen.metadata));
  assert.equal(seen.metadata.annotations?.["kubectl.kubernetes.io/last-applied-configuration"], undefined);
  assert.ok(Object.isFrozen((seen as unknown as { spec: { hostnames: string[] } }).spec.hostnames));
  const id = { group: "gateway.networking.k8s.io", kind: "HTTPRoute", namespace: "default", name: "one" };
  assert.equal(source.current(id), seen);

  await server.kubectl(["delete", "httproute", "one"]);
  await sink.until(({ objects }) => !objects.has(`${ROUTE}/one`));
  assert.deepEqual(sink.history(`${ROUTE}/one`), ["set", "set", "delete"]);
  assert.equal(source.current(id), undefined);
});

test("Secrets of Helm and service-account tokens never come in", async () => {
  const sink = new RecordingSink();
  await createSource().start(sink);
  const secret = (name: string, type: string): string[] => ["create", "secret", "generic", name, `--type=${type}`];
  await server.kubectl(secret("release", "helm.sh/release.v1"));
  await server.kubectl([...secret("keys", "Opaque"), "--from-literal=a=b"]);
  await sink.until(({ objects }) => objects.has("/Secret/default/keys"));
  assert.ok(!sink.objects.has("/Secret/default/release"));
});

test("what happened while the API server was down is seen after its restart, deletions included", async () => {
  await server.kubectl(["apply", "-f", "-"], route("kept", "kept.example"));
  await server.kubectl(["apply", "-f", "-"], route("doomed", "doomed.example"));
  const sink = new RecordingSink();
  await createSource().start(sink);
  assert.ok(sink.objects.has(`${ROUTE}/kept`) && sink.objects.has(`${ROUTE}/doomed`));
  const stepsBefore = sink.batches.length;

  await server.crash();
  await server.behindItsBack([
    ["delete", "httproute", "doomed"],
    ["annotate", "httproute", "kept", "seen=late"],
  ]);
  await server.restart();
  await sink.until(({ objects }) => !objects.has(`${ROUTE}/doomed`));
  await sink.until(({ objects }) => objects.get(`${ROUTE}/kept`)?.metadata.annotations?.["seen"] === "late");
  assert.ok(sink.batches.length > stepsBefore);
  assert.deepEqual(sink.history(`${ROUTE}/doomed`), ["set", "delete"]);
  assert.deepEqual(sink.history(`${ROUTE}/early`), ["set"], "what did not change is not told again");
});

test("a kind whose definition is deleted loses its objects", async () => {
  const sink = new RecordingSink();
  await createSource().start(sink);
  assert.ok(sink.objects.has(`${ROUTE}/kept`));
  await server.kubectl(["delete", "crd", "httproutes.gateway.networking.k8s.io"]);
  await sink.until(({ objects }) => ![...objects.keys()].some((key) => key.startsWith(ROUTE)));
});
