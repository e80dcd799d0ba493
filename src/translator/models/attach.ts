/**
 * Attaches models to their parents: to listeners of a Gateway or ListenerSet, as a route is attached (`../routes`), and
 * to rules of an HTTPRoute. `declare.ts` uses it.
 *
 * A rule that takes every path of a listener conflicts with models on the listener itself; neither of them serves.
 */
import type { HTTPRoute, HTTPRouteRule } from "../../../generated/types/gateway-api/httproute.ts";
import type { GwModel } from "../../../generated/types/model.ts";
import { Reason } from "../../api/conditions.ts";
import { GATEWAY_GROUP, nameKey } from "../../api/refs.ts";
import { modelsKey } from "../../ir/keys.ts";
import type { Readable } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../lib/collections/groups.ts";
import { findModelConflict, findModelRuleError, isModelRule, modelsKeyOfRule } from "../routes/model-rule.ts";
import type { ModelParent, ParentView } from "../shared/views.ts";

export interface ModelAttachContext {
  /** Listeners of Gateways and ListenerSets that models attach to, by model. */
  readonly candidates: Readable<readonly ParentView[]>;
  readonly httpRoutes: Readable<HTTPRoute>;
  /** Where each HTTPRoute is attached. */
  readonly attachments: Readable<readonly ParentView[]>;
  /** HTTPRoutes with a rule that takes every path for models, by listener. */
  readonly rootRoutes: ReadableGroups;
  /** Models that are attached to a listener itself, by listener. */
  readonly directModels: ReadableGroups;
}

type ModelParentRef = GwModel["spec"]["parentRefs"][number];

export function attachModel(key: string, model: GwModel, context: ModelAttachContext, read: Read): ModelParent[] {
  const parents = (read.get(context.candidates, key) ?? []).map((parent) => serving(parent, context, read));
  const byName = new Map<string, ModelParent>();
  for (const [at, ref] of model.spec.parentRefs.entries()) {
    if ((ref.group ?? GATEWAY_GROUP) !== GATEWAY_GROUP || ref.kind !== "HTTPRoute") continue;
    const parent = attachToRoute(ref, at, model.metadata.namespace ?? "", { context, read });
    if (parent !== undefined) byName.set(nameKey(parent.ref), merge(byName.get(nameKey(parent.ref)), parent));
  }
  return [...parents, ...byName.values()];
}

/** Leaves out the listeners that a route serves whole. */
function serving({ gateways, listeners, ...parent }: ParentView, context: ModelAttachContext, read: Read): ModelParent {
  const free = listeners.filter(({ key }) => read.size(context.rootRoutes, key) === 0);
  const backends = free.map(({ key }) => modelsKey(key));
  if (free.length > 0 || listeners.length === 0)
    return { ...parent, backends, gateways: free.length > 0 ? gateways : [] };
  const message = listeners
    .map(
      ({ key, name }) => `listener ${name} gives every path to HTTPRoute ${read.members(context.rootRoutes, key)[0]}`,
    )
    .join("; ");
  return { ...parent, backends, gateways: [], error: { reason: Reason.NoMatchingParent, message } };
}

/** @returns undefined for a route of other controllers */
function attachToRoute(
  ref: ModelParentRef,
  at: number,
  own: string,
  { context, read }: { readonly context: ModelAttachContext; readonly read: Read },
): ModelParent | undefined {
  const namespace = ref.namespace ?? own;
  const parent = { at, ref: { group: GATEWAY_GROUP, kind: "HTTPRoute", namespace, name: ref.name } };
  const refuse = (message: string): ModelParent => ({
    ...parent,
    gateways: [],
    backends: [],
    error: { reason: Reason.NoMatchingParent, message },
  });
  if (namespace !== own) return refuse("an HTTPRoute offers models of its own namespace only");
  const key = nameKey({ namespace, name: ref.name });
  const route = read.get(context.httpRoutes, key);
  if (route === undefined) return refuse(`HTTPRoute ${key} not found`);
  const attached = read.get(context.attachments, key) ?? [];
  if (attached.length === 0) return undefined;
  const rule = findRule(route, ref.sectionName);
  if (typeof rule === "string") return refuse(`HTTPRoute ${key} ${rule}`);
  const reason =
    findModelRuleError(rule.rule, namespace) ?? findModelConflict(rule.rule, attached, context.directModels, read);
  if (reason !== undefined) return refuse(`HTTPRoute ${key}: ${reason}`);
  return {
    ...parent,
    gateways: [...new Set(attached.flatMap((each) => (each.error === undefined ? each.gateways : [])))].sort(),
    backends: [modelsKeyOfRule(namespace, ref.name, rule.at)],
    error: undefined,
  };
}

/** @returns the rule that offers models, or what is wrong */
function findRule(
  { spec: { rules = [] } }: HTTPRoute,
  section: string | undefined,
): { readonly rule: HTTPRouteRule; readonly at: number } | string {
  const at = section === undefined ? (rules.length === 1 ? 0 : -1) : rules.findIndex(({ name }) => name === section);
  const rule = rules[at];
  if (rule === undefined)
    return section === undefined ? "does not have exactly one rule; name one as sectionName" : `has no rule ${section}`;
  return isModelRule(rule) ? { rule, at } : "has no GwModel as the backend of the rule";
}

function merge(first: ModelParent | undefined, second: ModelParent): ModelParent {
  if (first === undefined) return second;
  return {
    ...first,
    gateways: [...new Set([...first.gateways, ...second.gateways])].sort(),
    backends: [...new Set([...first.backends, ...second.backends])],
    error: first.error === undefined || second.error === undefined ? undefined : first.error,
  };
}
