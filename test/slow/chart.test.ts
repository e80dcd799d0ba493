/**
 * The charts on a real node, from the installation to the removal: the quickstart of the README for clusters, and under
 * load, without a failed request, edits, an upgrade that rolls controller and data planes, a rollback, another leader,
 * another kind of workload, restarted node agents and an API server that is away; then nothing is left behind.
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../support/gateway/process.ts";
import { changeRelease, importOurImages, installCharts, NAMESPACE, runHelm } from "../testbed/installation.ts";
import { startNode, type Node } from "../testbed/node.ts";

const EXAMPLE = join(import.meta.dirname, "../../examples/cluster");

/**
 * Sends requests over eight keep-alive connections until its file is gone, then prints what became of them. It runs on the
 * node, outside of pods.
 */
const LOAD = `
  import { existsSync } from "node:fs";
  import { Agent, request } from "node:http";
  const [url, file] = process.argv.slice(1);
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const counts = {};
  const send = () => new Promise((resolve) => {
    const outgoing = request(url, { agent }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
      response.on("error", (error) => resolve(error.code));
    });
    // An idle connection may be closed while a request is on its way; clients repeat it then (RFC 9112 9.3.1).
    outgoing.on("error", (error) => resolve(outgoing.reusedSocket && error.code === "ECONNRESET" ? "again" : error.code));
    outgoing.end();
  });
  const work = async () => {
    while (existsSync(file)) {
      const result = await send();
      counts[result] = (counts[result] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  console.log(JSON.stringify(counts));
`;

/** Runs the work while requests are sent. @returns the number of answers by status or error */
async function underLoad(node: Node, url: string, work: () => Promise<void>): Promise<Record<string, number>> {
  const file = join(node.pit.directory, "load");
  writeFileSync(file, "");
  const load = node.pit.run([process.execPath, "--input-type=module", "-e", LOAD, url, file]);
  try {
    await work();
  } finally {
    rmSync(file);
  }
  return JSON.parse(await load) as Record<string, number>; // printed by LOAD
}

/** Sends requests while the work goes on, and demands that each of them is answered by 200. @returns how many there were */
async function losesNothing(node: Node, url: string, work: () => Promise<void>): Promise<string> {
  const { 200: served = 0, again = 0, ...failed } = await underLoad(node, url, work);
  assert.deepEqual(failed, {});
  assert.ok(served > 300, `${served} requests`);
  return `${served} requests, ${again} repeated over another connection`;
}

const CHAT = JSON.stringify({ model: "mock", messages: [{ role: "user", content: "Hello there" }] });

/** Seconds without an API server: long enough for the node to be taken for lost, and for every wait between attempts. */
const AWAY_SECONDS = 300;

function parameters(spec: object): string {
  const metadata = { name: "quickstart", namespace: "default" };
  return JSON.stringify({ apiVersion: "gwproxy.dev/v1alpha1", kind: "GwParameters", metadata, spec });
}
const TWO_PLANES = parameters({ deployment: { spec: { replicas: 2 } } });
const ONE_PLANE_A_NODE = parameters({ workload: { kind: "DaemonSet" } });
const PARAMETERS = {
  spec: { infrastructure: { parametersRef: { group: "gwproxy.dev", kind: "GwParameters", name: "quickstart" } } },
};

/** Edits the route and waits until its answers show it. @param value of a header that the route then adds */
async function edit(node: Node, url: string, value: string): Promise<void> {
  const responseHeaderModifier = { set: [{ name: "x-edited", value }] };
  const filters = [{ type: "ResponseHeaderModifier", responseHeaderModifier }];
  const patch = JSON.stringify([{ op: "add", path: "/spec/rules/0/filters", value: filters }]);
  await node.kubectl(["patch", "httproute", "hello", "--type=json", "-p", patch]);
  const shown = new RegExp(`^x-edited: ${value}\\r$`, "m");
  await eventually(async () => assert.match(await node.pit.run(["curl", "-sSi", url]), shown));
}

test("the charts install, serve, upgrade, roll back and leave nothing", async (t) => {
  const node = await startNode();
  t.after(() => node.stop());
  await importOurImages(node);
  await installCharts(node);
  let url = "";

  await t.test("helm test sends a request through a Gateway of its own, and removes it", async () => {
    await runHelm(node, ["test", "gwproxy", "--timeout", "180s"]);
    await eventually(async () => assert.equal(await node.kubectl(["get", "gateways", "-A", "-o", "name"]), ""));
  });

  await t.test("the quickstart for clusters serves, and the webhook refuses what the schema cannot see", async () => {
    await node.kubectl(["apply", "-f", EXAMPLE]);
    await node.kubectl(["wait", "--for=condition=Programmed", "gateway/quickstart", "--timeout=120s"]);
    await node.kubectl(["rollout", "status", "deployment/hello", "--timeout=60s"]);
    const address = await node.kubectl(["get", "gateway", "quickstart", "-o", "jsonpath={.status.addresses[0].value}"]);
    url = `http://${address}:8080/hello`;
    await eventually(async () => assert.match(await node.pit.run(["curl", "-sS", url]), /"hello":"world"/));
    const chat = ["curl", "-sS", `http://${address}:8080/v1/chat/completions`, "-d", CHAT];
    await eventually(async () => assert.match(await node.pit.run(chat), /"content":"You said: Hello there"/));
    const broken = ["patch", "gwpolicy", "hello", "--type=merge", "-p", '{"spec":{"targetRefs":[]}}'];
    await assert.rejects(node.kubectl(broken));
    const expression = {
      traffic: { authorization: { action: "Require", policy: { matchExpressions: ["request."] } } },
    };
    const refused = ["patch", "gwpolicy", "hello", "--type=merge", "-p", JSON.stringify({ spec: expression })];
    await assert.rejects(node.kubectl(refused), /the expression does not compile: the expression ends too early/);
  });

  await t.test("an edit, an upgrade, a rollback and a killed controller cost no request", async () => {
    await node.kubectl(["apply", "-f", "-"], TWO_PLANES);
    await node.kubectl(["patch", "gateway", "quickstart", "--type=merge", "-p", JSON.stringify(PARAMETERS)]);
    await eventually(async () => assert.equal(await replicas(node), "2"));
    const hosts = (): Promise<string> => node.kubectl(["get", "deployment", "quickstart", "-o", "json"]);
    const rolled = async (): Promise<void> =>
      void (await node.kubectl(["rollout", "status", "deployment/quickstart", "--timeout=120s"]));
    const counts = await losesNothing(node, url, async () => {
      await edit(node, url, "first");
      await changeRelease(node, "upgrade", { proxy: { ambientIdentityHosts: ["cloud.example.com"] } });
      await eventually(async () => assert.match(await hosts(), /cloud\.example\.com/));
      await rolled();
      await runHelm(node, ["rollback", "gwproxy", "--wait", "--timeout", "180s"]);
      await eventually(async () => assert.doesNotMatch(await hosts(), /cloud\.example\.com/));
      await rolled();
      const pods = ["--namespace", NAMESPACE, "--selector", "gwproxy=gwproxy"];
      await node.kubectl(["delete", "pods", ...pods, "--grace-period=0", "--force"]);
      await controllersRun(node);
    });
    t.diagnostic(counts);
  });

  await t.test("with two controllers, another one writes when the one that did is killed", async () => {
    await changeRelease(node, "upgrade", { controller: { replicaCount: 2 } });
    const counts = await losesNothing(node, url, async () => {
      const killed = await leader(node);
      await node.kubectl(["delete", "pod", killed, "--namespace", NAMESPACE, "--grace-period=0", "--force"]);
      await edit(node, url, "by-another-leader");
      const next = await eventually(async () => {
        const name = await leader(node);
        assert.notEqual(name, killed);
        return name;
      });
      const pods = await node.kubectl(["get", "pods", "--namespace", NAMESPACE, "-o", "name"]);
      assert.ok(pods.split("\n").includes(`pod/${next}`), `${next} of ${pods}`);
      await generationIsServed(node);
      await controllersRun(node);
    });
    t.diagnostic(counts);
  });

  await t.test("a workload of another kind serves before the former one goes, and back", async () => {
    const kinds = (): Promise<string> => node.kubectl(["get", "deployments,daemonsets", "-o", "name"]);
    const counts = await losesNothing(node, url, async () => {
      await node.kubectl(["apply", "-f", "-"], ONE_PLANE_A_NODE);
      await eventually(async () => assert.doesNotMatch(await kinds(), /deployment.apps\/quickstart/));
      await edit(node, url, "by-a-daemon-set");
      await node.kubectl(["apply", "-f", "-"], TWO_PLANES);
      await eventually(async () => assert.doesNotMatch(await kinds(), /daemonset.apps\/quickstart/));
      await edit(node, url, "by-a-deployment");
    });
    t.diagnostic(counts);
  });

  await t.test("the agents of the node may crash and come back", async () => {
    const rolled = ["rollout", "status", "deployment/hello", "--timeout=120s"];
    // Kubelet, until 1.35, takes a pod with such a probe for one that is not ready until it has probed it again itself.
    const unprobed = [{ op: "remove", path: "/spec/template/spec/containers/0/readinessProbe" }];
    await node.kubectl(["patch", "deployment", "hello", "--type=json", "-p", JSON.stringify(unprobed)]);
    await node.kubectl(rolled);
    const counts = await losesNothing(node, url, async () => {
      await node.crashAgents();
      const ready = `--for=jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`;
      await node.kubectl(["wait", ready, "nodes", "--all", "--timeout=120s"]);
      await node.kubectl(["apply", "-f", EXAMPLE]);
      await node.kubectl(rolled);
      await edit(node, url, "after-the-agents");
    });
    t.diagnostic(counts);
  });

  await t.test("the API server may be away, and edits arrive when it is back", async () => {
    const counts = await losesNothing(node, url, async () => {
      await node.pit.kill("kube-apiserver");
      await sleep(AWAY_SECONDS * 1000);
      node.pit.startAgain("kube-apiserver");
      await eventually(async () => void (await node.kubectl(["get", "--raw", "/readyz"])));
      await edit(node, url, "after-the-api-server");
      await generationIsServed(node);
    });
    t.diagnostic(counts);
  });

  await t.test("uninstalling leaves the definitions and nothing else", async () => {
    await node.kubectl(["delete", "-f", EXAMPLE, "--wait"]);
    await node.kubectl(["delete", "gwparameters", "--all"]);
    await runHelm(node, ["uninstall", "gwproxy", "--wait"]);
    await runHelm(node, ["uninstall", "gwproxy-crds", "--wait"]);
    const everywhere = "gatewayclasses,clusterroles,clusterrolebindings,validatingwebhookconfigurations";
    const own = "leases,secrets,configmaps,services,deployments,pods,roles,rolebindings,serviceaccounts";
    await eventually(async () => {
      const left = [
        await node.kubectl(["get", everywhere, "-o", "name"]),
        await node.kubectl(["get", own, "-o", "name", "--namespace", NAMESPACE]),
        await node.kubectl(["get", own, "-o", "name", "--namespace", "default"]),
      ].flatMap((text) => text.split("\n").filter((line) => /gwproxy|quickstart|hello/.test(line)));
      assert.deepEqual(left, []);
      // A data plane may take its grace period of a minute.
    }, 180_000);
    const definitions = await node.kubectl(["get", "crd", "-o", "name"]);
    assert.equal(definitions.split("\n").filter((name) => name.endsWith(".gwproxy.dev")).length, 4);
  });
});

/** @returns the name of the controller's pod that writes */
async function leader(node: Node): Promise<string> {
  const lease = ["get", "leases", "--namespace", NAMESPACE, "-o", "jsonpath={.items[0].spec.holderIdentity}"];
  const holder = await node.kubectl(lease);
  assert.match(holder, /^gwproxy-/);
  return holder;
}

/** Waits for the status that only the leader writes: the latest edit of the route is accepted. */
async function generationIsServed(node: Node): Promise<void> {
  await eventually(async () => {
    const { metadata, status } = JSON.parse(
      await node.kubectl(["get", "httproute", "hello", "-o", "json"]),
    ) as Observed;
    assert.equal(status.parents[0]?.conditions[0]?.observedGeneration, metadata.generation);
  });
}

/** What the test reads of a route. */
interface Observed {
  readonly metadata: { readonly generation: number };
  readonly status: { readonly parents: { readonly conditions: { readonly observedGeneration: number }[] }[] };
}

async function controllersRun(node: Node): Promise<void> {
  const rollout = ["rollout", "status", "deployment/gwproxy", "--namespace", NAMESPACE, "--timeout=120s"];
  await node.kubectl(rollout);
}

function replicas(node: Node): Promise<string> {
  return node.kubectl(["get", "deployment", "quickstart", "-o", "jsonpath={.status.readyReplicas}"]);
}
