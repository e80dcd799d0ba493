/**
 * Explains for operators (`/explain` of the admin server) the calls to a backend: which policy supplies each setting,
 * what the providers or targets of the backend have of their own, and why calls are refused. `explain-route.ts` asks it
 * for the backends of each rule and for those that get copies of its requests.
 */
import type { Backend, BackendSettings, WeightedBackend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { printObject } from "../backends/auth/place.ts";
import type { ProviderBehind } from "../backends/backend-kind.ts";
import { COLLECTED_SETTINGS, settingNames } from "../backends/settings.ts";
import type { ExplainedLevel, PolicySource } from "../pipeline/explain.ts";
import {
  explainSettings,
  type ExplainedSetting,
  type OwnSettings,
  type SettingsKind,
} from "../pipeline/explain-settings.ts";
import type { CompiledFilters } from "../pipeline/filters.ts";
import { printPolicy } from "../policies/policy-name.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import type { CompiledRule } from "./route.ts";

/** A backend of a rule. */
export interface ExplainedBackend extends ExplainedCalls {
  readonly weight: number;
}

/** A backend that gets copies of requests. */
export interface ExplainedMirror extends ExplainedCalls {
  /** The share of the requests that is copied, from 0 to 1. */
  readonly share: number;
  /** The backend whose requests are copied; unset where those to all backends of the rule are. */
  readonly of?: string;
}

interface ExplainedCalls {
  /** Key of the backend, such as "service/default/db:5432"; "" for a reference that leads to none. */
  readonly backend: string;
  /** Why everything sent to it is refused, where that is so. */
  readonly refuses?: string;
  /** The settings of calls to it by name, and which policies supply them. */
  readonly policies: readonly ExplainedSetting[];
  /** Its providers or targets that have policies of their own. */
  readonly sections?: readonly ExplainedSection[];
}

/** A provider of an LLM backend or a target of an MCP backend. */
interface ExplainedSection {
  /** Its name, the `sectionName` of policies. */
  readonly section: string;
  readonly refuses?: string;
  /** The settings that it, or a policy on it, sets; the others are those of the backend. */
  readonly policies: readonly ExplainedSetting[];
}

export interface BackendPlace {
  readonly policies: PolicySet;
  /** Returns a backend by key. */
  readonly backendOf: (key: string) => Backend | undefined;
}

const BACKEND_SETTINGS: SettingsKind = {
  field: "spec.backend",
  collected: COLLECTED_SETTINGS,
  namesOf: ({ backend }) => settingNames(backend),
};

/** @param levels those above the backend */
export function explainBackend(
  { backend, weight, invalidReason }: Pick<WeightedBackend, "backend" | "weight" | "invalidReason">,
  levels: readonly ExplainedLevel[],
  place: BackendPlace,
): ExplainedBackend {
  if (backend === "" || invalidReason !== "") return { backend, weight, refuses: invalidReason, policies: [] };
  return { backend, weight, ...explainCalls(backend, levels, place) };
}

/**
 * Explains where copies of the requests of a rule go.
 * @param inherited the filters of the rule, or those that it inherits from a rule that delegates to it
 * @param levels those above the backends
 */
export function explainMirrors(
  inherited: Pick<CompiledFilters, "mirrors">,
  { backends }: Pick<CompiledRule, "backends">,
  levels: readonly ExplainedLevel[],
  place: BackendPlace,
): ExplainedMirror[] {
  const explain = ({ mirrors }: Pick<CompiledFilters, "mirrors">, of?: string): ExplainedMirror[] =>
    mirrors.map(({ backend, numerator, denominator }) => {
      const head = { backend, share: numerator / denominator, ...(of === undefined ? {} : { of }) };
      // bind-rule.ts leaves such a mirror out.
      if (place.policies.trafficOf(backend).length > 0) return { ...head, refuses: HAS_TRAFFIC, policies: [] };
      return { ...head, ...explainCalls(backend, levels, place) };
    });
  return [...explain(inherited), ...backends.flatMap(({ message, filters }) => explain(filters, message.backend))];
}

export interface CallsBehind {
  /** Key of the backend that has the provider. */
  readonly key: string;
  readonly provider: ProviderBehind;
  /** Those above the backend that has the provider. */
  readonly levels: readonly ExplainedLevel[];
}

/**
 * Explains the calls that a provider makes to another backend, whose settings win over those of the provider.
 * @returns undefined where no policy targets that backend
 */
export function explainCallsBehind(
  { key, provider: { provider, backend, settings }, levels }: CallsBehind,
  { policies, backendOf }: BackendPlace,
): ExplainedBackend | undefined {
  const attached = policies.at(`backend:${backend}`);
  if (attached.length === 0) return undefined;
  const [message, target] = [backendOf(key), backendOf(backend)];
  const owner =
    message?.kind.case === "ai" ? `${printObject(message)} provider ${provider}` : `GwModel ${provider} spec`;
  const explained = explainSettings(
    [
      ...levels,
      { level: "backend", policies: policies.at(`backend:${key}`) },
      ...(provider === "" ? [] : [{ level: "section", policies: policies.at(`backend:${key}#${provider}`) } as const]),
      ...(message === undefined ? [] : [ownSettings(message)]),
      { origin: `${owner} policies`, names: settingNames(settings) },
      { level: "behind", policies: attached },
      ...(target === undefined ? [] : [ownSettings(target)]),
    ],
    BACKEND_SETTINGS,
  );
  return { backend, weight: 1, ...closedBy(attached), policies: explained };
}

const HAS_TRAFFIC = "traffic policies target it, which need a client to answer";

function explainCalls(
  key: string,
  levels: readonly ExplainedLevel[],
  { policies, backendOf }: BackendPlace,
): Omit<ExplainedCalls, "backend"> {
  const message = backendOf(key);
  if (message === undefined) return { refuses: "it does not exist", policies: [] };
  const attached = policies.at(`backend:${key}`);
  const own = ownSettings(message);
  const all: readonly ExplainedLevel[] = [...levels, { level: "backend", policies: attached }];
  const sections = sectionsOf(message).flatMap((section) =>
    explainSection(section, { message, levels: all, own, attached: policies.at(`backend:${key}#${section.name}`) }),
  );
  return {
    ...closedBy(attached),
    policies: explainSettings([...all, own], BACKEND_SETTINGS),
    ...(sections.length === 0 ? {} : { sections }),
  };
}

function ownSettings(message: Backend): OwnSettings {
  return { origin: `${printObject(message)} spec.policies`, names: settingNames(message.settings) };
}

/** Says which policy refuses everything that it governs, if one does. */
export function closedBy(attached: readonly CompiledPolicy[]): { readonly refuses?: string } {
  const closed = attached.find(({ failsClosed }) => failsClosed);
  return closed === undefined ? {} : { refuses: `${printPolicy(closed.key)} is invalid` };
}

interface Section {
  readonly name: string;
  /** Its own settings, which win over everything else. */
  readonly settings?: BackendSettings | undefined;
}

/** Returns the parts of a backend that a policy can name in `sectionName`. */
function sectionsOf({ kind }: Backend): readonly Section[] {
  if (kind.case === "mcp") return kind.value.targets;
  // A single provider has no name, and its settings are those of the backend.
  if (kind.case === "ai")
    return kind.value.groups.flatMap(({ providers }) => providers).filter(({ name }) => name !== "");
  return [];
}

interface SectionPlace {
  readonly message: Backend;
  /** The policies above the section, those of the backend included. */
  readonly levels: readonly ExplainedLevel[];
  readonly own: OwnSettings;
  /** The policies of the section. */
  readonly attached: readonly CompiledPolicy[];
}

function explainSection(
  { name, settings }: Section,
  { message, levels, own, attached }: SectionPlace,
): ExplainedSection[] {
  const part = message.kind.case === "mcp" ? "target" : "provider";
  const inline = { origin: `${printObject(message)} ${part} ${name} policies`, names: settingNames(settings) };
  const all = [...levels, { level: "section", policies: attached } as const, own, inline];
  const isOfSection = ({ level, origin }: PolicySource): boolean =>
    level === "section" || (level === "own" && origin.startsWith(`${inline.origin}.`));
  const policies = explainSettings(all, BACKEND_SETTINGS).filter(
    ({ from, lost }) => from.some(isOfSection) || lost.some(isOfSection),
  );
  const refused = closedBy(attached);
  return policies.length === 0 && refused.refuses === undefined ? [] : [{ section: name, ...refused, policies }];
}
