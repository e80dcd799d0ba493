/**
 * Explains for operators (`/explain` of the admin server) which policy supplies each setting, where settings of several
 * levels are merged one by one: the most specific level wins, within a level the oldest policy, and rules of
 * authorization are collected. `backends/settings.ts` merges those of backends in the same way, and
 * `listeners/frontends.ts` those of connections.
 */
import { compare } from "../../lib/compare.ts";
import { printPolicy } from "../policies/policy-name.ts";
import type { CompiledPolicy } from "../policies/policy-set.ts";
import type { ExplainedLevel, LostPolicy, PolicySource } from "./explain.ts";

export interface ExplainedSetting {
  /** Name of the field, such as "tls" or "ai.promptGuard". */
  readonly policy: string;
  /** Where it comes from; several for authorization, whose rules are collected. */
  readonly from: readonly PolicySource[];
  readonly lost: readonly LostPolicy[];
}

export interface SettingsKind {
  /** Field of a GwPolicy that holds the settings. */
  readonly field: string;
  /** Settings of which all policies count. */
  readonly collected: ReadonlySet<string>;
  /** Returns the names of the settings that a policy has. */
  readonly namesOf: (policy: CompiledPolicy) => readonly string[];
}

interface SettingState {
  from: PolicySource[];
  readonly lost: LostPolicy[];
}

/** Settings that are no policy: those of the object itself, or of a part of it. */
export interface OwnSettings {
  /** Object and field that hold them, such as "GwBackend default/b spec.policies". */
  readonly origin: string;
  readonly names: readonly string[];
}

/**
 * Returns the settings by name.
 * @param levels from the least specific to the most specific, each oldest first
 */
export function explainSettings(
  levels: readonly (ExplainedLevel | OwnSettings)[],
  { field, collected, namesOf }: SettingsKind,
): ExplainedSetting[] {
  const states = new Map<string, SettingState>();
  const claim = (name: string, source: PolicySource, filled: Map<string, PolicySource>): void => {
    let state = states.get(name);
    if (state === undefined) states.set(name, (state = { from: [], lost: [] }));
    const older = filled.get(name);
    if (collected.has(name)) state.from.push(source);
    else if (older !== undefined) state.lost.push({ ...source, to: older, reason: "older" });
    else {
      for (const general of state.from) state.lost.push({ ...general, to: source, reason: "moreSpecific" });
      state.from = [source];
      filled.set(name, source);
    }
  };
  for (const each of levels) {
    const filled = new Map<string, PolicySource>();
    if ("names" in each) {
      for (const name of each.names) claim(name, { level: "own", origin: `${each.origin}.${name}` }, filled);
      continue;
    }
    const { policies, ...level } = each;
    for (const policy of policies)
      for (const name of namesOf(policy))
        claim(name, { ...level, origin: printPolicy(policy.key, `${field}.${name}`) }, filled);
  }
  return [...states]
    .map(([policy, state]) => ({ policy, ...state }))
    .sort((one, other) => compare(one.policy, other.policy));
}
