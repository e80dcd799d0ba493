/**
 * An example for each component, taken from manifests that other tests run: those of examples/, of the golden files and
 * of the cases that every judge accepts, in this order. Of several the richest that is still short.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments, stringify } from "yaml";
import type { Example } from "../../codegen/emit/docs.ts";
import type { SchemaGraph } from "../../codegen/graph.ts";
import type { KindsFile } from "../../codegen/load.ts";
import { isStruct, type Schema } from "../../codegen/schema.ts";
import { applyDefaults } from "../../generated/defaults.ts";
import { validate } from "../../src/admission/validate.ts";
import { loadCases } from "../crd-rules/load.ts";

const MAX_LINES = 18;
/** A whole object may be longer than a part of one. */
const MAX_LINES_WHOLE = 40;

interface Source {
  readonly file: string;
  readonly kind: string;
  readonly object: unknown;
}

interface Candidate extends Example {
  readonly lines: number;
  readonly rank: number;
}

/** @returns by "Kind/Component", and by "/Component" for any kind */
export function collectExamples(root: string, graph: SchemaGraph, { group, kinds }: KindsFile): Map<string, Example> {
  const sources = [
    ...manifests(root, "examples/**/*.yaml", group),
    ...manifests(root, "test/golden/**/*.yaml", group),
    ...accepted(),
  ];
  const best = new Map<string, Candidate>();
  for (const [rank, { file, kind, object }] of sources.entries()) {
    const entry = kinds.find((one) => one.kind === kind);
    if (entry === undefined || !isSound(object)) continue;
    for (const [component, path, value] of parts(graph, { $ref: entry.component }, object, "")) {
      const yaml = stringify(value, { lineWidth: 110 });
      const lines = yaml.trimEnd().split("\n").length;
      if (lines > (path === "" ? MAX_LINES_WHOLE : MAX_LINES) || yaml.trim() === "{}") continue;
      const tier = file.startsWith("examples/") ? 0 : file.startsWith("test/golden/") ? 1 : 2;
      const candidate = { file, path, yaml, lines, rank: tier * 1_000_000 + rank };
      keep(best, `${kind}/${component}`, candidate);
      // For kinds that share the component and have no example of their own.
      if (path !== "") keep(best, `/${component}`, { ...candidate, path: `${kind} ${path}` });
    }
  }
  return new Map([...best].map(([key, { file, path, yaml }]) => [key, { file, path, yaml }]));
}

/** An example that is refused teaches the wrong thing; golden files hold such objects too. */
function isSound(object: unknown): boolean {
  const { apiVersion, kind } = object as { apiVersion: string; kind: string }; // both are how it was found
  const [group = ""] = apiVersion.split("/");
  return validate(applyDefaults(`${group}/${kind}`, object)).every(({ severity }) => severity !== "error");
}

function keep(best: Map<string, Candidate>, key: string, candidate: Candidate): void {
  const known = best.get(key);
  if (known === undefined || isBetter(candidate, known)) best.set(key, candidate);
}

/** The same kind of source: more lines show more. Otherwise the source that comes first. */
function isBetter(a: Candidate, b: Candidate): boolean {
  const [tierA, tierB] = [Math.floor(a.rank / 1_000_000), Math.floor(b.rank / 1_000_000)];
  return tierA === tierB ? a.lines > b.lines : tierA < tierB;
}

/** Every value in an object that a component describes. */
function* parts(graph: SchemaGraph, site: Schema, value: unknown, path: string): Generator<[string, string, unknown]> {
  if (typeof value !== "object" || value === null) return;
  const schema = graph.resolve(site);
  if (site.$ref !== undefined && isStruct(schema)) yield [site.$ref, path, value];
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return;
    for (const [at, item] of value.entries()) yield* parts(graph, items, item, `${path}[${at}]`);
    return;
  }
  for (const [name, member] of Object.entries(value)) {
    const child = schema.properties?.[name] ?? schema.additionalProperties;
    if (typeof child !== "object") continue;
    yield* parts(graph, child, member, path === "" ? name : `${path}.${name}`);
  }
}

/** Documents of our group in the part of a file that is input: golden files hold results behind "# Output". */
function manifests(root: string, pattern: string, group: string): Source[] {
  return globSync(pattern, { cwd: root })
    .sort()
    .flatMap((file) => {
      const [text = ""] = readFileSync(join(root, file), "utf8").split(/^# Output/m);
      return parseAllDocuments(text, { version: "1.1" }).flatMap((document): Source[] => {
        const object: unknown = document.errors.length > 0 ? undefined : document.toJS();
        if (typeof object !== "object" || object === null) return [];
        const { apiVersion, kind } = object as { apiVersion?: unknown; kind?: unknown }; // checked in the next line
        if (typeof kind !== "string" || typeof apiVersion !== "string" || !apiVersion.startsWith(`${group}/`))
          return [];
        return [{ file, kind, object }];
      });
    });
}

function accepted(): Source[] {
  return loadCases()
    .filter(({ faults }) => faults.length === 0)
    .map(({ file, kind, object }) => ({ file: `test/crd-rules/${file}`, kind, object }));
}
