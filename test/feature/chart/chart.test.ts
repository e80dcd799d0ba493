/**
 * What Helm makes of the chart gwproxy: the objects with default values, the change that every value makes, and the values
 * that are refused. `UPDATE_GOLDEN=1` rewrites the golden file.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { createControllerMetrics } from "../../../src/telemetry/controller-metrics.ts";
import { CHARTS, helm, parseObjects, renderChart, type ChartObject } from "../../support/kubernetes/chart.ts";
import { BATCHES, REFUSED, type Row } from "./values.ts";

const ROOT = join(import.meta.dirname, "../../..");
const GOLDEN = join(ROOT, "test/golden/chart/defaults.yaml");
const SCHEMA = join(CHARTS, "gwproxy/values.schema.json");

let defaults: readonly ChartObject[] = [];

before(async () => {
  defaults = await renderChart();
});

test("the charts pass Helm's own checks", async () => {
  const said = await helm(["lint", "--strict", "gwproxy", "gwproxy-crds"]);
  assert.match(said, /2 chart\(s\) linted, 0 chart\(s\) failed/);
});

test("the objects with default values are those of the golden file", async () => {
  const text = await helm(["template", "gwproxy", "gwproxy", "--namespace", "gwproxy-system"]);
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(GOLDEN, text);
  else assert.equal(readFileSync(GOLDEN, "utf8"), text, "run with UPDATE_GOLDEN=1 and review the difference");
});

for (const { title, base = {}, rows } of BATCHES) {
  test(`values do what they say: ${title}`, async () => {
    const plain = Object.keys(base).length === 0 ? defaults : await renderChart(base);
    const changed = await renderChart(rows.reduce((values, { path, value }) => withValue(values, path, value), base));
    for (const { path, look, makes } of rows) {
      assert.deepEqual(look(changed), makes, path);
      assert.notDeepEqual(look(plain), makes, `${path} makes no difference`);
    }
  });
}

test("every value of the schema is one of those that were just tried", () => {
  const schema = JSON.parse(readFileSync(SCHEMA, "utf8")) as Schema; // our own file
  const tried = BATCHES.flatMap(({ rows }) => rows).map(({ path }: Row) => path);
  const untried = listValues(schema).filter(
    (path) => !tried.some((each) => path === each || path.startsWith(`${each}.`)),
  );
  assert.deepEqual(untried, []);
});

test("values of other types, unknown keys and incomplete entries are refused by their path", async () => {
  for (const { values, message } of REFUSED)
    await assert.rejects(renderChart(values), message, `${JSON.stringify(values)} is not refused`);
});

test("null takes a value away", async () => {
  const lists = { tolerations: null, imagePullSecrets: null, discoveryNamespaceSelectors: null };
  const maps = { affinity: null, nodeSelector: null, commonLabels: null, podAnnotations: null, podLabels: null };
  const own = { extraEnv: null, extraVolumes: null, extraContainers: null, strategy: null };
  const objects = await renderChart({
    ...lists,
    ...maps,
    resources: null,
    gatewayClassParametersRefs: null,
    controller: own,
  });
  const [controller] = objects.filter(({ kind, metadata }) => kind === "Deployment" && metadata.name === "gwproxy");
  assert.match(JSON.stringify(controller), /"name":"controller".*"resources":null/);
  assert.equal(objects.length, defaults.length);
});

test("the notes name values at the top level that are not known, and say what is missing", async () => {
  const notes = (values: object): Promise<string> =>
    helm(["install", "gwproxy", "gwproxy", "--dry-run=client", "--values", "-"], JSON.stringify(values));
  assert.doesNotMatch(await notes({ global: { any: 1 } }), /WARNING/);
  assert.match(await notes({ webhok: {}, imag: { tag: "1" } }), /values are not known and do nothing: imag, webhok/);
  const nowhere = { controller: { service: { enabled: false } } };
  assert.match(await notes(nowhere), /data planes find the controller only by GWPROXY_XDS_SERVICE_HOST/);
});

test("a registry of one's own moves every image", async () => {
  const text = JSON.stringify(await renderChart({ image: { registry: "registry.example.com/mirror" } }));
  assert.doesNotMatch(text, /ghcr\.io/);
  assert.match(text, /registry\.example\.com\/mirror\/controller:v/);
  assert.match(text, /"GWPROXY_PROXY_IMAGE_REGISTRY","value":"registry\.example\.com\/mirror"/);
});

test("names fit wherever they are used, and two releases share no object", async () => {
  const longest = "r".repeat(53);
  const objects = parseObjects(await helm(["template", longest, "gwproxy", "--namespace", "n".repeat(63)]));
  for (const { kind, metadata } of objects) {
    const limit = kind === "Service" || kind === "Deployment" || kind === "Pod" ? 63 : 253;
    assert.ok(metadata.name.length <= limit, `${kind} ${metadata.name}`);
    for (const label of Object.values(metadata.labels ?? {})) assert.ok(label.length <= 63, label);
  }
  const dotted = parseObjects(await helm(["template", "eu.edge", "gwproxy", "--namespace", "edge"]));
  const services = dotted.filter(({ kind }) => kind === "Service").map(({ metadata }) => metadata.name);
  assert.deepEqual(services, ["eu-edge-gwproxy", "eu-edge-gwproxy-webhook"]);
  const key = ({ kind, metadata }: ChartObject): string => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`;
  const second = { fullnameOverride: "", gatewayClassName: "edge", controllerName: "example.com/edge" };
  const other = parseObjects(
    await helm(["template", "edge", "gwproxy", "--namespace", "edge", "--values", "-"], JSON.stringify(second)),
  ).map(key);
  assert.deepEqual(
    defaults.map(key).filter((each) => other.includes(each)),
    [],
  );
});

test("the chart of the definitions holds those with all descriptions, and keeps them when it is uninstalled", async () => {
  const keep = { "helm.sh/resource-policy": "keep" };
  const documented = globSync("crds/documented/*.yaml", { cwd: ROOT })
    .flatMap((path) => parseObjects(readFileSync(join(ROOT, path), "utf8")))
    .map((object) => ({ ...object, metadata: { ...object.metadata, annotations: keep } }));
  const rendered = parseObjects(await helm(["template", "gwproxy-crds", "gwproxy-crds"]));
  const byName = (a: ChartObject, b: ChartObject): number => (a.metadata.name < b.metadata.name ? -1 : 1);
  assert.deepEqual(rendered.sort(byName), documented.sort(byName));
});

test("charts and program have one version", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string }; // our own file
  for (const name of ["gwproxy", "gwproxy-crds"]) {
    const chart = readFileSync(join(CHARTS, name, "Chart.yaml"), "utf8");
    assert.match(chart, new RegExp(`^version: ${version}\nappVersion: "${version}"$`, "m"), name);
  }
  for (const file of ["hello.yaml", "llm.yaml"])
    assert.match(readFileSync(join(ROOT, "examples/cluster", file), "utf8"), new RegExp(`:v${version}$`, "m"), file);
});

test("the dashboard and the example of alerts ask for metrics that exist", () => {
  const page = readFileSync(join(ROOT, "docs/reference/metrics.md"), "utf8");
  const ofDataPlanes = [...page.matchAll(/^\| `(\w+)` \| (\w+)/gm)].map(([, name = "", type = ""]) => ({ name, type }));
  const known = new Set([...ofDataPlanes, ...controllerMetrics()].flatMap(seriesOf));
  for (const path of ["chart/gwproxy/files/dashboard.json", "examples/monitoring/alerts.yaml"]) {
    const asked = [...readFileSync(join(ROOT, path), "utf8").matchAll(/\bgwproxy_\w+/g)].map(([name]) => name);
    assert.ok(asked.length > 5, path);
    assert.deepEqual(
      asked.filter((name) => !known.has(name)),
      [],
      path,
    );
  }
});

interface NamedMetric {
  readonly name: string;
  readonly type: string;
}

/** Reads names and types from what a controller prints. */
function controllerMetrics(): NamedMetric[] {
  const metrics = createControllerMetrics({
    version: "1",
    isLeader: () => true,
    connected: () => [],
    memoryBytes: () => 1,
  });
  return [...metrics.print("prometheus").matchAll(/^# TYPE (\w+) (\w+)/gm)].map(([, name = "", type = ""]) => ({
    name,
    type,
  }));
}

function seriesOf({ name, type }: NamedMetric): string[] {
  return type === "histogram" ? ["_bucket", "_sum", "_count"].map((suffix) => name + suffix) : [name];
}

interface Schema {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
}

function listValues({ properties = {}, additionalProperties }: Schema, path = ""): string[] {
  const isOpen = path !== "" && additionalProperties !== false;
  if (isOpen || Object.keys(properties).length === 0) return [path];
  return Object.entries(properties).flatMap(([name, schema]) =>
    listValues(schema, path === "" ? name : `${path}.${name}`),
  );
}

/** Returns a copy of the values in which the dotted path has the value. */
function withValue(values: object, path: string, value: unknown): object {
  const [name = "", ...rest] = path.split(".");
  const inner = (values as Readonly<Record<string, object | undefined>>)[name]; // values are nested maps
  return { ...values, [name]: rest.length === 0 ? value : withValue(inner ?? {}, rest.join("."), value) };
}
