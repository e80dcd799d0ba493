/** Types and validators of CRDs that are not ours: they compile, they take what is sound and refuse what is not. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { generateForeign, type ForeignOutput } from "../../../codegen/foreign/generate.ts";
import { GATEWAY_API_KINDS } from "../../../codegen/gateway-api-version.ts";
import { crdDirectory } from "../../../codegen/upstream.ts";

const ROOT = join(import.meta.dirname, "../../..");

interface Fault {
  readonly instancePath: string;
  readonly keyword: string;
}
type FaultsOf = (value: unknown) => readonly Fault[];

async function written(
  t: TestContext,
  { files }: ForeignOutput,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "gwproxy-foreign-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const [path, text] of [...files, ...Object.entries(more)]) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

/** @returns what tsc says against the folder; nothing when all is well */
async function compile(folder: string): Promise<string> {
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    module: "nodenext",
    target: "es2022",
    noEmit: true,
    types: [],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["**/*.ts"] }));
  try {
    await promisify(execFile)(join(ROOT, "node_modules/.bin/tsc"), ["-p", folder]);
    return "";
  } catch (error) {
    return error instanceof Error && "stdout" in error ? String(error.stdout) : String(error);
  }
}

async function faultsOf(folder: string, path: string, kind: string): Promise<FaultsOf> {
  // What the generator writes exports this function.
  const module = (await import(pathToFileURL(join(folder, path)).href)) as Record<string, FaultsOf>;
  const found = module[`faultsOf${kind}`];
  assert.ok(found);
  return found;
}

/** A CRD whose spec has the given schema. */
function crd(spec: object, kind = "Thing"): string {
  const schema = { type: "object", properties: { spec } };
  return stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "things.example.dev" },
    spec: {
      group: "example.dev",
      names: { kind, plural: "things" },
      scope: "Namespaced",
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  });
}

function thing(spec: object, kind = "Thing"): object {
  return { apiVersion: "example.dev/v1", kind, metadata: { name: "t" }, spec };
}

function brief(faults: readonly Fault[]): string[] {
  return faults.map(({ instancePath, keyword }) => `${instancePath} ${keyword}`);
}

test("a kind of the Gateway API gets types that tsc takes and a validator that needs no package", async (t) => {
  const file = GATEWAY_API_KINDS.find(({ kind }) => kind === "HTTPRoute")?.file ?? "";
  const text = await readFile(join(crdDirectory(), file), "utf8");
  const output = generateForeign([{ path: file, text }]);
  assert.deepEqual(output.notes, []);
  const use = `
import type { HTTPRoute } from "./gateway.networking.k8s.io/httproute.v1.js";
import { isHTTPRoute, faultsOfHTTPRoute } from "./gateway.networking.k8s.io/httproute.v1.validator.js";
const route: HTTPRoute = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "HTTPRoute",
  metadata: { name: "r" },
  spec: { rules: [{ backendRefs: [{ name: "s", port: 80 }], matches: [{ path: { type: "Exact", value: "/" } }] }] },
};
export function hostnames(value: unknown): readonly string[] {
  return isHTTPRoute(value) ? (value.spec.hostnames ?? []) : faultsOfHTTPRoute(value).map(({ instancePath }) => instancePath);
}
// @ts-expect-error -- "Exactly" is no way to match a path
export const wrong: HTTPRoute = { ...route, spec: { rules: [{ matches: [{ path: { type: "Exactly" } }] }] } };
// @ts-expect-error -- a Gateway is no HTTPRoute
export const other: HTTPRoute = { ...route, kind: "Gateway" };
`;
  const folder = await written(t, output, { "use.ts": use });
  assert.equal(await compile(folder), "");
  const path = "gateway.networking.k8s.io/httproute.v1.validator.js";
  assert.doesNotMatch(await readFile(join(folder, path), "utf8"), /^import |require\(/m);
  const faults = await faultsOf(folder, path, "HTTPRoute");
  const route = { apiVersion: "gateway.networking.k8s.io/v1", kind: "HTTPRoute", metadata: { name: "r" } };
  assert.deepEqual(faults({ ...route, spec: { rules: [{ backendRefs: [{ name: "s", port: 80 }] }] } }), []);
  const bad = { hostnames: ["UPPER"], rules: [{ backendRefs: [{ name: "s", port: 70_000, weigth: 1 }] }] };
  assert.deepEqual(brief(faults({ ...route, kind: "Gateway", spec: bad })).sort(), [
    "/kind enum",
    "/spec/hostnames/0 pattern",
    "/spec/rules/0/backendRefs/0 additionalProperties",
    "/spec/rules/0/backendRefs/0/port maximum",
  ]);
});

test("each of our own CRDs goes through as well, and its types compile", async (t) => {
  const paths = ["crds/gwproxy.dev_gwpolicies.yaml", "crds/gwproxy.dev_gwbackends.yaml"];
  const inputs = await Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(join(ROOT, path), "utf8") })),
  );
  const output = generateForeign(inputs);
  assert.deepEqual([...output.files.keys()].filter((path) => /\/gw\w+\.v1alpha1\.ts$/.test(path)).length, 2);
  assert.equal(await compile(await written(t, output)), "");
});

test("nulls, maps, either-or types, odd names and exclusive bounds mean what they mean to the API server", async (t) => {
  const spec = {
    type: "object",
    required: ["odd-name"],
    properties: {
      "odd-name": { type: "string" },
      maybe: { type: "object", nullable: true, properties: { a: { type: "string" } } },
      list: { type: "array", nullable: true, items: { type: "integer", nullable: true } },
      port: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
      share: { type: "number", minimum: 0, exclusiveMinimum: true, maximum: 1 },
      free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      any: { "x-kubernetes-preserve-unknown-fields": true },
      labels: { type: "object", additionalProperties: { type: "string" } },
      names: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
      v4addresses: { type: "object", properties: { x2y: { type: "boolean" } } },
    },
  };
  const output = generateForeign([{ path: "k8s.yaml", text: crd(spec, "K8sThing") }]);
  const use = `
import type { K8sThing } from "./example.dev/k8sthing.v1.js";
const base = { apiVersion: "example.dev/v1", kind: "K8sThing", metadata: { generateName: "t-" } } as const;
export const sound: K8sThing = { ...base, spec: { "odd-name": "x", maybe: null, list: [1, null], port: "http", any: [1], free: { a: 1 }, v4addresses: { x2y: true } } };
export const none: K8sThing = { ...base, spec: { "odd-name": "x", list: null, port: 80 } };
// @ts-expect-error -- only what is nullable may be null
export const wrong: K8sThing = { ...base, spec: { "odd-name": null } };
// @ts-expect-error -- lists are read-only
sound.spec?.list?.push(1);
`;
  const folder = await written(t, output, { "use.ts": use });
  assert.equal(await compile(folder), "");
  const faults = await faultsOf(folder, "example.dev/k8sthing.v1.validator.js", "K8sThing");
  const sound = {
    "odd-name": "x",
    maybe: null,
    list: [1, null],
    port: "http",
    share: 1,
    free: { a: { b: 1 } },
    any: null,
  };
  assert.deepEqual(faults(thing(sound, "K8sThing")), []);
  const bad = {
    maybe: { a: 1 },
    list: ["x"],
    port: true,
    share: 0,
    labels: { a: 1 },
    names: ["a", "a"],
    v4addresses: { x2z: 1 },
  };
  assert.deepEqual(brief(faults(thing(bad, "K8sThing"))).sort(), [
    "/spec required",
    "/spec/labels/a type",
    "/spec/list/0 type",
    "/spec/maybe/a type",
    "/spec/names/1 duplicate",
    "/spec/port type",
    "/spec/share exclusiveMinimum",
    "/spec/v4addresses additionalProperties",
  ]);
});

test("what a validator cannot check is left out, and said with its place", async (t) => {
  const spec = {
    type: "object",
    properties: {
      a: { type: "string", pattern: "^(?P<x>a+)\\z" },
      b: { type: "string", format: "hexcolor" },
      c: { type: "string", pattern: "^\\_[\\w]+\\@$" },
    },
  };
  const output = generateForeign([{ path: "x.yaml", text: crd(spec) }]);
  assert.equal(output.notes.length, 2);
  assert.match(output.notes[0] ?? "", /^Thing v1: \.spec\.a: the pattern .* is not checked/);
  assert.match(output.notes[1] ?? "", /^Thing v1: \.spec\.b: the format hexcolor is not checked/);
  const folder = await written(t, output);
  const faults = await faultsOf(folder, "example.dev/thing.v1.validator.js", "Thing");
  assert.deepEqual(faults(thing({ a: "zzz", b: "nope", c: "_ab@" })), []);
  assert.deepEqual(brief(faults(thing({ c: "ab" }))), ["/spec/c pattern"]);
});

test("a schema that is not structural is refused, each fault with its file and path", async () => {
  const spec = {
    type: "object",
    properties: {
      a: { description: "What is it?" },
      b: { type: "array" },
      c: { $ref: "#/definitions/x" },
      d: { type: "object", properties: { x: { type: "string" } }, additionalProperties: { type: "string" } },
      e: { type: "array", items: { type: "object", oneOf: [{ properties: { x: { type: "string" } } }] } },
    },
  };
  assert.throws(
    () => generateForeign([{ path: "bad.yaml", text: crd(spec) }]),
    (error: Error) => {
      assert.deepEqual(
        error.message.split("\n").map((line) =>
          line
            .split(": ")
            .slice(0, 4)
            .join(": ")
            .replace(/:? (has|is|uses|sets) .*/, ""),
        ),
        [
          "bad.yaml: Thing v1: .spec.a",
          "bad.yaml: Thing v1: .spec.b",
          "bad.yaml: Thing v1: .spec.c",
          "bad.yaml: Thing v1: .spec.d",
          "bad.yaml: Thing v1: .spec.e[].oneOf[0].x",
        ],
      );
      return true;
    },
  );
});

test("files without a CRD, of an old version, or that are no YAML are refused with the reason", () => {
  const refused = (text: string, message: RegExp): void =>
    assert.throws(() => generateForeign([{ path: "f.yaml", text }]), { message });
  refused("kind: Service\n", /f\.yaml: there is no CustomResourceDefinition/);
  refused(
    crd({ type: "object" }).replace("k8s.io/v1", "k8s.io/v1beta1"),
    /f\.yaml: apiVersion: apiextensions\.k8s\.io\/v1beta1 is not read/,
  );
  refused("a: [\n", /f\.yaml: line \d+: /);
});
