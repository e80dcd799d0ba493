/**
 * Runs the translator: feeds events into the graph, flushes it, and returns what changed. The controller, `gwproxy up`
 * and `gwproxy validate` use it.
 */
import type { ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP, INFERENCE_GROUP, nameKey } from "../api/refs.ts";
import type { Collection } from "../lib/collections/collection.ts";
import type { Diagnostic } from "./shared/diagnostics.ts";
import { diagnosticsOf, type ObjectStatusInput } from "./shared/status-input.ts";
import { declareGraph } from "./graph.ts";
import { feed } from "./inputs.ts";
import { ResourceStore } from "./shared/resource-store.ts";
import type { DeploymentPlan } from "./gateways/deployment-plan.ts";
import type { Translator, TranslatorOptions } from "./translator.ts";

export function createTranslator(options: TranslatorOptions): Translator {
  const { graph, inputs, gateways, deploymentPlans, scopedResources, statusInputs, unreportedDiagnostics, documents } =
    declareGraph(options);
  const store = new ResourceStore();
  let touched: ObjectId[] = [];
  let isWantedNew = false;
  let changedPlans = new Map<string, DeploymentPlan | undefined>();
  deploymentPlans.onChange((changes) => {
    for (const { key, after } of changes) changedPlans.set(key, after);
  });
  for (const collection of documents) collection.onChange(() => (isWantedNew = true));
  for (const collection of scopedResources) collection.onChange((changes) => store.collect(changes));
  const reportedByKind: ReportedObjects[] = [
    ...Object.values(statusInputs),
    ...Object.values(unreportedDiagnostics),
  ].map((collection) => {
    const reported: ReportedObjects = new Map();
    collection.onChange((changes) => {
      for (const { key, after } of changes) {
        record(reported, key, after);
        if (after !== undefined) touched.push(after.id);
      }
    });
    return reported;
  });
  return {
    apply(events) {
      touched = [];
      isWantedNew = false;
      changedPlans = new Map();
      for (const event of events) feed(inputs, event);
      graph.flush();
      const wanted = isWantedNew ? documents.flatMap((collection) => [...collection.values()].flat()) : undefined;
      return { ...store.take(), touched, deploymentPlans: changedPlans, documents: wanted };
    },
    resourcesOf: (gateway) => store.resourcesOf(gateway),
    resources: () => store.resources(),
    resource: (type, key) => store.resource(type, key),
    gateways: () => [...gateways.keys()].sort(),
    diagnostics: () => reportedByKind.flatMap((reported) => [...reported.values()].flat()),
    diagnosticsOf(id) {
      const each = find(id, statusInputs) ?? find(id, unreportedDiagnostics);
      return each === undefined ? [] : diagnosticsOf(each);
    },
    statusInput: (id) => find(id, statusInputs),
  };
}

/**
 * Diagnostics by key. Only objects that have any are held: few of thousands do, and the list is read after each step.
 */
type ReportedObjects = Map<string, readonly Diagnostic[]>;

function record(reported: ReportedObjects, key: string, input: ObjectStatusInput | undefined): void {
  const diagnostics = input === undefined ? [] : diagnosticsOf(input);
  if (diagnostics.length > 0) reported.set(key, diagnostics);
  else reported.delete(key);
}

/** Groups of the kinds that have a status input; other groups may use the same names of kinds. */
const STATUS_GROUPS: ReadonlySet<string> = new Set([GATEWAY_GROUP, GWPROXY_GROUP, INFERENCE_GROUP]);

function find<F extends ObjectStatusInput>(
  id: ObjectId,
  statusInputs: Readonly<Record<string, Collection<F>>>,
): F | undefined {
  if (!STATUS_GROUPS.has(id.group)) return undefined;
  return Object.hasOwn(statusInputs, id.kind) ? statusInputs[id.kind]?.get(nameKey(id)) : undefined;
}
