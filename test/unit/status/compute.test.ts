import assert from "node:assert/strict";
import { test } from "node:test";
import { computeStatus } from "../../../src/status/compute.ts";
import type { StatusContext } from "../../../src/status/condition.ts";
import type { DesiredStatus } from "../../../src/status/desired.ts";
import { mergeEntries } from "../../../src/status/merge.ts";
import type {
  BackendStatusInput,
  PolicyStatusInput,
  RouteStatusInput,
} from "../../../src/translator/shared/status-input.ts";
import { REASON, refusing, summary } from "./contexts.ts";

const FACTS: PolicyStatusInput = {
  kind: "GwPolicy",
  id: { group: "gwproxy.dev", kind: "GwPolicy", namespace: "default", name: "p" },
  generation: 7,
  key: "policy/default/p",
  gateways: ["default/main"],
  targetErrors: [],
  diagnostics: [],
  produced: true,
  overriding: new Map(),
};

function entriesOf(facts: PolicyStatusInput, acknowledged: (key: string) => boolean) {
  const status: DesiredStatus = computeStatus(facts, {
    controllerName: "c",
    acknowledged,
    hasDataPlane: () => false,
    nackReason: () => undefined,
  });
  assert.ok(status.form === "listed");
  return status.entries;
}

function conditionOf(facts: PolicyStatusInput, type: string, acknowledged = false) {
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

test("a policy that loses everything at one Gateway says so there alone, and not when it is invalid", () => {
  const overriding = new Map([["default/main", ["default/a", "infra/b"]]]);
  const facts = { ...FACTS, gateways: ["default/main", "default/other"], overriding };
  const found = (given: PolicyStatusInput) =>
    entriesOf(given, () => true).map(({ conditions }) => conditions.find(({ type }) => type === "Overridden"));
  const message = "everything that it sets is set by GwPolicy default/a, infra/b";
  assert.deepEqual(found(facts), [
    { type: "Overridden", status: "True", reason: "Overridden", message, observedGeneration: 7 },
    undefined,
  ]);
  assert.equal(conditionOf(facts, "Attached", true)?.status, "True");
  assert.deepEqual(found({ ...facts, produced: false }), [undefined, undefined]);
});

test("beyond sixteen ancestors the summary still says what else is wrong, and how many entries are left out", () => {
  const gateways = Array.from({ length: 20 }, (_, at) => `default/g${at}`);
  const problems = [
    {
      path: "spec.targetRefs[0]",
      message: "HTTPRoute default/none does not exist",
      foreign: false,
      isUnattached: false,
    },
  ];
  const entries = entriesOf({ ...FACTS, gateways, targetErrors: problems }, () => true);
  const foreign = ["a", "b"].map((name) => ({ ref: { name }, controllerName: "theirs", conditions: [] }));
  const written = mergeEntries(entries, foreign, { controllerName: "c", limit: 16, now: "2026-01-01T00:00:00Z" });
  assert.equal(written.length, 16);
  assert.deepEqual(
    written.at(-1)?.conditions.map(({ type, message }) => `${type}: ${message}`),
    [
      "Accepted: the policy is valid",
      "Attached: HTTPRoute default/none does not exist",
      "StatusSummarized: 7 more entries are left out, the list is full",
    ],
  );
});

test("a refused policy is not attached on the Gateway whose data plane refused it, and says why", () => {
  const facts = { ...FACTS, gateways: ["default/main", "default/other"] };
  const status = computeStatus(facts, refusing("Policy policy/default/p"));
  assert.ok(status.form === "listed");
  assert.deepEqual(
    status.entries.map(({ conditions }) => summary(conditions)),
    [
      ["Accepted True Valid: the policy is valid", `Attached False Pending: a data plane refused it: ${REASON}`],
      ["Accepted True Valid: the policy is valid", "Attached True Attached: the policy is in force"],
    ],
  );
});

test("a refused route stays attached and has a translation error on that Gateway alone", () => {
  const parent = (name: string) => ({
    gateways: [`default/${name}`],
    ref: { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "default", name },
    listeners: [],
    error: undefined,
    at: 0,
  });
  const facts: RouteStatusInput = {
    kind: "HTTPRoute",
    resource: "HttpRoute",
    id: { group: "gateway.networking.k8s.io", kind: "HTTPRoute", namespace: "default", name: "r" },
    generation: 1,
    key: "httproute/default/r",
    parents: [parent("main"), parent("other")],
    errors: [],
  };
  const status = computeStatus(facts, refusing("HttpRoute httproute/default/r"));
  assert.ok(status.form === "listed");
  assert.deepEqual(
    status.entries.map(({ conditions }) => summary(conditions)),
    [
      [
        "Accepted True Accepted: the route is attached",
        `ResolvedRefs False TranslationError: a data plane refused it: ${REASON}`,
      ],
      ["Accepted True Accepted: the route is attached", "ResolvedRefs True ResolvedRefs: all references are resolved"],
    ],
  );
});

test("a refused backend is not accepted", () => {
  const facts: BackendStatusInput = {
    kind: "GwBackend",
    id: { group: "gwproxy.dev", kind: "GwBackend", namespace: "default", name: "b" },
    generation: 1,
    key: "backend/default/b",
    accepted: true,
    diagnostics: [],
  };
  const conditionsOf = (context: StatusContext): string[] => {
    const status = computeStatus(facts, context);
    assert.ok(status.form === "keyed");
    return summary(status.conditions);
  };
  assert.deepEqual(conditionsOf(refusing("Backend backend/default/b")), [
    `Accepted False TranslationError: a data plane refused it: ${REASON}`,
  ]);
  assert.deepEqual(conditionsOf(refusing("Backend backend/default/other")), ["Accepted True Accepted: translated"]);
});
