/** EndpointSlices as endpoints: what is ready, what ends, pods with two addresses, and what a Service prefers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Locality, type Endpoint, type Endpoints } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { EndpointSlice, ServiceSpec, SliceEndpoint } from "../../../../src/api/core.ts";
import { addressesOf, translateEndpoints } from "../../../../src/translator/backends/endpoints.ts";
import { viewService } from "../../../../src/translator/backends/service.ts";

function slice(endpoints: readonly SliceEndpoint[], addressType: EndpointSlice["addressType"] = "IPv4"): EndpointSlice {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "s", namespace: "default" },
    addressType,
    ports: [{ name: "http", port: 8080 }],
    endpoints,
  };
}

function view(spec: Partial<ServiceSpec> = {}) {
  return viewService({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "default" },
    spec: { ports: [{ name: "http", port: 80 }], ...spec },
  });
}

function translate(slices: readonly EndpointSlice[], spec: Partial<ServiceSpec> = {}): Endpoints {
  const [resource] = translateEndpoints(view(spec), slices);
  assert.equal(resource?.type, "Endpoints");
  return resource.message as Endpoints; // as its type says
}

function states(endpoints: readonly Endpoint[]): [string, string][] {
  return endpoints.map(({ address, ready, draining }) => [
    address,
    ready ? "ready" : draining ? "draining" : "neither",
  ]);
}

const POD = (name: string) => ({ targetRef: { kind: "Pod", namespace: "default", name } });

test("conditions say what is ready and what ends while it still serves; what is absent means ready", () => {
  const { endpoints } = translate([
    slice([
      { addresses: ["10.0.0.1"] },
      { addresses: ["10.0.0.2"], conditions: { ready: true, serving: true, terminating: false } },
      { addresses: ["10.0.0.3"], conditions: { ready: false } },
      { addresses: ["10.0.0.4"], conditions: { ready: false, serving: true, terminating: true } },
      { addresses: ["10.0.0.5"], conditions: { ready: false, serving: false, terminating: true } },
      { addresses: ["10.0.0.6"], conditions: { terminating: true } },
    ]),
  ]);
  assert.deepEqual(states(endpoints), [
    ["10.0.0.1", "ready"],
    ["10.0.0.2", "ready"],
    ["10.0.0.3", "neither"],
    ["10.0.0.4", "draining"],
    ["10.0.0.5", "neither"],
    ["10.0.0.6", "draining"],
  ]);
});

test("a Service that publishes what is not ready has nothing else", () => {
  const conditions = { ready: false, serving: true, terminating: true };
  const slices = [
    slice([
      { addresses: ["10.0.0.1"], conditions },
      { addresses: ["10.0.0.2"], conditions: { ready: false } },
    ]),
  ];
  const { endpoints } = translate(slices, { publishNotReadyAddresses: true });
  assert.deepEqual(states(endpoints), [
    ["10.0.0.1", "ready"],
    ["10.0.0.2", "ready"],
  ]);
});

test("several slices are one set, and an address in two of them is ready when one says so", () => {
  const notReady = { ready: false };
  const slices = [
    slice([{ addresses: ["10.0.0.2"], conditions: notReady }, { addresses: ["10.0.0.1"] }]),
    slice([{ addresses: ["10.0.0.2"] }, { addresses: ["10.0.0.3"] }]),
  ];
  const expected = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map((address) => [address, "ready"]);
  assert.deepEqual(states(translate(slices).endpoints), expected);
  assert.deepEqual(states(translate(slices.toReversed()).endpoints), expected);
  const key = "service/default/web:80";
  assert.deepEqual(
    addressesOf(view(), key, [slices[0] as EndpointSlice]).map(({ host }) => host),
    ["10.0.0.1"],
  );
});

test("a pod with an address of each kind is one endpoint, of the kind that the Service prefers", () => {
  const slices = [
    slice(
      [
        { addresses: ["fd00::1"], ...POD("a") },
        { addresses: ["fd00::2"], ...POD("b") },
      ],
      "IPv6",
    ),
    slice([{ addresses: ["10.0.0.1"], ...POD("a") }]),
  ];
  const addresses = (spec: Partial<ServiceSpec> = {}) =>
    translate(slices, spec).endpoints.map(({ address }) => address);
  assert.deepEqual(addresses(), ["10.0.0.1", "fd00::2"]);
  assert.deepEqual(addresses({ ipFamilies: ["IPv4", "IPv6"] }), ["10.0.0.1", "fd00::2"]);
  assert.deepEqual(addresses({ ipFamilies: ["IPv6", "IPv4"] }), ["fd00::1", "fd00::2"]);
});

test("a Service says what it prefers, and zones and nodes travel only when somebody asks", () => {
  const here = { zone: "z1", nodeName: "n1", hints: { forZones: [{ name: "z2" }, { name: "z1" }] } };
  const [hinted, plain] = [slice([{ addresses: ["10.0.0.1"], ...here }]), slice([{ addresses: ["10.0.0.2"] }])];
  const facts = (spec: Partial<ServiceSpec>, slices = [hinted, plain]) => {
    const { preferences, strict, endpoints } = translate(slices, spec);
    const [first] = endpoints;
    return [preferences, strict, first?.zone, first?.node, first?.hintedZones];
  };
  assert.deepEqual(facts({}), [[], false, "", "", []]);
  assert.deepEqual(facts({}, [hinted]), [[Locality.HINTED_ZONE], false, "z1", "n1", ["z1", "z2"]]);
  for (const trafficDistribution of ["PreferClose", "PreferSameZone"])
    assert.deepEqual(facts({ trafficDistribution }), [[Locality.ZONE], false, "z1", "n1", []]);
  const node = [Locality.ZONE, Locality.NODE];
  assert.deepEqual(facts({ trafficDistribution: "PreferSameNode" }), [node, false, "z1", "n1", []]);
  assert.deepEqual(facts({ trafficDistribution: "later" }), [[], false, "", "", []]);
  assert.deepEqual(facts({ internalTrafficPolicy: "Local" }), [[Locality.NODE], true, "z1", "n1", []]);
});
