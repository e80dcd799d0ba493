/** InferencePools on a real API server: their status, their Pods, and traffic policies on them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../support/clients/http.ts";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { documents, GATEWAY } from "../support/gateway/gateway.ts";
import { POOL_ROUTE } from "../support/gateway/inference-pool.ts";
import { eventually } from "../support/gateway/process.ts";
import { defineInferenceKinds, startCluster, startController, startPlane } from "../support/kubernetes/cluster.ts";
import { marks, policy } from "../support/proofs/policy-places.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { startEcho } from "../support/servers/echo.ts";

interface PoolParent {
  readonly controllerName?: string;
  readonly parentRef: { readonly name: string };
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
}

const POOL_REF = "{group: inference.networking.k8s.io, kind: InferencePool, name: llama}";
const SECOND = GATEWAY.replace("{name: gw}", "{name: second}");
const IN_SECOND = POOL_ROUTE.replace("{name: web}", "{name: second}").replace("[{name: gw}]", "[{name: second}]");
const PICKER = "{apiVersion: v1, kind: Service, metadata: {name: picker}, spec: {ports: [{name: grpc, port: 9002}]}}";
const FOREIGN = {
  controllerName: "example.com/other",
  parentRef: { name: "theirs", group: "gateway.networking.k8s.io", kind: "Gateway" },
};

function pool(port: number): string {
  return `apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: llama}
spec:
  selector: {matchLabels: {app: llama}}
  targetPorts: [{number: ${port}}]
  endpointPickerRef: {name: picker, port: {number: 9002}, failureMode: FailOpen}`;
}

test("a pool on a cluster serves, says who leads to it in one write per change, and leaves others' entries alone", async (t) => {
  const context = contextOf(t);
  const server = await startCluster(context);
  await defineInferenceKinds(server);
  const echo = await startEcho(context, { tag: "pool" });
  const [port = 0, xds = 0] = await freePorts(2);
  await startController(context, server, xds, { more: ["--enable-inference"] });
  const plane = startPlane(context, xds);
  const apply = (...objects: string[]) => server.kubectl(["apply", "-f", "-"], documents(...objects));
  const get = async (kind: string, name: string): Promise<string> =>
    server.kubectl(["get", kind, name, "-o", "json", "--show-managed-fields"]);
  const stored = async () =>
    JSON.parse(await get("inferencepool", "llama")) as {
      readonly metadata: { readonly resourceVersion: string };
      readonly status?: { readonly parents?: readonly PoolParent[] };
    };
  const parents = async (): Promise<string[]> =>
    ((await stored()).status?.parents ?? []).map(({ parentRef, controllerName, conditions = [] }) =>
      [
        parentRef.name,
        controllerName ?? "",
        ...conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`).sort(),
      ].join(" "),
    );
  const line = (name: string): string =>
    `${name} gwproxy.dev/gwproxy Accepted True Accepted ResolvedRefs True ResolvedRefs`;

  await apply(GATEWAY.replace("port: 8080", `port: ${port}`), SECOND, PICKER, pool(echo.port), POOL_ROUTE);
  await plane.printed(`listening on 127.0.0.1:${port} for Gateway default/gw`);

  await t.test("its parents are the Gateways from which routes lead to it", async () => {
    await eventually(async () => assert.deepEqual(await parents(), [line("gw")]));
    await apply(IN_SECOND);
    await eventually(async () => assert.deepEqual((await parents()).sort(), [line("gw"), line("second")]));
  });

  await t.test("an entry of another controller stays, and each change is one write", async () => {
    const { status } = await stored();
    const joined = JSON.stringify({ status: { parents: [...(status?.parents ?? []), FOREIGN] } });
    await server.kubectl(["patch", "inferencepool", "llama", "--subresource=status", "--type=merge", "-p", joined]);
    const before = await stored();
    await server.kubectl(["delete", "httproute", "second"]);
    await eventually(async () =>
      assert.deepEqual((await parents()).sort(), ["theirs example.com/other", line("gw")].sort()),
    );
    const after = await stored();
    assert.notEqual(after.metadata.resourceVersion, before.metadata.resourceVersion);
    // A change that says nothing new about the pool writes nothing.
    await apply(POOL_ROUTE.replace("{name: rule,", "{name: rule, timeouts: {request: 9s},"));
    await eventually(async () => {
      const { metadata, status: written } = JSON.parse(await get("httproute", "web")) as {
        readonly metadata: { readonly generation: number };
        readonly status: {
          readonly parents: readonly { readonly conditions: readonly { readonly observedGeneration: number }[] }[];
        };
      };
      assert.equal(written.parents[0]?.conditions[0]?.observedGeneration, metadata.generation);
    });
    assert.equal((await stored()).metadata.resourceVersion, after.metadata.resourceVersion);
  });

  await t.test("a Pod that is ready serves, and a traffic policy on the pool is enforced and attached", async () => {
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "llama-0", labels: { app: "llama" } } };
    const spec = { containers: [{ name: "server", image: "none" }], automountServiceAccountToken: false };
    await server.kubectl(["create", "serviceaccount", "default"]).catch(() => "it is there");
    await apply(JSON.stringify({ ...pod, spec }));
    const ready = {
      podIP: "127.0.0.1",
      podIPs: [{ ip: "127.0.0.1" }],
      phase: "Running",
      conditions: [{ type: "Ready", status: "True" }],
    };
    const patch = ["patch", "pod", "llama-0", "--subresource=status", "--type=merge", "-p"];
    await server.kubectl([...patch, JSON.stringify({ status: ready })]);
    const answer = () => call(`http://127.0.0.1:${port}/`);
    await eventually(async () => assert.equal((await answer()).headers["x-upstream"], "pool"));
    await apply(policy("marked", { refs: POOL_REF, says: marks("pool") }));
    await eventually(async () => assert.equal((await answer()).headers["x-mark"], "pool"));
    await eventually(async () => {
      const path = `{range .status.ancestors[*]}{.ancestorRef.name} {.conditions[?(@.type=="Attached")].status}{end}`;
      assert.equal(await server.kubectl(["get", "gwpolicy", "marked", "-o", `jsonpath=${path}`]), "gw True");
    });
    await server.kubectl(["delete", "gwpolicy", "marked"]);
    await eventually(async () => assert.equal((await answer()).headers["x-mark"], undefined));
  });

  await t.test("nothing of ours is left when the last route goes", async () => {
    await server.kubectl(["delete", "httproute", "web"]);
    await eventually(async () => assert.deepEqual(await parents(), ["theirs example.com/other"]));
  });
});
