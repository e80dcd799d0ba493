import assert from "node:assert/strict";
import { test } from "node:test";
import { computeStatus } from "../../../src/status/compute.ts";
import type { DesiredStatus } from "../../../src/status/desired.ts";
import type { PolicyFacts } from "../../../src/translator/facts.ts";

const FACTS: PolicyFacts = {
  kind: "GwPolicy",
  id: { group: "gwproxy.dev", kind: "GwPolicy", namespace: "default", name: "p" },
  generation: 7,
  key: "policy/default/p",
  gateways: ["default/main"],
  problems: [],
  diagnostics: [],
  produced: true,
};

function entriesOf(facts: PolicyFacts, acknowledged: (key: string) => boolean) {
  const status: DesiredStatus = computeStatus(facts, { controllerName: "c", acknowledged });
  assert.ok(status.form === "listed");
  return status.entries;
}

function conditionOf(facts: PolicyFacts, type: string, acknowledged = false) {
  const [entry] = entriesOf(facts, () => acknowledged);
  return entry?.conditions.find((condition) => condition.type === type);
}

test("a policy is attached only when a data plane has acknowledged its own resource", () => {
  assert.equal(conditionOf(FACTS, "Attached")?.status, "Unknown");
  assert.equal(conditionOf(FACTS, "Attached", true)?.status, "True");
  const [entry] = entriesOf(FACTS, (key) => key === "policy/default/other");
  assert.equal(entry?.conditions.find(({ type }) => type === "Attached")?.reason, "Pending");
});

test("a policy of which nothing could be translated is invalid and never attached", () => {
  const diagnostics = [
    { code: "policy_invalid", severity: "error", object: FACTS.id, path: "spec.traffic", message: "bad" },
  ] as const;
  const invalid = { ...FACTS, produced: false, diagnostics };
  assert.deepEqual(conditionOf(invalid, "Accepted", true), {
    type: "Accepted",
    status: "False",
    reason: "Invalid",
    message: "spec.traffic: bad",
    observedGeneration: 7,
  });
  assert.equal(conditionOf(invalid, "Attached", true)?.status, "False");
  assert.equal(conditionOf({ ...FACTS, diagnostics }, "Accepted")?.reason, "PartiallyValid");
});

test("more than sixteen ancestors end in a summary that counts what is left out", () => {
  const gateways = Array.from({ length: 20 }, (_, at) => `default/g${at}`);
  const entries = entriesOf({ ...FACTS, gateways }, () => true);
  assert.equal(entries.length, 16);
  assert.deepEqual(entries.at(-1)?.ref, { group: "gwproxy.dev", name: "StatusSummary" });
  assert.equal(entries.at(-1)?.conditions[0]?.message, "5 more entries are left out");
});
