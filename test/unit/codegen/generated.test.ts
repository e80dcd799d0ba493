/** What is generated does what it is for: validators, defaults, one-of accessors, tables of paths, CRDs. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { mapSchema, walk, type Schema } from "../../../codegen/schema.ts";
import { applyDefaults } from "../../../generated/defaults.ts";
import { EXPRESSIONS } from "../../../generated/expressions.ts";
import { KINDS } from "../../../generated/kinds.ts";
import { FAIL_CLOSED_FIELDS } from "../../../generated/fail-closed-fields.ts";
import { REFS } from "../../../generated/refs.ts";
import { RULES } from "../../../generated/rules.ts";
import { SECRETS } from "../../../generated/secrets.ts";
import { kindOfLLMProvider } from "../../../generated/unions.ts";
import { validators } from "../../../generated/validators/index.js";

const POLICY = "gwproxy.dev/GwPolicy";
const BACKEND = "gwproxy.dev/GwBackend";
const ROOT = new URL("../../../", import.meta.url);
const CRDS = globSync("*.yaml", { cwd: new URL("crds/", ROOT) });

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
  const failClosedFields = (FAIL_CLOSED_FIELDS[POLICY] ?? []).map((path) => path.join("."));
  assert.ok(failClosedFields.includes("spec.traffic.jwtAuthentication"));
  assert.ok(!failClosedFields.includes("spec.traffic.cors"));
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

/** The schema of one of our CRDs; `folder` is crds/ or crds/documented/. */
function readCrd(folder: string, file: string): { readonly bytes: number; readonly schema: Schema } {
  const text = readFileSync(new URL(folder + file, ROOT), "utf8");
  // Written by this generator; the API server is the judge of its shape.
  const crd = parse(text) as { spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } };
  const compact = JSON.stringify(crd);
  assert.doesNotMatch(compact, /x-gw-|\$ref/);
  return { bytes: Buffer.byteLength(compact), schema: crd.spec.versions[0]?.schema.openAPIV3Schema ?? {} };
}

test("a CRD for plain kubectl apply leaves 15,000 of 250,000 bytes free and describes its first levels", () => {
  for (const file of CRDS) {
    const { bytes, schema } = readCrd("crds/", file);
    assert.ok(bytes <= 250_000 - 15_000, `${file} has ${bytes} bytes`);
    assert.deepEqual(undescribed(schema, 2), [], file);
  }
});

test("a documented CRD describes every field, and differs in descriptions alone", () => {
  for (const file of CRDS) {
    const documented = readCrd("crds/documented/", file).schema;
    assert.deepEqual(undescribed(documented, Infinity), [], file);
    assert.deepEqual(withoutTexts(documented), withoutTexts(readCrd("crds/", file).schema), file);
  }
});

/** Paths of fields without a description, as deep as `kubectl explain` is to show something; metadata has the server's. */
function undescribed(schema: Schema, depth: number): string[] {
  return [...walk(schema)]
    .filter(([path, { description }]) => description === undefined && !/(\[\]|\{\})$/.test(path))
    .map(([path]) => path)
    .filter((path) => path !== ".metadata" && path.split(".").length - 1 <= depth);
}

function withoutTexts(schema: Schema): Schema {
  return mapSchema(schema, (part) => {
    delete part.description;
    return part;
  });
}
