/**
 * Two replicas of the controller on a real API server, with the rights of the chart: what a data plane answers the one
 * that only follows counts for the one that writes statuses.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { eventually } from "../support/gateway/process.ts";
import { controllerKubeconfig, startCluster, startController, startPlane } from "../support/kubernetes/cluster.ts";
import { contextOf } from "../support/proofs/prove.ts";

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

test("an acknowledgement that reaches a follower is in the statuses that the leader writes", async (t) => {
  const context = contextOf(t);
  const server = await startCluster(context);
  const [leading = 0, following = 0, port = 0] = await freePorts(3);
  const kubeconfig = await controllerKubeconfig(server, { gatewayClass: { create: false } });
  const leader = await startController(context, server, leading, { kubeconfig });
  await leader.printed("this replica writes now");
  const follower = await startController(context, server, following, { kubeconfig });
  const apply = (object: object): Promise<string> => server.kubectl(["apply", "-f", "-"], JSON.stringify(object));
  const gatewayApi = "gateway.networking.k8s.io";
  const gateway = (...ports: readonly number[]): object => ({
    apiVersion: `${gatewayApi}/v1`,
    kind: "Gateway",
    metadata: { name: "gw", namespace: "default" },
    spec: {
      gatewayClassName: "gwproxy",
      listeners: ports.map((each) => ({ name: `l${each}`, port: each, protocol: "HTTP" })),
    },
  });
  const policy = (name: string): object => ({
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwPolicy",
    metadata: { name, namespace: "default" },
    spec: {
      targetRefs: [{ group: gatewayApi, kind: "Gateway", name: "gw" }],
      traffic: { timeouts: { request: "3s" } },
    },
  });
  const attached = async (name: string): Promise<string> => {
    const { status } = JSON.parse(await server.kubectl(["get", "gwpolicy", name, "-o", "json"])) as {
      status?: { ancestors?: readonly { conditions: readonly Condition[] }[] };
    };
    return status?.ancestors?.[0]?.conditions.find(({ type }) => type === "Attached")?.status ?? "none";
  };
  await apply(gateway(port));
  await apply(policy("first"));
  await eventually(async () => assert.equal(await attached("first"), "Unknown", "no data plane runs"));
  const plane = startPlane(context, following);
  await plane.printed("for Gateway default/gw");
  await server.kubectl(["wait", "--for=condition=Programmed", "gateway/gw", "--timeout=60s"]);
  await eventually(async () => assert.equal(await attached("first"), "True"));
  await apply(policy("second"));
  await eventually(async () => assert.equal(await attached("second"), "True"));

  await t.test("the report is one object of the replica, which it takes away when it stops", async () => {
    const selector = ["-n", "gwproxy-system", "-l", "app.kubernetes.io/component=acknowledgements"];
    const reports = await server.kubectl(["get", "configmap", ...selector, "-o", "json"]);
    const { items } = JSON.parse(reports) as { items: readonly { data: Readonly<Record<string, string>> }[] };
    assert.equal(items.length, 1, "the leader reports nothing");
    const report = JSON.parse(items[0]?.data["report.json"] ?? "") as object;
    assert.deepEqual(Object.keys(report), ["gateways", "refused"]);
    await follower.kill("SIGTERM");
    await eventually(async () =>
      assert.equal(await server.kubectl(["get", "configmap", ...selector, "-o", "name"]), ""),
    );
    assert.equal(await attached("second"), "True", "what was acknowledged stays so");
  });
  assert.doesNotMatch(leader.output() + follower.output(), /forbidden|cannot be told/);
});
