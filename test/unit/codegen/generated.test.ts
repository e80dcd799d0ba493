/** What is generated does what it is for: validators, defaults, one-of accessors, tables of paths, CRDs. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { CRD_BYTES } from "../../../codegen/budget.ts";
import { applyDefaults } from "../../../generated/defaults.ts";
import { EXPRESSIONS } from "../../../generated/expressions.ts";
import { KINDS } from "../../../generated/kinds.ts";
import { PROTECTIONS } from "../../../generated/protections.ts";
import { REFS } from "../../../generated/refs.ts";
import { RULES } from "../../../generated/rules.ts";
import { SECRETS } from "../../../generated/secrets.ts";
import { kindOfLLMProvider } from "../../../generated/unions.ts";
import { validators } from "../../../generated/validators/index.js";

const POLICY = "gwproxy.dev/GwPolicy";
const BACKEND = "gwproxy.dev/GwBackend";

function policy(traffic: object): object {
  return {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwPolicy",
    metadata: { name: "p", managedFields: [] },
    spec: { targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" }], traffic },
  };
}

function faults(groupKind: string, object: object): string[] {
  const validate = validators[groupKind];
  assert.ok(validate, groupKind);
  return validate(object).map(({ keyword, instancePath }) => `${keyword} ${instancePath}`);
}

test("a sound policy has no fault, with metadata that we do not know", () => {
  const transformation = { request: { set: [{ name: ":path", value: "'/x'" }], metadata: { a: "1" } } };
  assert.deepEqual(faults(POLICY, policy({ phase: "PreRouting", transformation })), []);
});

test("every fault of an object is reported, each at its place", () => {
  const object = policy({
    timeouts: { request: "5 s" },
    rateLimit: { local: [{ requests: 0, unit: "Days" }] },
    directResponse: { status: 700 },
  });
  assert.deepEqual(faults(POLICY, object).sort(), [
    "enum /spec/traffic/rateLimit/local/0/unit",
    "maximum /spec/traffic/directResponse/status",
    "minimum /spec/traffic/rateLimit/local/0/requests",
    "pattern /spec/traffic/timeouts/request",
  ]);
});

test("an unknown field names the component that does not have it", () => {
  const [fault, ...more] = validators[POLICY]?.(policy({ timeout: {} })) ?? [];
  assert.deepEqual(more, []);
  assert.equal(fault?.keyword, "additionalProperties");
  assert.equal(fault?.schemaPath, "#/definitions/Traffic/additionalProperties");
  assert.deepEqual(fault?.params, { additionalProperty: "timeout" });
});

test("the second of two equal items of a keyed list or a set is at fault", () => {
  const set = [
    { name: "a", value: "1" },
    { name: "b", value: "1" },
    { name: "a", value: "2" },
  ];
  const object = policy({ headerModifiers: { request: { set, remove: ["x", "y", "y"] } } });
  assert.deepEqual(faults(POLICY, object), [
    "duplicate /spec/traffic/headerModifiers/request/set/2",
    "duplicate /spec/traffic/headerModifiers/request/remove/2",
  ]);
});

test("lengths count code points, as on the API server", () => {
  const directResponse = (length: number): object =>
    policy({ directResponse: { status: 200, body: "😀".repeat(length) } });
  assert.deepEqual(faults(POLICY, directResponse(4096)), []);
  assert.deepEqual(faults(POLICY, directResponse(4097)), ["maxLength /spec/traffic/directResponse/body"]);
});

test("kinds of the Gateway API are validated from their own CRDs", () => {
  const listener = { name: "http", port: 70_000, protocol: "HTTP" };
  const gateway = {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "g" },
    spec: { gatewayClassName: "gwproxy", listeners: [listener] },
  };
  assert.deepEqual(faults("gateway.networking.k8s.io/Gateway", gateway), ["maximum /spec/listeners/0/port"]);
});

test("defaults are filled in below what is present, in a copy", () => {
  const written = Object.freeze(
    policy({ rateLimit: { local: [{ requests: 1, unit: "Minutes" }] }, authorization: null }),
  );
  const text = JSON.stringify(written);
  const filled = applyDefaults(POLICY, written);
  assert.equal(JSON.stringify(written), text);
  const { spec } = filled as { spec: { traffic: object } };
  assert.deepEqual(spec.traffic, {
    rateLimit: { local: [{ requests: 1, unit: "Minutes", burst: 0 }] },
    phase: "PostRouting",
  });
});

test("an object that needs no default is returned as it is", () => {
  const whole = policy({ phase: "PostRouting", timeouts: { request: "1s" } });
  assert.equal(applyDefaults(POLICY, whole), whole);
  assert.equal(applyDefaults("example.dev/Unknown", whole), whole);
});

test("a one-of accessor names the member that is set, and refuses an object with none", () => {
  assert.equal(kindOfLLMProvider({ llme: {} }), "llme");
  assert.throws(() => kindOfLLMProvider({ host: "x" }), TypeError);
});

test("tables find references, expressions and secrets at every depth", () => {
  const pathsOf = (rows: readonly { readonly path: readonly string[] }[] | undefined): string[] =>
    (rows ?? []).map(({ path }) => path.join("."));
  assert.ok(pathsOf(REFS[BACKEND]).includes("spec.ai.groups.*.providers.*.policies.auth.secretRef"));
  assert.ok(pathsOf(REFS["gateway.networking.k8s.io/HTTPRoute"]).includes("spec.rules.*.backendRefs.*"));
  assert.ok(
    pathsOf(EXPRESSIONS[POLICY]).includes("spec.traffic.transformation.conditional.*.policy.request.set.*.value"),
  );
  assert.ok(pathsOf(EXPRESSIONS[POLICY]).includes("spec.traffic.rateLimit.conditional.*.condition"));
  const secrets = (SECRETS[POLICY] ?? []).map((path) => path.join("."));
  assert.ok(secrets.includes("spec.backend.auth.key"));
  assert.ok(secrets.includes("spec.traffic.basicAuthentication.users.*"));
  const protections = (PROTECTIONS[POLICY] ?? []).map((path) => path.join("."));
  assert.ok(protections.includes("spec.traffic.jwtAuthentication"));
  assert.ok(!protections.includes("spec.traffic.cors"));
  assert.ok(KINDS.some(({ kind, plural, owned }) => kind === "GwBackend" && plural === "gwbackends" && owned));
});

test("the rules of a component hang at every place where it is used", () => {
  const traffic = RULES[POLICY]?.fields?.["spec"]?.fields?.["traffic"]?.fields;
  const fixed = traffic?.["rateLimit"]?.fields?.["local"]?.items;
  const entry = traffic?.["rateLimit"]?.fields?.["conditional"]?.items?.fields?.["policy"]?.fields?.["local"]?.items;
  assert.ok(fixed);
  assert.equal(fixed, entry);
  assert.deepEqual(
    fixed.oneOf?.map(({ kind, fields }) => [kind, ...fields]),
    [["exactly", "requests", "tokens"]],
  );
});

test("both CRDs fit into the annotation that plain kubectl apply writes", () => {
  for (const plural of ["gwbackends", "gwpolicies"]) {
    const file = new URL(`../../../crds/gwproxy.dev_${plural}.yaml`, import.meta.url);
    const crd: unknown = parse(readFileSync(file, "utf8"));
    const text = JSON.stringify(crd);
    assert.ok(Buffer.byteLength(text) <= CRD_BYTES, plural);
    assert.doesNotMatch(text, /x-gw-|\$ref/);
  }
});
