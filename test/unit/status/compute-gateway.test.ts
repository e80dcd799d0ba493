import assert from "node:assert/strict";
import { test } from "node:test";
import { computeStatus } from "../../../src/status/compute.ts";
import type { DeploymentState, StatusContext } from "../../../src/status/condition.ts";
import { Reason } from "../../../src/api/conditions.ts";
import type { GatewayStatusInput, ListenerSetStatusInput } from "../../../src/translator/shared/status-input.ts";
import { REASON, refusing, summary } from "./contexts.ts";

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
  programmed: { whole: false, listeners: [] },
  listenerSets: [],
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
    const programmed = { whole: false, listeners: [] };
    const facts: ListenerSetStatusInput = { kind: "ListenerSet", ...place, programmed, listeners, attached: new Map() };
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
  assert.equal(programmed({ addresses: [ADDRESS] }, { programmed: { whole: true, listeners: [] } }), served);
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

test("a listener is programmed once a data plane has acknowledged it, and stays so", () => {
  const programmedWith = (
    context: Partial<StatusContext>,
    programmed: GatewayStatusInput["programmed"] = { whole: false, listeners: [] },
  ): string[] => {
    const status = computeStatus({ ...GATEWAY_FACTS, programmed }, { ...refusing(), ...context });
    assert.ok(status.form === "keyed");
    const all = [status.conditions, ...(status.listeners ?? []).map(({ conditions }) => conditions)];
    return all.flatMap((conditions) => summary(conditions.filter(({ type }) => type === "Programmed")));
  };
  const has = "Programmed True Programmed: the listener is sent to data planes";
  const none = "Programmed False Pending: no data plane is connected";
  const ofGateway = "Programmed True Programmed: configuration is sent to data planes";
  const nothing = { acknowledged: () => false, hasDataPlane: () => false };
  assert.deepEqual(programmedWith(nothing), [none, none, none]);
  assert.deepEqual(programmedWith({ acknowledged: (key) => key.endsWith(".a"), hasDataPlane: () => true }), [
    ofGateway,
    has,
    "Programmed False Pending: no data plane has acknowledged the listener yet",
  ]);
  // The stored status holds although no data plane is there now.
  assert.deepEqual(programmedWith(nothing, { whole: true, listeners: ["b"] }), [ofGateway, none, has]);
  // The acknowledgement reached another replica of the controller.
  const deployment = (): DeploymentState => ({
    addresses: [ADDRESS],
    failure: undefined,
    hasReadyPods: true,
    hasMesh: false,
  });
  assert.deepEqual(programmedWith({ ...nothing, deployment }), [ofGateway, has, has]);
});

test("a ListenerSet is programmed once a data plane has one of its listeners, and stays so", () => {
  const programmedWith = (acknowledged: StatusContext["acknowledged"], whole = false): string[] => {
    const facts: ListenerSetStatusInput = {
      kind: "ListenerSet",
      id: { ...GATEWAY_FACTS.id, kind: "ListenerSet" },
      generation: 1,
      gateway: "default/main",
      allowed: true,
      programmed: { whole, listeners: [] },
      listeners: [listener("a", 80), listener("b", 81)],
      attached: new Map(),
    };
    const status = computeStatus(facts, { ...refusing(), acknowledged, hasDataPlane: () => false });
    assert.ok(status.form === "keyed");
    return summary(status.conditions.filter(({ type }) => type === "Programmed"));
  };
  const served = ["Programmed True Programmed: configuration is sent to data planes"];
  assert.deepEqual(
    programmedWith(() => false),
    ["Programmed False Pending: no data plane is connected"],
  );
  assert.deepEqual(
    programmedWith((key) => key.endsWith(".a")),
    served,
  );
  assert.deepEqual(
    programmedWith(() => false, true),
    served,
  );
});
