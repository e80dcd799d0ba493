/**
 * Reads crds/schemas into components and resolves the two keywords that only save writing: `x-gw-include` copies the
 * fields and rules of another component, and `x-gw-conditional` derives the fixed-or-conditional form of one.
 */
import { readFileSync, readdirSync } from "node:fs";
import { parse } from "yaml";
import { schemaError } from "./errors.ts";
import {
  fieldGroups,
  isStruct,
  mapSchema,
  ONE_OF_KEYWORDS,
  type CelRule,
  type Component,
  type Schema,
} from "./schema.ts";
import { checkVocabulary } from "./vocabulary.ts";

interface Column {
  readonly name: string;
  readonly type: string;
  readonly description?: string;
  readonly jsonPath: string;
}

export interface KindEntry {
  readonly kind: string;
  readonly component: string;
  readonly plural: string;
  readonly singular: string;
  readonly list: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly columns: readonly Column[];
}

export interface KindsFile {
  readonly group: string;
  readonly version: string;
  readonly kinds: readonly KindEntry[];
}

export interface Source {
  readonly kinds: KindsFile;
  readonly components: readonly Component[];
}

/** @param directory crds/schemas, with a slash at the end */
export function loadSchemas(directory: string): Source {
  const names = readdirSync(directory)
    .filter((name) => name.endsWith(".yaml"))
    .sort();
  const texts = new Map(names.map((name) => [name.slice(0, -".yaml".length), readFileSync(directory + name, "utf8")]));
  return readSchemas(texts);
}

/** @param texts contents of the files by name without extension */
export function readSchemas(texts: ReadonlyMap<string, string>): Source {
  const kinds = texts.get("kinds");
  if (kinds === undefined) throw schemaError("kinds.yaml", "", "the file is missing");
  const written = new Map<string, Component>();
  for (const [file, text] of texts) {
    if (file === "kinds") continue;
    for (const [name, schema] of Object.entries(parse(text) as Record<string, Schema>)) {
      const other = written.get(name);
      if (other !== undefined) throw schemaError(`${file}.yaml`, name, `the name is taken by ${other.file}.yaml`);
      checkVocabulary(file, name, schema);
      written.set(name, { name, file, schema });
    }
  }
  // The cast is safe: only we write the kinds file, and the tests of the CRDs fail for another shape.
  return { kinds: parse(kinds) as KindsFile, components: resolve(written) };
}

function resolve(written: ReadonlyMap<string, Component>): Component[] {
  const components: Component[] = [];
  for (const component of written.values()) {
    const base = component.schema["x-gw-conditional"];
    if (base === undefined) components.push({ ...component, schema: included(component, written, []) });
    else components.push(...conditional(component, find(component, base, written), written));
  }
  return components.map((component) => ({ ...component, schema: mapSchema(component.schema, withBounds) }));
}

/**
 * Adds the bounds of int32. The API server does not check a number against its format and would store larger values.
 */
function withBounds(schema: Schema): Schema {
  if (schema.format !== "int32") return schema;
  return { minimum: -(2 ** 31), maximum: 2 ** 31 - 1, ...schema };
}

function find(from: Component, name: string, all: ReadonlyMap<string, Component>): Component {
  const found = all.get(name);
  if (found === undefined) throw schemaError(`${from.file}.yaml`, from.name, `there is no component ${name}`);
  return found;
}

function included(component: Component, all: ReadonlyMap<string, Component>, seen: readonly string[]): Schema {
  const { "x-gw-include": name, ...own } = component.schema;
  if (name === undefined) return own;
  if (seen.includes(name)) {
    throw schemaError(`${component.file}.yaml`, component.name, `includes itself: ${[...seen, name].join(" → ")}`);
  }
  const base = included(find(component, name, all), all, [...seen, name]);
  for (const field of Object.keys(own.properties ?? {})) {
    if (base.properties?.[field] !== undefined) {
      throw schemaError(`${component.file}.yaml`, `${component.name}.${field}`, `is a field of ${name} too`);
    }
  }
  const rules = [...(base["x-kubernetes-validations"] ?? []), ...(own["x-kubernetes-validations"] ?? [])];
  const required = [...(base.required ?? []), ...(own.required ?? [])];
  const groups = ONE_OF_KEYWORDS.flatMap((keyword) => {
    const all = [...fieldGroups(own, keyword), ...fieldGroups(base, keyword)];
    return all.length === 0 ? [] : [[keyword, all] as const];
  });
  return {
    ...base,
    ...own,
    "x-gw-included": [name, ...(base["x-gw-included"] ?? [])],
    ...Object.fromEntries(groups),
    properties: { ...own.properties, ...base.properties },
    ...(required.length > 0 ? { required } : {}),
    ...(rules.length > 0 ? { "x-kubernetes-validations": rules } : {}),
  };
}

/** Builds the component with `conditional` beside the fields of the fixed form, and the component of its entries. */
function conditional(component: Component, base: Component, all: ReadonlyMap<string, Component>): Component[] {
  const { name, file } = component;
  const fixed = included(base, all, []);
  if (!isStruct(fixed)) throw schemaError(`${file}.yaml`, name, `${base.name} has no fields`);
  const fields = Object.keys(fixed.properties ?? {});
  for (const [field, site] of Object.entries(fixed.properties ?? {})) {
    const fallback = site.default ?? (site.$ref === undefined ? undefined : all.get(site.$ref)?.schema.default);
    if (fallback === undefined) continue;
    // The API server would set the default beside `conditional`, which excludes the field.
    throw schemaError(`${base.file}.yaml`, `${base.name}.${field}`, "may not have a default: use x-gw-default");
  }
  const entryName = `Conditional${name}`;
  const entry: Schema = {
    description: `One of several forms, and when it is used: see ${name}.`,
    type: "object",
    required: ["policy"],
    properties: {
      condition: {
        $ref: "CELExpression",
        description: "When the form is used. Without it the entry is the last one and used when no other is.",
        "x-gw-cel": "request",
      },
      policy: { $ref: base.name, description: "The form." },
    },
  };
  // `conditional` satisfies a group of which one field must be set.
  const counts = ONE_OF_KEYWORDS.flatMap((keyword) => {
    const added = keyword === "x-gw-at-most-one-of" ? [] : ["conditional"];
    const all = fieldGroups(fixed, keyword).map((group) => [...group, ...added]);
    return all.length === 0 ? [] : [[keyword, all] as const];
  });
  const schema: Schema = {
    description: component.schema.description ?? "",
    type: "object",
    "x-gw-alone": "conditional",
    ...Object.fromEntries(counts),
    properties: {
      ...fixed.properties,
      conditional: {
        description: "Several forms. The first entry whose condition is true is used. Excludes all other fields.",
        type: "array",
        minItems: 1,
        maxItems: 16,
        "x-kubernetes-list-type": "atomic",
        items: { $ref: entryName },
      },
    },
    "x-kubernetes-validations": [...conditionalRules(fields), ...fixedRules(fixed)],
  };
  return [
    { name, file, schema },
    { name: entryName, file, schema: entry },
  ];
}

function conditionalRules(fields: readonly string[]): CelRule[] {
  return [
    {
      rule: `!has(self.conditional) || (${fields.map((field) => `!has(self.${field})`).join(" && ")})`,
      message: `conditional may not be set together with ${fields.join(", ")}`,
      fieldPath: ".conditional",
    },
    {
      rule: "!has(self.conditional) || self.conditional.filter(e, !has(e.condition)).size() <= 1",
      message: "conditional may hold at most one entry without condition",
      fieldPath: ".conditional",
    },
    {
      rule:
        "!has(self.conditional) || self.conditional.all(e, has(e.condition)) || " +
        "!has(self.conditional[size(self.conditional) - 1].condition)",
      message: "the entry of conditional without condition must be the last one",
      fieldPath: ".conditional",
    },
  ];
}

/** Returns the rules of the fixed form, which apply unless the conditional form is used. */
function fixedRules(fixed: Schema): CelRule[] {
  const rules: CelRule[] = (fixed.required ?? []).map((field) => ({
    rule: `has(self.conditional) || has(self.${field})`,
    message: `${field} must be set unless conditional is set`,
    fieldPath: `.${field}`,
  }));
  for (const rule of fixed["x-kubernetes-validations"] ?? []) {
    rules.push({ ...rule, rule: `has(self.conditional) || (${rule.rule})` });
  }
  return rules;
}
