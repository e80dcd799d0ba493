/**
 * The SchemaGraph: named components and the references between them, on which all emitters work. It is acyclic, because
 * a CRD is a tree and cannot recurse; creating the graph reports a cycle with its members.
 */
import { schemaError } from "./errors.ts";
import { walk, type Component, type Schema } from "./schema.ts";

export interface SchemaGraph {
  readonly components: ReadonlyMap<string, Component>;
  /** @throws SchemaError when the component does not exist */
  get(name: string): Component;
  /** Returns the schema itself, or the component that it refers to, overlaid with the bounds of this use. */
  resolve(schema: Schema): Schema;
  /** Returns the component and all that it reaches, each once, users before the components that they use. */
  reachable(name: string): readonly Component[];
}

export function createGraph(list: readonly Component[]): SchemaGraph {
  const components = new Map(list.map((component) => [component.name, component]));
  const get = (name: string): Component => {
    const found = components.get(name);
    if (found === undefined) throw schemaError("schemas", name, "there is no such component");
    return found;
  };
  for (const component of list) checkReferences(component, components);
  checkAcyclic(components);
  return {
    components,
    get,
    resolve: (schema) => {
      if (schema.$ref === undefined) return schema;
      const { $ref, ...site } = schema;
      return { ...get($ref).schema, ...site };
    },
    reachable: (name) => reach(get(name), get),
  };
}

/** Returns the components that a schema refers to, in the order of its fields. */
export function referencesOf(schema: Schema): string[] {
  return [...walk(schema)].flatMap(([, part]) => (part.$ref === undefined ? [] : [part.$ref]));
}

function checkReferences(component: Component, all: ReadonlyMap<string, Component>): void {
  for (const [path, part] of walk(component.schema)) {
    if (part.$ref !== undefined && !all.has(part.$ref)) {
      throw schemaError(`${component.file}.yaml`, component.name + path, `there is no component ${part.$ref}`);
    }
  }
}

function checkAcyclic(all: ReadonlyMap<string, Component>): void {
  const done = new Set<string>();
  const visit = (name: string, trail: readonly string[]): void => {
    const start = trail.indexOf(name);
    const file = `${all.get(name)?.file ?? ""}.yaml`;
    if (start >= 0) throw schemaError(file, name, `refers to itself: ${[...trail.slice(start), name].join(" → ")}`);
    if (done.has(name)) return;
    for (const target of referencesOf(all.get(name)?.schema ?? {})) visit(target, [...trail, name]);
    done.add(name);
  };
  for (const name of all.keys()) visit(name, []);
}

function reach(start: Component, get: (name: string) => Component): Component[] {
  const order: Component[] = [];
  const seen = new Set<string>();
  const visit = (component: Component): void => {
    if (seen.has(component.name)) return;
    seen.add(component.name);
    order.push(component);
    for (const name of referencesOf(component.schema)) visit(get(name));
  };
  visit(start);
  return order;
}
