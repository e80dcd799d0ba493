import assert from "node:assert/strict";
import { test } from "node:test";
import { objectId, type KubeObject } from "../../../../../src/api/object.ts";
import { createTranslator } from "../../../../../src/translator/translate.ts";
import type { TranslationStep, Translator } from "../../../../../src/translator/translator.ts";
import type { JwksRequest } from "../../../../../src/sources/remote/documents.ts";

const SET = '{"keys": [{"kid": "one", "kty": "OKP", "crv": "Ed25519", "x": "AA"}]}';
const OTHER = '{"keys": [{"kid": "two", "kty": "OKP", "crv": "Ed25519", "x": "AA"}]}';
const ROUTE = { group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "web" };
const BACKEND = { group: "gwproxy.dev", kind: "GwBackend", name: "keys" };

type Rest = Readonly<Record<string, unknown>>;

function object(kind: string, name: string, rest: Rest, more: Rest = {}): KubeObject {
  const apiVersion = kind.startsWith("Gw") ? "gwproxy.dev/v1alpha1" : "v1";
  return { apiVersion, kind, metadata: { name, namespace: "default", ...more }, ...rest };
}

const SERVING: readonly KubeObject[] = [
  {
    ...object("Gateway", "gw", {
      spec: { gatewayClassName: "gwproxy", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
    }),
    apiVersion: "gateway.networking.k8s.io/v1",
  },
  {
    ...object("HTTPRoute", "web", { spec: { parentRefs: [{ name: "gw" }], rules: [{ backendRefs: [] }] } }),
    apiVersion: "gateway.networking.k8s.io/v1",
  },
];

function tokens(remote: Rest, name = "tokens"): KubeObject {
  const providers = [{ issuer: "https://issuer.test", jwks: { remote } }];
  return object("GwPolicy", name, { spec: { targetRefs: [ROUTE], traffic: { jwtAuthentication: { providers } } } });
}

function attached(name: string, targetRefs: Rest[], tls: Rest, metadata: Rest = {}): KubeObject {
  return object("GwPolicy", name, { spec: { targetRefs, backend: { tls } } }, metadata);
}

function start(...objects: readonly KubeObject[]): { live: Translator; step: TranslationStep } {
  const live = createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: "gwproxy" });
  return { live, step: set(live, ...SERVING, ...objects) };
}

function set(live: Translator, ...objects: readonly KubeObject[]): TranslationStep {
  return live.apply(objects.map((one) => ({ type: "set", object: one })));
}

function only({ documents }: TranslationStep): JwksRequest {
  assert.equal(documents?.length, 1);
  return documents[0] as JwksRequest; // there is one
}

function kidsIn(live: Translator): string[] {
  const [policy] = live.resources().flatMap((resource) => (resource.type === "Policy" ? [resource.message] : []));
  return (policy?.units ?? []).flatMap(({ unit }) =>
    unit.case === "jwtAuthentication" ? unit.value.providers.flatMap(({ keys }) => keys.map(({ id }) => id)) : [],
  );
}

function deliver(live: Translator, key: string, text: string | undefined): TranslationStep {
  return live.apply([{ type: "document", key, document: text === undefined ? undefined : { text } }]);
}

test("a set is wanted, said to be missing, and sent when it comes; a new one replaces it", () => {
  const { live, step } = start(tokens({ url: "https://issuer.test/keys" }));
  const { key, url, addresses, cacheMs, tls } = only(step);
  assert.equal(url, "https://issuer.test/keys");
  assert.deepEqual(addresses, [{ host: "issuer.test", port: 443, unixPath: "" }]);
  assert.equal(cacheMs, 300_000);
  assert.ok(tls);
  assert.deepEqual(kidsIn(live), []);
  assert.match(live.diagnostics()[0]?.message ?? "", /have not been fetched yet/);

  const arrived = deliver(live, key, SET);
  assert.deepEqual(
    arrived.update.set.map((resource) => resource.key),
    ["policy/default/tokens"],
  );
  assert.equal(arrived.documents, undefined, "nothing else is wanted");
  assert.deepEqual(kidsIn(live), ["one"]);
  assert.deepEqual(live.diagnostics(), []);
  deliver(live, key, OTHER);
  assert.deepEqual(kidsIn(live), ["two"]);
  live.apply([{ type: "document", key, document: { error: "refused" } }]);
  assert.deepEqual(kidsIn(live), []);
  assert.match(live.diagnostics()[0]?.message ?? "", /cannot be fetched: refused/);
});

test("two policies with one URL want one set, and a deleted policy wants none", () => {
  const remote = { url: "http://issuer.test:8080/keys" };
  const { live, step } = start(tokens(remote), tokens({ ...remote, cacheDuration: "1m" }, "more"));
  assert.equal(new Set(step.documents?.map(({ key }) => key)).size, 1);
  assert.deepEqual(step.documents?.map(({ cacheMs }) => cacheMs).sort(), [300_000, 60_000]);
  assert.ok(step.documents?.every(({ tls }) => tls === undefined));
  const gone = live.apply(["tokens", "more"].map((name) => ({ type: "delete", id: objectId(tokens(remote, name)) })));
  assert.deepEqual(gone.documents, []);
});

test("a URL that names a port which does not exist is not fetched", () => {
  for (const url of ["http://issuer.test:0/keys", "https://issuer.test:65536/keys"]) {
    const { live, step } = start(tokens({ url }));
    assert.deepEqual(step.documents ?? [], []);
    assert.match(live.diagnostics()[0]?.message ?? "", /is not an http or https URL with a port from 1 to 65535/);
  }
});

test("moving endpoints of a Service change where the set is fetched and send nothing", () => {
  const service = object("Service", "keys", { spec: { ports: [{ port: 80 }] } });
  const slice = (address: string): KubeObject => ({
    ...object("EndpointSlice", "keys-1", { ports: [{ port: 3000 }], endpoints: [{ addresses: [address] }] }),
    apiVersion: "discovery.k8s.io/v1",
    metadata: { name: "keys-1", namespace: "default", labels: { "kubernetes.io/service-name": "keys" } },
  });
  const { live, step } = start(
    service,
    slice("10.0.0.1"),
    tokens({ backendRef: { name: "keys", port: 80 }, jwksPath: "k" }),
  );
  const first = only(step);
  assert.equal(first.url, "http://keys.default.svc.cluster.local:80/k");
  assert.deepEqual(first.addresses, [{ host: "10.0.0.1", port: 3000, unixPath: "" }]);
  deliver(live, first.key, SET);
  const moved = set(live, slice("10.0.0.2"));
  assert.deepEqual(only(moved), { ...first, addresses: [{ host: "10.0.0.2", port: 3000, unixPath: "" }] });
  assert.deepEqual(moved.update, { set: [], removed: [] });
});

test("TLS goes by the GwBackend itself, then by its policies, the older one first, and changes what is wanted", () => {
  const keys = (policies: Rest = {}): KubeObject =>
    object(
      "GwBackend",
      "keys",
      { spec: { static: { host: "10.0.0.1", port: 8443 }, ...policies } },
      { labels: { a: "b" } },
    );
  const remote = { backendRef: BACKEND, jwksPath: "/keys" };
  const { live, step } = start(keys(), tokens(remote));
  const plain = only(step);
  assert.equal(plain.url, "http://10.0.0.1:8443/keys");
  const sni = (next: TranslationStep): string | undefined => only(next).tls?.sni;
  const young = attached("young", [BACKEND], { sni: "young.test" }, { creationTimestamp: "2026-02-01T00:00:00Z" });
  assert.equal(sni(set(live, young)), "young.test");
  const old = attached("z-old", [BACKEND], { sni: "old.test" }, { creationTimestamp: "2026-01-01T00:00:00Z" });
  assert.equal(sni(set(live, old)), "old.test");
  const inline = set(live, keys({ policies: { tls: { sni: "inline.test" } } }));
  assert.equal(sni(inline), "inline.test");
  assert.equal(only(inline).url, "https://10.0.0.1:8443/keys");
  assert.notEqual(only(inline).key, plain.key);
});

test("limits of the connection and of the call come from the most specific block that has any", () => {
  const keys = (policies?: object): KubeObject =>
    object("GwBackend", "keys", {
      spec: { static: { host: "10.0.0.1", port: 80 }, ...(policies === undefined ? {} : { policies }) },
    });
  const { live, step } = start(keys(), tokens({ backendRef: BACKEND, jwksPath: "/keys" }));
  const limits = (next: TranslationStep) => {
    const { connectTimeoutMs, timeoutMs } = only(next);
    return [connectTimeoutMs, timeoutMs];
  };
  assert.deepEqual(limits(step), [undefined, undefined]);
  const policy = object("GwPolicy", "limits", {
    spec: {
      targetRefs: [BACKEND],
      backend: { tcp: { connectTimeout: "1s" }, http: { requestTimeout: "3s" } },
    },
  });
  assert.deepEqual(limits(set(live, policy)), [1_000, 3_000]);
  assert.deepEqual(limits(set(live, keys({ tcp: { connectTimeout: "2s" } }))), [2_000, 3_000]);
});

test("policies reach the server of keys by its labels and by the port of its Service, and by nothing else", () => {
  const service = object(
    "Service",
    "keys",
    { spec: { ports: [{ port: 80 }, { port: 81, name: "b" }] } },
    { labels: { app: "idp" } },
  );
  const ref = { group: "", kind: "Service", name: "keys" };
  const { live, step } = start(service, tokens({ backendRef: { name: "keys", port: 80 }, jwksPath: "/k" }));
  assert.equal(only(step).tls, undefined);
  assert.equal(
    set(live, attached("other", [{ ...ref, sectionName: "81" }], { sni: "other.test" })).documents,
    undefined,
  );
  const selected = object("GwPolicy", "all", {
    spec: {
      targetSelectors: [{ group: "", kind: "Service", matchLabels: { app: "idp" } }],
      backend: { tls: { sni: "all.test" } },
    },
  });
  assert.equal(only(set(live, selected)).tls?.sni, "all.test");
  const port = attached("port", [{ ...ref, sectionName: "80" }], { sni: "port.test" });
  assert.equal(only(set(live, port)).tls?.sni, "port.test");
});

test("a reference that cannot serve keys is a diagnostic, and nothing is wanted", () => {
  const ai = object("GwBackend", "keys", { spec: { ai: { provider: { llma: {} } } } });
  const { live, step } = start(ai, tokens({ backendRef: BACKEND, jwksPath: "/keys" }));
  assert.equal(step.documents, undefined);
  assert.match(
    live
      .diagnostics()
      .map(({ message }) => message)
      .join(),
    /cannot serve keys: only one with static can/,
  );
  assert.deepEqual(kidsIn(live), []);
});
