/** The node of the tests: it runs pods, balances to them, and leaves nothing behind, however its owner ends. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { eventually } from "../support/gateway/process.ts";
import { startNode } from "../testbed/node.ts";
import { programImage } from "../testbed/node/images.ts";
import { programs } from "../testbed/programs.ts";

const NODE = join(import.meta.dirname, "../testbed/node.ts");
const ECHO_IMAGE = "gwproxy.test/echo:1";
const ECHO = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "echo" },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "echo" } },
    template: {
      metadata: { labels: { app: "echo" } },
      spec: {
        containers: [
          {
            name: "echo",
            image: ECHO_IMAGE,
            env: [{ name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
          },
        ],
      },
    },
  },
};

function balanced(name: string, extra: object): object {
  const spec = { type: "LoadBalancer", selector: { app: "echo" }, ports: [{ port: 80, targetPort: 3000 }], ...extra };
  return { apiVersion: "v1", kind: "Service", metadata: { name }, spec };
}

test("a node runs pods, and Services of type LoadBalancer reach them at their address", async (context) => {
  const node = await startNode();
  context.after(() => node.stop());
  await node.importImages(programImage(join(await programs("conformance"), "echo-basic"), [ECHO_IMAGE]));
  const objects = [ECHO, balanced("any", {}), balanced("wanted", { loadBalancerIP: "10.89.0.7" })];
  const refused = balanced("elsewhere", { loadBalancerIP: "203.0.113.7" });
  for (const object of [...objects, refused]) await node.kubectl(["apply", "-f", "-"], JSON.stringify(object));
  await node.kubectl(["rollout", "status", "deployment/echo", "--timeout=60s"]);

  const addressOf = (name: string): Promise<string> =>
    node.kubectl(["get", "service", name, "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}"]);
  const address = await eventually(async () => {
    const given = await addressOf("any");
    assert.match(given, /^10\.89\.\d+\.\d+$/);
    return given;
  });
  for (const host of [address, "10.89.0.7"])
    await eventually(async () => assert.match(await node.pit.run(["curl", "-sS", `http://${host}/`]), /"pod": "echo-/));
  assert.equal(await addressOf("elsewhere"), "");
});

test("a node whose owner is killed is gone with all its processes, control groups and files", async () => {
  const owner = spawn(process.execPath, ["--import", "tsx", NODE], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(createInterface({ input: owner.stdout }), "line")) as [string]; // as the event is declared
  const directory = dirname(/--kubeconfig (\S+)/.exec(line)?.[1] ?? "");
  const groups = readFileSync(join(directory, "groups"), "utf8").trim().split("\n");
  assert.ok(groups.length > 5 && groups.every((group) => existsSync(group)));
  owner.kill("SIGKILL");

  await eventually(async () => assert.ok(!existsSync(directory), `${directory} is still there`));
  assert.deepEqual(
    groups.filter((group) => existsSync(group)),
    [],
  );
  assert.deepEqual(processesThatName(directory), []);
});

function processesThatName(text: string): string[] {
  const commands = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8");
      } catch {
        return ""; // it has ended meanwhile
      }
    });
  return commands.filter((command) => command.includes(text));
}
