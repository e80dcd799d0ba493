/**
 * Finds settings of a GwPolicy that have no effect on an InferencePool that it targets: the endpoint picker decides what
 * they are about, or they need a provider in front of the pool, or none. `../graph.ts` reports them in the status of the
 * policy, so that nothing is left out silently.
 */
import type { ObjectId } from "../../api/object.ts";
import type { Collection, Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { inferencePoolKey } from "../../ir/keys.ts";
import type { TranslatedBackend } from "../backends/translate.ts";
import type { TranslatedModel } from "../models/translate.ts";
import type { Diagnostic } from "../shared/diagnostics.ts";
import type { PoolView } from "../shared/views.ts";
import type { PolicyContent } from "./content.ts";
import type { TargetResolution } from "./target.ts";

/** Objects whose providers lead to a Backend, by its key. */
export interface ProvidersByBackend {
  readonly backends: ReadableIndex<TranslatedBackend>;
  readonly models: ReadableIndex<TranslatedModel>;
}

export function indexProviders(
  backends: Collection<TranslatedBackend>,
  models: Collection<TranslatedModel>,
): ProvidersByBackend {
  return {
    backends: backends.index(({ resource }) => (resource?.type === "Backend" ? behindBackend(resource.message) : [])),
    models: models.index(({ message }) => (message?.kind.case === "provider" ? keyOf(message.kind.value.backend) : [])),
  };
}

type BackendMessage = Extract<NonNullable<TranslatedBackend["resource"]>, { type: "Backend" }>["message"];

function behindBackend({ kind }: BackendMessage): string[] {
  if (kind.case !== "ai") return [];
  return [...new Set(kind.value.groups.flatMap(({ providers }) => providers.flatMap(({ backend }) => keyOf(backend))))];
}

function keyOf(backend: string): string[] {
  return backend === "" ? [] : [backend];
}

/** A pool that a policy targets. */
interface TargetedPool {
  readonly pool: Pick<PoolView, "id" | "failOpen">;
  /** "GwBackend namespace/name" of the objects with a provider in front of it, sorted. */
  readonly fronts: readonly string[];
}

interface Rule {
  readonly path: string;
  readonly isSet: (content: PolicyContent) => boolean;
  /** Returns why the setting has no effect; undefined when it has one. */
  readonly why: (pool: TargetedPool) => string | undefined;
}

const RULES: readonly Rule[] = [
  {
    path: "spec.backend.mcp",
    isSet: ({ backend }) => backend?.mcp !== undefined,
    why: () => "a pool serves models and no tools",
  },
  {
    path: "spec.backend.ai",
    isSet: ({ backend }) => backend?.ai !== undefined,
    why: ({ fronts }) =>
      fronts.length > 0
        ? undefined
        : "no provider leads to it; name the pool in custom.backendRef of a GwBackend or GwModel",
  },
  {
    path: "spec.backend.health",
    isSet: ({ backend }) => backend?.health !== undefined,
    why: ({ pool, fronts }) =>
      pool.failOpen || fronts.length > 0
        ? undefined
        : "its endpoint picker chooses among all endpoints, ejected or not",
  },
  {
    path: "spec.backend.sessionAffinity",
    isSet: ({ backend }) => backend?.sessionAffinity !== undefined,
    why: ({ pool }) => (pool.failOpen ? undefined : "its endpoint picker chooses the endpoint of every request"),
  },
  {
    path: "spec.traffic.retry",
    isSet: ({ units }) => units.some(({ unit }) => unit.case === "retry"),
    why: ({ fronts }) =>
      fronts.length === 0 ? undefined : `it is called by the provider of ${fronts.join(", ")}; set retry on the route`,
  },
];

interface FindContext {
  readonly pools: Readable<PoolView>;
  readonly providers: ProvidersByBackend;
  readonly read: Read;
}

/** @returns a warning for each setting that has no effect on a pool among the targets */
export function findUnusedOnPools(
  object: ObjectId,
  content: PolicyContent | undefined,
  targets: TargetResolution["targets"],
  { pools, providers, read }: FindContext,
): Diagnostic[] {
  const rules = content === undefined ? [] : RULES.filter(({ isSet }) => isSet(content));
  if (rules.length === 0) return [];
  const prefix = inferencePoolKey("", "").slice(0, -1);
  return targets.flatMap(({ target }): Diagnostic[] => {
    if (target.case !== "backend" || !target.value.startsWith(prefix)) return [];
    const pool = read.get(pools, target.value.slice(prefix.length));
    if (pool === undefined) return [];
    const leading = [...read.byIndex(providers.backends, pool.key), ...read.byIndex(providers.models, pool.key)];
    const fronts = leading.map(({ value: { id } }) => `${id.kind} ${id.namespace}/${id.name}`).sort();
    return rules.flatMap(({ path, why }) => {
      const reason = why({ pool, fronts });
      if (reason === undefined) return [];
      const message = `has no effect on InferencePool ${pool.id.namespace}/${pool.id.name}: ${reason}`;
      return [{ code: "policy_invalid", severity: "warning", object, path, message }];
    });
  });
}
