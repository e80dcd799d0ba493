/**
 * Declares the collections of GwModels: where models attach, their resources, the routes that lead to them, and status
 * input. `../graph.ts` uses it.
 *
 *     GwModels ──▶ candidates on listeners ─────────┬──▶ attachments ──▶ Models, routes of listeners
 *     HTTPRoutes ─▶ rules that take every path ─┘
 */
import { create } from "@bufbuild/protobuf";
import type { HTTPRoute } from "../../../generated/types/gateway-api/httproute.ts";
import type { GwModel } from "../../../generated/types/model.ts";
import { ModelSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectId } from "../../api/object.ts";
import { resourceOf } from "../../ir/encode.ts";
import { modelsKey } from "../../ir/keys.ts";
import type { Resource } from "../../ir/resource.ts";
import type { Collection } from "../../lib/collections/collection.ts";
import type { Graph, Input } from "../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../lib/collections/groups.ts";
import type { BackendCollections } from "../references/backend-refs.ts";
import { irRef } from "../references/refs.ts";
import type { SecretCollections } from "../references/secrets.ts";
import { gatewaysByUse } from "../references/visibility.ts";
import type { ScopedResource } from "../shared/resource-store.ts";
import { attachRoute, type AttachContext } from "../routes/attach.ts";
import { groupByListener } from "../routes/hostname-conflicts.ts";
import { declareScopedResources, scopeTo } from "../shared/scoped-resources.ts";
import type { StatusInput } from "../shared/status-input.ts";
import type { GatewayView, ModelParent, ParentView } from "../shared/views.ts";
import { attachModel } from "./attach.ts";
import { modelsBackend, routeToModels } from "./hidden-route.ts";
import { findModelRuleError, isModelRule, matchesRoot, modelsKeyOfRule } from "../routes/model-rule.ts";
import { translateModel, type TranslatedModel } from "./translate.ts";
import { nameOfModel, type ModelName } from "./virtual.ts";

export interface ModelCandidates {
  /** Listeners that each model would attach to if no route had taken them. */
  readonly parents: Collection<readonly ParentView[]>;
  readonly byListener: ReadableGroups;
}

/** Declares which models ask for which listeners. It comes before routes, whose rules may conflict with them. */
export function declareModelCandidates(graph: Graph, models: Input<GwModel>, attach: AttachContext): ModelCandidates {
  const parents = graph.derive("model candidates", models, (_key, { metadata, spec }, read): readonly ParentView[] =>
    attachRoute({ metadata, spec: { parentRefs: spec.parentRefs } }, "GwModel", attach, read),
  );
  return { parents, byListener: groupByListener(parents) };
}

export interface ModelOptions {
  readonly models: Input<GwModel>;
  readonly candidates: ModelCandidates;
  readonly gateways: Collection<GatewayView>;
  readonly httpRoutes: Input<HTTPRoute>;
  /** Where each HTTPRoute is attached. */
  readonly attachments: Collection<readonly ParentView[]>;
  readonly references: SecretCollections & BackendCollections;
}

export interface Models {
  /** Gateways from which models lead to a backend, by backend. */
  readonly gatewaysByBackend: ReadableGroups;
  readonly translated: Collection<TranslatedModel>;
  readonly scopedResources: readonly Collection<readonly ScopedResource[]>[];
  readonly statusInputs: Collection<StatusInput>;
}

export function declareModels(graph: Graph, options: ModelOptions): Models {
  const { models, candidates, gateways, httpRoutes, attachments, references } = options;
  const rootRoutes = graph.derive(
    "routes of every path to models",
    httpRoutes,
    (key, { spec: { rules = [] } }, read): readonly ParentView[] | undefined =>
      rules.some((rule) => isModelRule(rule) && matchesRoot(rule)) ? read.get(attachments, key) : undefined,
  );
  const attachContext = {
    candidates: candidates.parents,
    httpRoutes,
    attachments,
    rootRoutes: groupByListener(rootRoutes),
    directModels: candidates.byListener,
  };
  const parents = graph.derive("model attachments", models, (key, model, read): readonly ModelParent[] =>
    attachModel(key, model, attachContext, read),
  );
  const names = graph.derive("model names", models, (_key, model): ModelName => nameOfModel(model));
  const translated = graph.derive("models", models, (_key, model, read) =>
    translateModel(model, { ...references, models: names }, read),
  );
  const visibility = graph.derive("model visibility", translated, (key, { uses }, read): ModelVisibility => {
    const attached = read.get(parents, key) ?? [];
    return {
      uses,
      gateways: unique(attached.flatMap((parent) => parent.gateways)),
      backends: unique(attached.flatMap((parent) => parent.backends)),
    };
  });
  const byBackend = visibility.groups(({ backends }, member) => backends.map((group) => ({ group, member })));
  const scopedResources = [
    declareScopedResources(graph, "scoped models", translated, (key, { message }, read) => {
      const { gateways: to, backends = [] } = read.get(visibility, key) ?? {};
      if (message === undefined) return [];
      return scopeTo(to, [resourceOf("Model", create(ModelSchema, { ...message, backends: [...backends] }))]);
    }),
    declareScopedResources(graph, "scoped routes to models", gateways, (key, { id, listeners, sets }, read) =>
      [...listeners, ...sets.flatMap((set) => set.listeners)]
        .filter((listener) => read.size(byBackend, modelsKey(listener.key)) > 0)
        .flatMap((listener) => scopeTo([key], routeToModels(id, listener.key))),
    ),
    declareScopedResources(graph, "scoped rules to models", httpRoutes, (key, route, read) => {
      const to = unique(
        (read.get(attachments, key) ?? []).flatMap((each) => (each.error === undefined ? each.gateways : [])),
      );
      return scopeTo(to, backendsOfRules(route));
    }),
  ];
  const statusInputs = graph.derive(
    "model status inputs",
    translated,
    (name, { id, generation, key, diagnostics }, read): StatusInput => ({
      kind: "GwModel",
      id,
      generation,
      key,
      parents: read.get(parents, name) ?? [],
      diagnostics,
    }),
  );
  return {
    gatewaysByBackend: visibility.groups(({ uses, gateways: to }) => gatewaysByUse(uses, to)),
    translated,
    scopedResources,
    statusInputs,
  };
}

interface ModelVisibility {
  readonly uses: readonly string[];
  readonly gateways: readonly string[];
  readonly backends: readonly string[];
}

/** Returns the Backends of the rules of a route that serve models. */
function backendsOfRules(route: HTTPRoute): Resource[] {
  const { namespace, name } = objectId(route);
  return (route.spec.rules ?? []).flatMap((rule, at) =>
    isModelRule(rule) && findModelRuleError(rule, namespace) === undefined
      ? [modelsBackend(modelsKeyOfRule(namespace, name, at), irRef(objectId(route)), true)]
      : [],
  );
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}
