/** HTTPRoutes that delegate to HTTPRoutes, on a real API server: every tree of the table, step by step. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../src/api/object.ts";
import { TREE_NAMESPACES, type TreeStep } from "../support/fixtures/delegation/tree.ts";
import { TREES } from "../support/fixtures/delegation/trees.ts";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { answerTo, describeParents, describePolicy, startTreeEcho } from "../support/gateway/delegation.ts";
import { documents, GATEWAY, staticBackend } from "../support/gateway/gateway.ts";
import { eventually } from "../support/gateway/process.ts";
import { startCluster, startController, startPlane } from "../support/kubernetes/cluster.ts";
import { contextOf } from "../support/proofs/prove.ts";

type StoredRoute = KubeObject & { readonly status?: { readonly parents?: Parameters<typeof describeParents>[0] } };
type StoredPolicy = KubeObject & { readonly status?: { readonly ancestors?: Parameters<typeof describePolicy>[0] } };

test("routes delegate on a cluster as they do from files, and no status stays behind", async (t) => {
  const context = contextOf(t);
  const server = await startCluster(context);
  const echo = await startTreeEcho(context);
  const [port = 0, xds = 0] = await freePorts(2);
  await startController(context, server, xds);
  const plane = startPlane(context, xds);
  const apply = (text: string) => server.kubectl(["apply", "-f", "-"], text);
  const own = TREE_NAMESPACES.filter((namespace) => namespace !== "default");
  await apply(
    documents(...own.map((name) => JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name } }))),
  );
  const backends = TREE_NAMESPACES.map((namespace) =>
    staticBackend("echo", echo).replace("{name: echo}", `{name: echo, namespace: ${namespace}}`),
  );
  await apply(documents(GATEWAY.replace("port: 8080", `port: ${port}`), ...backends));
  await plane.printed(`listening on 127.0.0.1:${port} for Gateway default/gw`);

  const remove = async (ids: readonly string[]): Promise<void> => {
    for (const id of ids) {
      const [kind = "", namespace = "", name = ""] = id.split(/[ /]/);
      await server.kubectl(["delete", kind.toLowerCase(), name, "-n", namespace]);
    }
  };
  const stored = async (kind: string): Promise<readonly unknown[]> => {
    const { items } = JSON.parse(await server.kubectl(["get", kind, "-A", "-o", "json"])) as { items: unknown[] };
    return items;
  };
  const check = async ({ title, requests, status, policies = {} }: TreeStep): Promise<void> => {
    const items = (await stored("httproutes")) as readonly StoredRoute[];
    for (const [request, answer] of Object.entries(requests))
      assert.equal(await answerTo(`http://127.0.0.1:${port}`, request), answer, `${title}: ${request}`);
    for (const [id, lines] of Object.entries(status)) {
      const route = items.find(({ metadata: { namespace, name } }) => `${namespace}/${name}` === id);
      assert.deepEqual(describeParents(route?.status?.parents ?? []), [...lines].sort(), `${title}: status of ${id}`);
    }
    const described = ((await stored("gwpolicies")) as readonly StoredPolicy[]).map(
      ({ metadata: { namespace, name }, status: found }) =>
        [`${namespace}/${name}`, describePolicy(found?.ancestors ?? [])] as const,
    );
    assert.deepEqual(Object.fromEntries(described), policies, `${title}: policies`);
  };

  const ages = async (): Promise<Map<string, string>> => {
    const routes = (await stored("httproutes")) as readonly StoredRoute[];
    return new Map(
      routes.map(({ metadata: { namespace, name, creationTimestamp = "" } }) => [
        `${namespace}/${name}`,
        creationTimestamp,
      ]),
    );
  };
  // Ages have whole seconds. An object that is created for show alone tells the second of the server.
  const untilLater = async (): Promise<void> => {
    const youngest = [...(await ages()).values()].sort().at(-1) ?? "";
    const probe = ["create", "configmap", "now", "--dry-run=server", "-o", "jsonpath={.metadata.creationTimestamp}"];
    await eventually(async () => assert.ok((await server.kubectl(probe)) > youngest));
  };
  const create = async (objects: readonly KubeObject[], created: TreeStep["created"]): Promise<void> => {
    const before = await ages();
    if (created === "later") await untilLater();
    await apply(documents(...objects.map((object) => JSON.stringify(object))));
    if (created !== "together") return;
    const born = [...(await ages())].filter(([id]) => !before.has(id));
    if (new Set(born.map(([, age]) => age)).size === 1) return;
    await remove(born.map(([id]) => `HTTPRoute ${id}`));
    await create(objects, created);
  };

  for (const { name, steps } of TREES)
    await t.test(name, async () => {
      for (const step of steps) {
        if (step.apply !== undefined) await create(step.apply, step.created);
        await remove(step.remove ?? []);
        await eventually(() => check(step));
      }
      const all = ["httproutes,referencegrants,gwpolicies", "--all", "-A"];
      await server.kubectl(["delete", ...all]);
      await eventually(async () => assert.equal(await answerTo(`http://127.0.0.1:${port}`, "/t"), "404"));
    });
});
