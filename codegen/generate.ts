/**
 * The whole generator in memory: it reads the schemas and the upstream CRDs and returns the text of every generated
 * file. main.ts writes or compares the result.
 */
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { emitBehaviour } from "./emit/behaviour.ts";
import { BASELINE, nextBaseline } from "./baseline.ts";
import { emitAdmissionPolicy } from "./emit/admission-policy.ts";
import { emitConsole } from "./emit/console.ts";
import { emitCrdChart } from "./emit/crd-chart.ts";
import { emitCrds } from "./emit/crds.ts";
import { emitDefaults } from "./emit/defaults.ts";
import { emitEditor } from "./emit/editor.ts";
import { emitExpressions } from "./emit/expressions.ts";
import { emitKinds } from "./emit/kinds.ts";
import { emitMetricLabels } from "./emit/metric-labels.ts";
import { emitFields, emitPaths } from "./emit/paths.ts";
import { emitRules } from "./emit/rules.ts";
import { emitRuntime } from "./emit/runtime.ts";
import { emitTypes, emitTypesIndex } from "./emit/types.ts";
import { emitUnions } from "./emit/unions.ts";
import { emitValidators } from "./emit/validators.ts";
import { emitFieldDocs } from "./emit/field-docs.ts";
import { schemaError } from "./errors.ts";
import { createGraph } from "./graph.ts";
import { loadSchemas, type KindsFile } from "./load.ts";
import { compare } from "./print.ts";
import { OVERLAY_TYPES } from "./tools/overlay-types.ts";
import { walk, type Component } from "./schema.ts";
import { checkRules, checkStructure } from "./structural.ts";
import {
  foldUpstream,
  readUpstream,
  UPSTREAM_MODULES,
  withReferences,
  withoutDescriptions,
  type UpstreamCrd,
} from "./upstream.ts";

/**
 * @param root the repository, with a slash at the end
 * @returns text by path below the root
 */
export async function generate(root: string): Promise<Map<string, string>> {
  const source = loadSchemas(`${root}crds/schemas/`);
  const upstream = readUpstream();
  const own = createGraph(source.components);
  checkStructure(own, source.components);
  const folded = upstream.flatMap(foldUpstream).map(withoutDescriptions).map(withReferences);
  checkUpstreamRules(folded);
  const graph = createGraph([...source.components, ...folded]);

  const { group, kinds } = source.kinds;
  const roots = new Map([
    ...kinds.map(({ kind, component }) => [`${group}/${kind}`, component] as const),
    ...upstream.map((crd) => [`${crd.group}/${crd.kind}`, crd.kind] as const),
  ]);
  const objects = new Set(roots.values());
  const folders = new Map(upstream.map(({ types, folder }) => [types, folder]));
  const place = (file: string): string => {
    const folder = folders.get(file);
    return folder === undefined ? file : `${folder}/${file}`;
  };

  const files = new Map<string, string>();
  const put = (folder: string, texts: ReadonlyMap<string, string>): void => {
    for (const [path, text] of texts) files.set(`${folder}/${path}`, text);
  };
  const crds = emitCrds(own, source.kinds);
  put("crds", crds);
  put("chart/gwproxy-crds/templates", emitCrdChart(crds));
  put("docs/reference", emitBehaviour());
  put("docs/reference", emitExpressions());
  const types = emitTypes(graph, objects, place);
  put("generated/types", new Map([...types, ["index.ts", emitTypesIndex([...types.keys()])]]));
  put("generated/validators", emitValidators(graph, roots));
  put("generated", emitPaths(graph, roots));
  put("generated/editor", emitEditor(graph, source.kinds, roots, versionsOf(source.kinds, upstream)));
  files.set("generated/unions.ts", emitUnions(graph, place));
  files.set("generated/rules.ts", emitRules(graph, roots));
  files.set("generated/defaults.ts", emitDefaults(graph, roots));
  files.set("generated/fields.ts", emitFields(graph, objects));
  files.set("generated/kinds.ts", emitKinds(source.kinds, upstream));
  files.set("generated/metric-labels.ts", emitMetricLabels());
  files.set("generated/runtime.ts", emitRuntime(`${root}src/lib/`));
  files.set("generated/console/assets.ts", await emitConsole(root));
  files.set("generated/field-docs.ts", emitFieldDocs(own, source.kinds));
  files.set("generated/admission-policy.yaml", emitAdmissionPolicy(own, source.kinds));
  files.set(BASELINE, nextBaseline(root, source));
  // The module that it is made from is large; its own tool writes it.
  files.set(OVERLAY_TYPES, readFileSync(root + OVERLAY_TYPES, "utf8"));
  files.set("generated/MANIFEST", manifest(root, files));
  return files;
}

/** Returns the served versions by "group/Kind". */
function versionsOf(
  { group, version, kinds }: KindsFile,
  upstream: readonly UpstreamCrd[],
): Map<string, readonly string[]> {
  return new Map<string, readonly string[]>([
    ...kinds.map(({ kind }) => [`${group}/${kind}`, [version]] as const),
    ...upstream.map((crd) => [`${crd.group}/${crd.kind}`, crd.versions] as const),
  ]);
}

function checkUpstreamRules(components: readonly Component[]): void {
  for (const { name, file, schema } of components) {
    for (const [path, part] of walk(schema)) {
      checkRules(part, (message) => {
        throw schemaError(file, name + path, message);
      });
    }
  }
}

/** Lists the SHA-256 of all inputs and outputs, so that a stale tree is detected without running the generator. */
function manifest(root: string, files: ReadonlyMap<string, string>): string {
  const schemas = readdirSync(`${root}crds/schemas`).sort(compare);
  const inputs = schemas.map(
    (name) => `in  ${sha256(readFileSync(`${root}crds/schemas/${name}`))}  crds/schemas/${name}`,
  );
  const outputs = [...files]
    .map(([path, text]) => `out ${sha256(text)}  ${path}`)
    .sort((a, b) => compare(a.slice(70), b.slice(70)));
  return [...UPSTREAM_MODULES.map(({ source }) => `in  ${source}`), ...inputs, ...outputs, ""].join("\n");
}

function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
