/** Which objects count where an installation looks at some namespaces alone, and what happens when one is labelled anew. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LabelSelector } from "../../../../src/api/label-selector.ts";
import { objectId, type KubeObject } from "../../../../src/api/object.ts";
import { filterNamespaces } from "../../../../src/sources/kubernetes/namespace-filter.ts";
import type { ObjectEvent } from "../../../../src/sources/source.ts";

function set(kind: string, name: string, namespace = "", labels: Readonly<Record<string, string>> = {}): ObjectEvent {
  const metadata = { name, labels, ...(namespace === "" ? {} : { namespace }) };
  return { type: "set", object: { apiVersion: "v1", kind, metadata } satisfies KubeObject };
}

function gone(kind: string, name: string, namespace = ""): ObjectEvent {
  return { type: "delete", id: { group: "", kind, namespace, name } };
}

/** Passes batches and tells what comes out of each, as "set Kind namespace/name". */
function filter(selectors: readonly LabelSelector[]): (...events: readonly ObjectEvent[]) => string[] {
  let passed: readonly ObjectEvent[] = [];
  const sink = filterNamespaces({ apply: (events) => void (passed = events), report: () => undefined }, selectors);
  return (...events) => {
    sink.apply(events);
    return passed.map((event) => {
      const { kind, namespace, name } = event.type === "set" ? objectId(event.object) : event.id;
      return `${event.type} ${kind} ${namespace}/${name}`;
    });
  };
}

const TEAM_A: LabelSelector = { matchLabels: { team: "a" } };
const PROD: LabelSelector = { matchExpressions: [{ key: "stage", operator: "In", values: ["prod"] }] };

test("without selectors everything passes as it came", () => {
  const pass = filter([]);
  assert.deepEqual(pass(set("Service", "s", "unknown"), set("GatewayClass", "c")), [
    "set Service unknown/s",
    "set GatewayClass /c",
  ]);
});

test("what one of several selectors chooses counts, wherever its namespace stands in the batch", () => {
  const pass = filter([TEAM_A, PROD]);
  const passed = pass(
    set("Service", "one", "a"),
    set("Service", "two", "live"),
    set("Service", "three", "other"),
    set("Service", "four", "never-seen"),
    set("GatewayClass", "gwproxy"),
    set("Namespace", "a", "", { team: "a" }),
    set("Namespace", "live", "", { stage: "prod" }),
    set("Namespace", "other", "", { team: "b" }),
  );
  assert.deepEqual(
    passed.filter((line) => !line.includes("Namespace")),
    ["set Service a/one", "set Service live/two", "set GatewayClass /gwproxy"],
  );
  assert.equal(passed.filter((line) => line.includes("Namespace")).length, 3);
});

test("a namespace that is labelled anew brings its objects as they are now, or takes them away", () => {
  const pass = filter([TEAM_A]);
  pass(set("Namespace", "x"), set("Service", "kept", "x"), set("Service", "lost", "x"));
  assert.deepEqual(pass(gone("Service", "lost", "x")), []);
  assert.deepEqual(pass(set("Namespace", "x", "", { team: "a" })), ["set Namespace /x", "set Service x/kept"]);
  assert.deepEqual(pass(set("Namespace", "x", "", { team: "a", more: "b" })), ["set Namespace /x"]);
  assert.deepEqual(pass(set("Service", "new", "x")), ["set Service x/new"]);
  assert.deepEqual(pass(set("Namespace", "x")), ["set Namespace /x", "delete Service x/kept", "delete Service x/new"]);
  assert.deepEqual(pass(set("Service", "new", "x"), gone("Namespace", "x")), ["delete Namespace /x"]);
});

test("a namespace can be chosen by its name", () => {
  const pass = filter([{ matchLabels: { "kubernetes.io/metadata.name": "x" } }]);
  assert.deepEqual(pass(set("Namespace", "x"), set("Service", "s", "x")), ["set Namespace /x", "set Service x/s"]);
  const forged = { "kubernetes.io/metadata.name": "x" };
  assert.deepEqual(pass(set("Namespace", "y", "", forged), set("Service", "s", "y")), ["set Namespace /y"]);
});
