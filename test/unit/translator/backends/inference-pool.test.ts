/** InferencePools in the translator: where they are switched off, which changes reach data planes, and their status. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../../../src/api/object.ts";
import { computeStatus } from "../../../../src/status/compute.ts";
import { createTranslator } from "../../../../src/translator/translate.ts";
import type { InferencePoolMode, Translator } from "../../../../src/translator/translator.ts";

const POOL = { group: "inference.networking.k8s.io", kind: "InferencePool", namespace: "default", name: "llama" };
const ROUTE = { group: "gateway.networking.k8s.io", kind: "HTTPRoute", namespace: "default", name: "web" };

const OBJECTS = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: main, namespace: default}
spec: {gatewayClassName: gwproxy, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: default}
spec:
  parentRefs: [{name: main}]
  rules: [{backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: llama}]}]
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: chat, namespace: default}
spec:
  ai:
    provider:
      custom:
        formats: [{type: Completions}]
        backendRef: {group: inference.networking.k8s.io, kind: InferencePool, name: llama}
---
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: llama, namespace: default}
spec:
  selector: {matchLabels: {app: llama}}
  targetPorts: [{number: 8000}]
  endpointPickerRef: {name: picker, port: {number: 9002}}
---
apiVersion: v1
kind: Service
metadata: {name: picker, namespace: default}
spec: {ports: [{port: 9002}]}
`;

function pod(name: string, address: string, extra = ""): KubeObject {
  const text = `{apiVersion: v1, kind: Pod, metadata: {name: ${name}, namespace: default, labels: {app: llama}}, status: {podIP: ${address}${extra}}}`;
  return parseObjects(text)[0] as KubeObject; // there is one
}

function parseObjects(text: string): KubeObject[] {
  return parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
}

function start(inferencePools: InferencePoolMode | undefined, text = OBJECTS): Translator {
  const translator = createTranslator({
    controllerName: "gwproxy.dev/gwproxy",
    implicitClass: "gwproxy",
    ...(inferencePools === undefined ? {} : { inferencePools }),
  });
  translator.apply(parseObjects(text).map((object) => ({ type: "set", object })));
  return translator;
}

test("without the setting a reference is of an invalid kind, and the message names the setting", () => {
  const translator = start(undefined);
  const found = translator.diagnostics().map(({ object, path, message }) => [object.kind, path, message]);
  const message =
    "InferencePool default/llama: the inference extension is switched off; set GWPROXY_ENABLE_INFERENCE to true";
  assert.deepEqual(found, [
    ["HTTPRoute", "spec.rules[0].backendRefs[0]", message],
    ["GwBackend", "spec.ai.provider.custom.backendRef", message],
  ]);
  const input = translator.statusInput(ROUTE);
  assert.ok(input?.kind === "HTTPRoute");
  assert.deepEqual(
    input.errors.map(({ reason }) => reason),
    ["InvalidKind"],
  );
  assert.equal(translator.statusInput(POOL), undefined);
});

test("a change of a pod sends one resource, and one that changes nothing for the pool sends none", () => {
  const translator = start("pods");
  const added = translator.apply([{ type: "set", object: pod("one", "10.0.0.1") }]);
  assert.deepEqual(
    added.update.set.map(({ type, key }) => [type, key]),
    [["Endpoints", "inferencepool/default/llama"]],
  );
  const same = translator.apply([{ type: "set", object: pod("one", "10.0.0.1", ", phase: Running") }]);
  assert.deepEqual(same.update.set, []);
});

test("in a cluster EndpointSlices with the labels of a pool are no endpoints of it", () => {
  const slice = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: s, namespace: default, labels: {app: llama}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.9]}]}`;
  const addresses = (mode: InferencePoolMode): string[] => {
    const resource = start(mode, `${OBJECTS}---\n${slice}`).resource("Endpoints", "inferencepool/default/llama");
    assert.ok(resource?.type === "Endpoints");
    return resource.message.endpoints.map(({ address }) => address);
  };
  assert.deepEqual(addresses("pods"), []);
  assert.deepEqual(addresses("pods-and-slices"), ["10.0.0.9"]);
});

test("the parents of a pool are the Gateways that lead to it, and none is left when the last route goes", () => {
  const translator = start("pods");
  const statusOf = (): unknown => {
    const input = translator.statusInput(POOL);
    assert.ok(input !== undefined);
    return computeStatus(input, {
      controllerName: "gwproxy.dev/gwproxy",
      acknowledged: () => false,
      hasDataPlane: () => false,
      nackReason: () => undefined,
    });
  };
  const conditions = [
    { type: "Accepted", status: "True", reason: "Accepted", message: "a route of the Gateway leads to the pool" },
    { type: "ResolvedRefs", status: "True", reason: "ResolvedRefs", message: "all references are resolved" },
  ].map((condition) => ({ ...condition, observedGeneration: 0 }));
  const ref = { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "default", name: "main" };
  const shape = { id: POOL, form: "listed", list: "parents", controllerName: "gwproxy.dev/gwproxy" };
  assert.deepEqual(statusOf(), { ...shape, entries: [{ ref, conditions }] });
  const gone = translator.apply([{ type: "delete", id: ROUTE }]);
  assert.ok(gone.touched.some(({ kind }) => kind === "InferencePool"));
  assert.deepEqual(statusOf(), { ...shape, entries: [] });
  assert.equal(translator.resource("Backend", "inferencepool/default/llama"), undefined);
});

test("a picker that cannot be called is an invalid extension reference", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["spec: {ports: [{port: 80}]}", "Service default/picker has no TCP port 9002"],
    ["spec: {ports: [{port: 9002, protocol: UDP}]}", "Service default/picker has no TCP port 9002"],
    [
      "spec: {type: ExternalName, externalName: a.example, ports: [{port: 9002}]}",
      "Service default/picker is of type ExternalName, which is not allowed here",
    ],
  ];
  for (const [spec, message] of cases) {
    const input = start("pods", OBJECTS.replace("spec: {ports: [{port: 9002}]}", spec)).statusInput(POOL);
    assert.ok(input?.kind === "InferencePool");
    assert.deepEqual(input.error, { reason: "InvalidExtensionRef", message });
  }
  const other = OBJECTS.replace("endpointPickerRef: {", "endpointPickerRef: {group: example.com, kind: Picker, ");
  const input = start("pods", other).statusInput(POOL);
  assert.ok(input?.kind === "InferencePool");
  assert.equal(input.error?.message, "Picker default/picker: an endpoint picker has to be a Service");
});
