/**
 * The part of the README that says what is accepted and not served yet; test/fields/main.ts writes it. A field counts
 * as served when a test proves it, or a field below it, at one of its places: a shared component runs the same code at
 * each of them. Below a field that is not served nothing else is listed.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SchemaGraph } from "../../codegen/graph.ts";
import { outline } from "../../codegen/emit/docs-outline.ts";
import type { KindsFile } from "../../codegen/load.ts";
import { isStruct, type Schema } from "../../codegen/schema.ts";
import { CHAT_FORMATS } from "../../src/proxy/llm/formats/index.ts";
import { isOperation } from "../../src/proxy/llm/operations/index.ts";

/** Something in the API that this version does not serve. */
interface UnservedEntry {
  /** A field, a kind that a reference may name, or a value. */
  readonly name: string;
  /** The first sentence of its description; "" when it has none. */
  readonly about: string;
}

/** What one component does not serve, at all of its places. */
export interface UnservedPart {
  readonly kind: string;
  /** Paths such as "spec.policies.auth" at which the entries are missing. */
  readonly places: readonly string[];
  readonly entries: readonly UnservedEntry[];
}

/** What the code serves, as far as tests and schemas cannot tell. */
export interface ServedNames {
  /** Whether a reference may lead to an object of this kind. */
  readonly hasKind: (kind: string) => boolean;
  /** Whether `custom.formats[].type` of a provider may be this one. */
  readonly hasFormat: (format: string) => boolean;
}

const BEGIN = "<!-- not served: written by `make generate` -->";
const END = "<!-- end of not served -->";
const WIDTH = 120;

/** Reads what the translator and the proxy know by name. */
export function readServedNames(root: string): ServedNames {
  const translator = globSync("src/translator/**/*.ts", { cwd: root }).map((file) =>
    readFileSync(join(root, file), "utf8"),
  );
  return {
    hasKind: (kind) => translator.some((text) => text.includes(`"${kind}"`)),
    hasFormat: (format) => Object.hasOwn(CHAT_FORMATS, format) || isOperation(format),
  };
}

/** @param proven "Kind path" of each leaf that a test proves */
export function findUnserved(
  graph: SchemaGraph,
  { kinds }: KindsFile,
  proven: ReadonlySet<string>,
  names: ServedNames,
): UnservedPart[] {
  const served = new Set<string>();
  for (const { kind, component } of kinds) {
    for (const [field, uses] of outline(graph, component).uses) {
      if (uses.some(({ leaves }) => leaves.some((leaf) => proven.has(`${kind} ${leaf}`)))) served.add(field);
    }
  }
  return kinds.flatMap(({ kind, component }) => {
    const parts = new Map<string, { places: string[]; entries: readonly UnservedEntry[] }>();
    const visit = (name: string, path: string): void => {
      const { schema } = graph.get(name);
      const entries = unservedEntries(schema, name, { graph, served, names });
      if (entries.length > 0) {
        const key = entries.map((entry) => entry.name).join();
        const part = parts.get(key) ?? { places: [], entries };
        part.places.push(path);
        parts.set(key, part);
      }
      for (const [field, child] of Object.entries(schema.properties ?? {})) {
        if (path === "" && field === "status") continue;
        const below = componentBelow(graph, child);
        const at = path === "" ? field : `${path}.${field}`;
        if (served.has(`${name}.${field}`) && below !== undefined) visit(below.name, at + below.suffix);
      }
    };
    visit(component, "");
    return [...parts.values()].map((part) => ({ kind, ...part }));
  });
}

interface Known {
  readonly graph: SchemaGraph;
  readonly served: ReadonlySet<string>;
  readonly names: ServedNames;
}

function unservedEntries(schema: Schema, name: string, { graph, served, names }: Known): UnservedEntry[] {
  const reference = schema["x-gw-ref"];
  const isRoot = schema.properties?.["status"] !== undefined;
  // The group and kind of a reference are not settings; what matters is whether the kinds are served.
  if (reference !== undefined)
    return reference.kinds
      .map((kind) => kind.slice(kind.indexOf("/") + 1))
      .filter((kind) => !names.hasKind(kind))
      .map((kind) => ({ name: kind, about: "as the kind of the reference" }));
  const fields = Object.entries(schema.properties ?? {})
    .filter(([field]) => !served.has(`${name}.${field}`) && !(isRoot && field === "status"))
    .map(([field, site]) => ({ name: field, about: firstSentence(graph.resolve(site).description ?? "") }));
  const formats = name === "ProviderFormatConfig" ? (graph.resolve(schema.properties?.["type"] ?? {}).enum ?? []) : [];
  const values = formats.map(String).filter((format) => !names.hasFormat(format));
  return [...fields, ...values.map((value) => ({ name: value, about: "as the type" }))];
}

/** The component that a field holds, through lists and maps. */
function componentBelow(
  graph: SchemaGraph,
  site: Schema,
): { readonly name: string; readonly suffix: string } | undefined {
  if (site.$ref !== undefined) {
    const { name, schema } = graph.get(site.$ref);
    return isStruct(schema) ? { name, suffix: "" } : componentBelow(graph, schema);
  }
  const [child, suffix] =
    site.items !== undefined
      ? [site.items, "[]"]
      : typeof site.additionalProperties === "object"
        ? [site.additionalProperties, ""]
        : [undefined, ""];
  const below = child === undefined ? undefined : componentBelow(graph, child);
  return below === undefined ? undefined : { name: below.name, suffix: suffix + below.suffix };
}

/** The README with its generated part written anew. @throws when it has no place for that part */
export function updateReadme(readme: string, parts: readonly UnservedPart[]): string {
  const from = readme.indexOf(BEGIN);
  const to = readme.indexOf(END);
  if (from < 0 || to < from) throw new Error(`README.md: "${BEGIN}" and "${END}" must stand in it`);
  return `${readme.slice(0, from + BEGIN.length)}\n\n${renderUnserved(parts)}\n\n${readme.slice(to)}`;
}

function renderUnserved(parts: readonly UnservedPart[]): string {
  if (parts.length === 0) return "- Nothing: a test shows the effect of every setting at one of its places at least.";
  return [...new Set(parts.map(({ kind }) => kind))]
    .flatMap((kind) => {
      const page = `[${kind}](docs/reference/${kind.toLowerCase()}.md)`;
      const own = parts.filter((part) => part.kind === kind);
      const [whole] = own.filter(({ places }) => places.includes(""));
      if (whole !== undefined) return [item("", `${page}, all of it: ${sentenceStart(whole.entries[0]?.about ?? "")}`)];
      return [item("", page), ...own.map((part) => item("  ", describePart(part)))];
    })
    .join("\n");
}

function describePart({ places, entries }: UnservedPart): string {
  return `${places.map((place) => `\`${place}\``).join(" and ")}: ${entries.map(describeEntry).join(", ")}.`;
}

function describeEntry({ name, about }: UnservedEntry): string {
  return about === "" ? `\`${name}\`` : `\`${name}\` (${sentenceStart(about).replace(/\.$/, "")})`;
}

/** A description begins with a capital; in the middle of a sentence it has one only where its first word is a name. */
function sentenceStart(text: string): string {
  return text.replace(
    /^(?:An?|The|Which|What|Who|How|Whether|Any|Settings|Conditions|Servers|Requests|Asks|Also|More)\b/,
    (word) => word.toLowerCase(),
  );
}

function firstSentence(text: string): string {
  const end = text.search(/[.](?:\s|$)/);
  return end < 0 ? text : text.slice(0, end + 1);
}

/** One item of a Markdown list, wrapped. */
function item(indent: string, text: string): string {
  const lines: string[] = [];
  let line = `${indent}-`;
  for (const word of text.split(" ")) {
    if (line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = `${indent} `;
    }
    line += ` ${word}`;
  }
  return [...lines, line].join("\n");
}
