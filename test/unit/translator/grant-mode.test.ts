/** Whose references into another namespace need a ReferenceGrant, by the mode of the installation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../../src/api/object.ts";
import type { GrantMode } from "../../../src/translator/references/backend-refs.ts";
import { createTranslator } from "../../../src/translator/translate.ts";

const OBJECTS = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: main, namespace: default}
spec: {gatewayClassName: gwproxy, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: default}
spec: {parentRefs: [{name: main}], rules: [{backendRefs: [{name: shop, namespace: other, port: 80}]}]}
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: ask, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: main}]
  traffic: {extAuth: {backendRef: {name: shop, namespace: other, port: 80}, grpc: {}}}
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web, namespace: default}
spec:
  static: {host: web.test, port: 80}
  policies: {tunnel: {backendRef: {name: shop, namespace: other, port: 80}}}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: other}
spec: {ports: [{port: 80}]}
`;

const GRANT = `
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: open, namespace: other}
spec:
  from:
    - {group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}
    - {group: gwproxy.dev, kind: GwPolicy, namespace: default}
    - {group: gwproxy.dev, kind: GwBackend, namespace: default}
  to: [{group: "", kind: Service}]
`;

/** The kinds whose reference is refused. */
function refused(grantMode: GrantMode, text: string): string[] {
  const translator = createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: "gwproxy", grantMode });
  const objects = parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
  translator.apply(objects.map((object) => ({ type: "set", object })));
  const found = translator
    .diagnostics()
    .filter(({ message }) => message.includes("not permitted by any ReferenceGrant"));
  return found.map(({ object }) => object.kind).sort();
}

const MODES: readonly [GrantMode, readonly string[]][] = [
  ["route-and-policy", ["GwBackend", "GwPolicy", "HTTPRoute"]],
  ["route", ["HTTPRoute"]],
  ["none", []],
];

for (const [mode, kinds] of MODES) {
  test(`in the mode ${mode} a grant is needed for ${kinds.join(" and ") || "nothing"}`, () => {
    assert.deepEqual(refused(mode, OBJECTS), kinds);
    assert.deepEqual(refused(mode, `${OBJECTS}---${GRANT}`), []);
  });
}
