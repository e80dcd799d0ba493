/**
 * Runs the translator: feeds events into the graph, flushes it, and returns what changed. The controller, `gwproxy up`
 * and `gwproxy validate` use it.
 */
import type { ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP, nameKey } from "../api/refs.ts";
import type { Collection } from "../lib/collections/collection.ts";
import type { Diagnostic } from "./shared/diagnostics.ts";
import { diagnosticsOf, type ObjectStatusInput } from "./shared/status-input.ts";
import { declareGraph } from "./graph.ts";
import { feed } from "./inputs.ts";
import { ResourceStore } from "./shared/resource-store.ts";
import type { DeploymentPlan } from "./gateways/deployment-plan.ts";
import type { Translator, TranslatorOptions } from "./translator.ts";

export function createTranslator(options: TranslatorOptions): Translator {
  const { graph, inputs, gateways, placements, sent, statusInputs, unreportedDiagnostics, documents } =
    declareGraph(options);
  const outbox = new ResourceStore();
  let touched: ObjectId[] = [];
  let isWantedNew = false;
  let placed = new Map<string, DeploymentPlan | undefined>();
  placements.onChange((changes) => {
    for (const { key, after } of changes) placed.set(key, after);
  });
  documents.onChange(() => (isWantedNew = true));
  for (const collection of sent) collection.onChange((changes) => outbox.collect(changes));
  const found: FaultyObjects[] = [...Object.values(statusInputs), ...Object.values(unreportedDiagnostics)].map(
    (collection) => {
      const faulty: FaultyObjects = new Map();
      collection.onChange((changes) => {
        for (const { key, after } of changes) {
          note(faulty, key, after);
          if (after !== undefined) touched.push(after.id);
        }
      });
      return faulty;
    },
  );
  return {
    apply(events) {
      touched = [];
      isWantedNew = false;
      placed = new Map();
      for (const event of events) feed(inputs, event);
      graph.flush();
      const wanted = isWantedNew ? [...documents.values()].flat() : undefined;
      return { ...outbox.take(), touched, placements: placed, documents: wanted };
    },
    resourcesOf: (gateway) => outbox.resourcesOf(gateway),
    resources: () => outbox.resources(),
    resource: (type, key) => outbox.resource(type, key),
    gateways: () => [...gateways.keys()].sort(),
    diagnostics: () => found.flatMap((faulty) => [...faulty.values()].flat()),
    diagnosticsOf(id) {
      const each = find(id, statusInputs) ?? find(id, unreportedDiagnostics);
      return each === undefined ? [] : diagnosticsOf(each);
    },
    facts: (id) => find(id, statusInputs),
  };
}

/**
 * Diagnostics by key. Only objects that have any are held: few of thousands do, and the list is read after each step.
 */
type FaultyObjects = Map<string, readonly Diagnostic[]>;

function note(faulty: FaultyObjects, key: string, facts: ObjectStatusInput | undefined): void {
  const diagnostics = facts === undefined ? [] : diagnosticsOf(facts);
  if (diagnostics.length > 0) faulty.set(key, diagnostics);
  else faulty.delete(key);
}

function find<F extends ObjectStatusInput>(
  id: ObjectId,
  facts: Readonly<Record<string, Collection<F>>>,
): F | undefined {
  if (id.group !== GATEWAY_GROUP && id.group !== GWPROXY_GROUP) return undefined;
  return Object.hasOwn(facts, id.kind) ? facts[id.kind]?.get(nameKey(id)) : undefined;
}
