/**
 * The charts on a real node, from the installation to the removal: the quickstart of the README for clusters, edits, an
 * upgrade that rolls controller and data planes, a rollback and a killed controller under load without a failed request,
 * and nothing left behind.
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { eventually } from "../support/gateway/process.ts";
import { changeRelease, importOurImages, installCharts, runHelm } from "../testbed/installation.ts";
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

const TWO_PLANES = {
  apiVersion: "gwproxy.dev/v1alpha1",
  kind: "GwParameters",
  metadata: { name: "quickstart", namespace: "default" },
  spec: { deployment: { spec: { replicas: 2 } } },
};
const PARAMETERS = {
  spec: { infrastructure: { parametersRef: { group: "gwproxy.dev", kind: "GwParameters", name: "quickstart" } } },
};
const HEADERS = { add: [{ name: "x-edited", value: "yes" }] };
const EDIT = [
  {
    op: "add",
    path: "/spec/rules/0/filters",
    value: [{ type: "ResponseHeaderModifier", responseHeaderModifier: HEADERS }],
  },
];

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
    const broken = ["patch", "gwpolicy", "hello", "--type=merge", "-p", '{"spec":{"targetRefs":[]}}'];
    await assert.rejects(node.kubectl(broken));
    const expression = {
      traffic: { authorization: { action: "Require", policy: { matchExpressions: ["request."] } } },
    };
    const refused = ["patch", "gwpolicy", "hello", "--type=merge", "-p", JSON.stringify({ spec: expression })];
    await assert.rejects(node.kubectl(refused), /the expression does not compile: the expression ends too early/);
  });

  await t.test("an edit, an upgrade, a rollback and a killed controller cost no request", async () => {
    await node.kubectl(["apply", "-f", "-"], JSON.stringify(TWO_PLANES));
    await node.kubectl(["patch", "gateway", "quickstart", "--type=merge", "-p", JSON.stringify(PARAMETERS)]);
    await eventually(async () => assert.equal(await replicas(node), "2"));
    const hosts = (): Promise<string> => node.kubectl(["get", "deployment", "quickstart", "-o", "json"]);
    const rolled = async (): Promise<void> =>
      void (await node.kubectl(["rollout", "status", "deployment/quickstart", "--timeout=120s"]));
    const counts = await underLoad(node, url, async () => {
      await node.kubectl(["patch", "httproute", "hello", "--type=json", "-p", JSON.stringify(EDIT)]);
      await eventually(async () => assert.match(await node.pit.run(["curl", "-sSi", url]), /x-edited: yes/));
      await changeRelease(node, "upgrade", { proxy: { ambientIdentityHosts: ["cloud.example.com"] } });
      await eventually(async () => assert.match(await hosts(), /cloud\.example\.com/));
      await rolled();
      await runHelm(node, ["rollback", "gwproxy", "--wait", "--timeout", "180s"]);
      await eventually(async () => assert.doesNotMatch(await hosts(), /cloud\.example\.com/));
      await rolled();
      const pods = ["--namespace", "gwproxy-system", "--selector", "gwproxy=gwproxy"];
      await node.kubectl(["delete", "pods", ...pods, "--grace-period=0", "--force"]);
      await node.kubectl([
        "rollout",
        "status",
        "deployment/gwproxy",
        "--namespace",
        "gwproxy-system",
        "--timeout=120s",
      ]);
    });
    const { 200: served = 0, again = 0, ...failed } = counts;
    t.diagnostic(`${served} requests, ${again} repeated over another connection`);
    assert.deepEqual(failed, {});
    assert.ok(served > 1000, `${served} requests`);
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
        await node.kubectl(["get", own, "-o", "name", "--namespace", "gwproxy-system"]),
        await node.kubectl(["get", own, "-o", "name", "--namespace", "default"]),
      ].flatMap((text) => text.split("\n").filter((line) => /gwproxy|quickstart|hello/.test(line)));
      assert.deepEqual(left, []);
    });
    const definitions = await node.kubectl(["get", "crd", "-o", "name"]);
    assert.equal(definitions.split("\n").filter((name) => name.endsWith(".gwproxy.dev")).length, 4);
  });
});

function replicas(node: Node): Promise<string> {
  return node.kubectl(["get", "deployment", "quickstart", "-o", "jsonpath={.status.readyReplicas}"]);
}
