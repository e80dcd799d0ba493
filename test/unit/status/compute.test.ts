import assert from "node:assert/strict";
import { test } from "node:test";
import { computeStatus } from "../../../src/status/compute.ts";
import type { DeploymentState, StatusContext } from "../../../src/status/condition.ts";
import { Reason } from "../../../src/api/conditions.ts";
import type { DesiredCondition, DesiredStatus } from "../../../src/status/desired.ts";
import { mergeEntries } from "../../../src/status/merge.ts";
import type {
  BackendStatusInput,
  GatewayStatusInput,
  ListenerSetStatusInput,
  PolicyStatusInput,
  RouteStatusInput,
} from "../../../src/translator/shared/status-input.ts";

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

const REASON = "units[0]: does not compile";

/** As if data planes of one Gateway had refused the resources of these "Type key". */
function refusing(...ids: readonly string[]): StatusContext {
  return {
    controllerName: "c",
    acknowledged: () => true,
    hasDataPlane: () => false,
    nackReason: (type, key, gateway = "default/main") =>
      gateway === "default/main" && ids.includes(`${type} ${key}`) ? REASON : undefined,
  };
}

function summary(conditions: readonly DesiredCondition[] | undefined): string[] {
  return (conditions ?? []).map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`);
}

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

const listener = (name: string, port: number) => ({
  name,
  key: `default/main.${name}`,
  bind: `${port}/default/main`,
  port,
  hostname: "",
  internal: false,
  supportedKinds: [],
  namespaces: { from: "Same" },
  protocol: "HTTP",
  error: undefined,
  kindError: undefined,
  tlsError: undefined,
  trustError: undefined,
});
const GATEWAY_FACTS: GatewayStatusInput = {
  kind: "Gateway",
  id: { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "default", name: "main" },
  generation: 1,
  listeners: [listener("a", 80), listener("b", 81)],
  attached: new Map(),
  attachedListenerSets: 0,
  catalogSources: [],
  client: undefined,
  admitsUnverifiedClients: false,
  wasProgrammed: false,
  error: undefined,
  addressError: undefined,
  address: undefined,
};

test("a refused listener is not programmed, and the Gateway is not when none is left", () => {
  const programmed = (...refused: readonly string[]): string[] => {
    const status = computeStatus(GATEWAY_FACTS, refusing(...refused));
    assert.ok(status.form === "keyed");
    const all = [status.conditions, ...(status.listeners ?? []).map(({ conditions }) => conditions)];
    return all.flatMap((conditions) => summary(conditions.filter(({ type }) => type === "Programmed")));
  };
  const sentence = `a data plane refused it: ${REASON}`;
  assert.deepEqual(programmed("Listener default/main.a"), [
    `Programmed True Programmed: configuration is sent to data planes; listener a: ${sentence}`,
    `Programmed False Invalid: ${sentence}`,
    "Programmed True Programmed: the listener is sent to data planes",
  ]);
  assert.deepEqual(programmed("Listener default/main.a", "Bind 81/default/main"), [
    `Programmed False Invalid: no listener can serve; listener a: ${sentence}; listener b: ${sentence}`,
    `Programmed False Invalid: ${sentence}`,
    `Programmed False Invalid: ${sentence}`,
  ]);
});

const REF_FAULT = { reason: Reason.InvalidCACertificateRef, message: "ConfigMap default/gone not found" };
const TRUST_FAULT = { reason: Reason.NoValidCACertificate, message: "none can be used" };

test("a listener that can trust no client is not accepted, and its reference says why", () => {
  const broken = { ...listener("a", 80), tlsError: REF_FAULT, trustError: TRUST_FAULT };
  const status = computeStatus({ ...GATEWAY_FACTS, listeners: [broken, listener("b", 81)] }, refusing());
  assert.ok(status.form === "keyed");
  assert.equal(summary(status.conditions)[0], "Accepted True ListenersNotValid: listener a: none can be used");
  assert.deepEqual(summary(status.listeners?.[0]?.conditions ?? []), [
    "Accepted False NoValidCACertificate: none can be used",
    "Programmed False Invalid: ConfigMap default/gone not found",
    "Conflicted False NoConflicts: no other listener is in the way",
    "ResolvedRefs False InvalidCACertificateRef: ConfigMap default/gone not found",
  ]);
});

test("a ListenerSet is programmed with the listeners that are valid, and not without any", () => {
  const conditionsWith = (...listeners: ListenerSetStatusInput["listeners"]): string[] => {
    const id = { ...GATEWAY_FACTS.id, kind: "ListenerSet" };
    const place = { id, generation: 1, gateway: "default/main", allowed: true };
    const facts: ListenerSetStatusInput = { kind: "ListenerSet", ...place, listeners, attached: new Map() };
    const status = computeStatus(facts, refusing());
    assert.ok(status.form === "keyed");
    return summary(status.conditions);
  };
  const broken = { ...listener("a", 80), tlsError: REF_FAULT };
  assert.deepEqual(conditionsWith(broken, listener("b", 81)), [
    "Accepted True ListenersNotValid: listener a: ConfigMap default/gone not found",
    "Programmed True Programmed: configuration is sent to data planes",
  ]);
  assert.deepEqual(conditionsWith(broken), [
    "Accepted False ListenersNotValid: listener a: ConfigMap default/gone not found",
    "Programmed False ListenersNotValid: listener a: ConfigMap default/gone not found",
  ]);
});

/** "Type Status Reason" of each condition, and the addresses; a data plane has acknowledged the listeners. */
function deployed(
  more: Partial<GatewayStatusInput>,
  state: Partial<DeploymentState> = {},
  hasDataPlane = true,
): string[] {
  const nothing = { addresses: [], failure: undefined, hasReadyPods: false, hasMesh: false };
  const deployment = (): DeploymentState => ({ ...nothing, ...state });
  const context = { ...refusing(), deployment, hasDataPlane: () => hasDataPlane };
  const status = computeStatus({ ...GATEWAY_FACTS, ...more }, context);
  assert.ok(status.form === "keyed");
  return [...summary(status.conditions), ...(status.addresses ?? []).map(({ type, value }) => `${type} ${value}`)];
}

const ACCEPTED = "Accepted True Accepted: all listeners are valid";
const ADDRESS = { type: "IPAddress", value: "10.0.0.1" } as const;

test("a Gateway is programmed once its Service has an address", () => {
  assert.deepEqual(deployed({}), [ACCEPTED, "Programmed False Pending: no address yet"]);
  assert.deepEqual(deployed({}, { addresses: [ADDRESS] }), [
    ACCEPTED,
    "Programmed True Programmed: configuration is sent to data planes",
    "IPAddress 10.0.0.1",
  ]);
});

test("a Gateway is programmed once a data plane has acknowledged its listeners, and stays so", () => {
  const programmed = (state: Partial<DeploymentState>, more: Partial<GatewayStatusInput> = {}): string | undefined =>
    deployed(more, state, false)[1];
  assert.equal(programmed({}), "Programmed False Pending: no address yet; no data plane is connected");
  const pending = "Programmed False Pending: no data plane is connected";
  assert.equal(programmed({ addresses: [ADDRESS] }), pending);
  const served = "Programmed True Programmed: configuration is sent to data planes";
  assert.equal(programmed({ addresses: [ADDRESS], hasReadyPods: true }), served);
  assert.equal(programmed({ addresses: [ADDRESS] }, { wasProgrammed: true }), served);
  const mesh = `${served}; mesh is deployed, and has no effect in this version`;
  assert.equal(programmed({ addresses: [ADDRESS], hasReadyPods: true, hasMesh: true }), mesh);
});

test("a Gateway names the sources of its model catalog that are missing or refused, and stays programmed", () => {
  const catalogSources = [
    { key: "modelcatalog/default/main/prices/catalog.json", name: "prices/catalog.json", error: undefined },
    { key: "modelcatalog/default/main/gone/catalog.json", name: "gone/catalog.json", error: "not found" },
  ];
  const refused = "modelcatalog/default/main/prices/catalog.json";
  const status = computeStatus({ ...GATEWAY_FACTS, catalogSources }, refusing(`ModelCatalogSource ${refused}`));
  assert.ok(status.form === "keyed");
  const programmed = status.conditions.find(({ type }) => type === "Programmed");
  assert.equal(programmed?.status, "True");
  assert.match(
    programmed.message,
    /^configuration is sent to data planes; model catalog prices\/catalog.json: .*; model catalog gone\/catalog.json: not found$/,
  );
});

test("an address that was asked for is waited for, and no other one is shown meanwhile", () => {
  assert.deepEqual(deployed({ address: "10.0.0.9" }, { addresses: [ADDRESS] }), [
    ACCEPTED,
    "Programmed False AddressNotAssigned: the Service has not been given the address 10.0.0.9 yet",
  ]);
  assert.match(deployed({ address: "10.0.0.1" }, { addresses: [ADDRESS] })[1] ?? "", /^Programmed True/);
});

test("a Gateway that could not be deployed says why, and keeps its address", () => {
  assert.deepEqual(deployed({}, { addresses: [ADDRESS], failure: "no quota is left" }), [
    ACCEPTED,
    "Programmed False DeploymentFailed: no quota is left",
    "IPAddress 10.0.0.1",
  ]);
});

test("an error of the whole Gateway is its own, whatever its listeners say", () => {
  const error = { reason: Reason.InvalidParameters, message: "there is no GwParameters default/none" };
  assert.deepEqual(deployed({ error }, { addresses: [ADDRESS] }).slice(0, 2), [
    "Accepted False InvalidParameters: there is no GwParameters default/none",
    "Programmed False Invalid: the Gateway is not accepted",
  ]);
  const addressError = { reason: Reason.AddressNotUsable, message: "a hostname cannot be assigned" };
  assert.deepEqual(deployed({ addressError }).slice(0, 2), [
    ACCEPTED,
    "Programmed False AddressNotUsable: a hostname cannot be assigned",
  ]);
});
