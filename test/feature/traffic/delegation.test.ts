/** HTTPRoutes that delegate to HTTPRoutes, from files: every tree of the table, step by step. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { objectId, objectKey, type KubeObject } from "../../../src/api/object.ts";
import { computeStatus } from "../../../src/status/compute.ts";
import type { DesiredEntry } from "../../../src/status/desired.ts";
import type { Translator } from "../../../src/translator/translator.ts";
import { TREE_NAMESPACES } from "../../support/fixtures/delegation/tree.ts";
import { TREES } from "../../support/fixtures/delegation/trees.ts";
import { answerTo, describeParents, describePolicy, startTreeEcho } from "../../support/gateway/delegation.ts";
import { documents, GATEWAY, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { contextOf } from "../../support/proofs/prove.ts";

function textOf(objects: Iterable<KubeObject>): string {
  return [...objects].map((object) => JSON.stringify(object)).join("\n---\n");
}

type Kind = "HTTPRoute" | "GwPolicy";

/** @param id "namespace/name" */
function statusOf(translator: Translator, kind: Kind, id: string): readonly DesiredEntry[] {
  const [namespace = "", name = ""] = id.split("/");
  const group = kind === "GwPolicy" ? "gwproxy.dev" : "gateway.networking.k8s.io";
  const input = translator.statusInput({ group, kind, namespace, name });
  if (input === undefined) return [];
  const status = computeStatus(input, {
    controllerName: "gwproxy.dev/gwproxy",
    acknowledged: () => true,
    hasDataPlane: () => true,
    nackReason: () => undefined,
  });
  assert.ok(status.form === "listed");
  return status.entries;
}

function parentsOf(translator: Translator, id: string): string[] {
  const entries = statusOf(translator, "HTTPRoute", id);
  return describeParents(entries.map(({ ref, conditions }) => ({ parentRef: ref, conditions })));
}

function ancestorsOf(translator: Translator, id: string): string[] {
  const entries = statusOf(translator, "GwPolicy", id);
  return describePolicy(entries.map(({ ref, conditions }) => ({ ancestorRef: ref, conditions })));
}

for (const { name, steps } of TREES)
  test(`delegation to ${name}`, async (t) => {
    const context = contextOf(t);
    const port = await startTreeEcho(context);
    const backends = TREE_NAMESPACES.map((namespace) =>
      staticBackend("echo", port).replace("{name: echo}", `{name: echo, namespace: ${namespace}}`),
    );
    const fixed = documents(GATEWAY, ...backends);
    const gateway = await startGateway(context, fixed);
    const objects = new Map<string, KubeObject>();
    for (const [
      at,
      { title, created, apply = [], remove = [], requests, status, policies, chains = {} },
    ] of steps.entries()) {
      for (const object of apply) {
        const key = objectKey(objectId(object));
        const second = created === undefined ? 0 : at;
        const born =
          objects.get(key)?.metadata.creationTimestamp ?? `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`;
        objects.set(key, { ...object, metadata: { ...object.metadata, creationTimestamp: born } });
      }
      for (const [key, object] of objects) {
        const { kind, namespace, name: own } = objectId(object);
        if (remove.includes(`${kind} ${namespace}/${own}`)) objects.delete(key);
      }
      await gateway.change(documents(fixed, textOf(objects.values())));
      for (const [request, answer] of Object.entries(requests))
        assert.equal(await answerTo(gateway.url(), request), answer, `${title}: ${request}`);
      for (const [route, lines] of Object.entries(status))
        assert.deepEqual(parentsOf(gateway.translator, route), [...lines].sort(), `${title}: status of ${route}`);
      for (const [route, expected] of Object.entries(chains)) {
        const explained = await gateway.proxy.explain(route);
        const ways = explained.map(({ via = [] }) => via.join(", "));
        assert.deepEqual(ways.sort(), [...expected].sort(), `${title}: chains to ${route}`);
      }
      const own = [...objects.values()].map(objectId).filter(({ kind }) => kind === "GwPolicy");
      const ids = own.map(({ namespace, name: policy }) => `${namespace}/${policy}`);
      const described = ids.map((id) => [id, ancestorsOf(gateway.translator, id)] as const);
      assert.deepEqual(Object.fromEntries(described), policies ?? {}, `${title}: policies`);
    }
  });
