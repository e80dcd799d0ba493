/**
 * Explains the chain of a rule for operators (`/explain` of the admin server): which policies run, in which order,
 * where each comes from, and which lost to whom. It asks the same merge as compose.ts, about the policies as compiled,
 * so that one that fails closed is shown as it acts.
 */
import { REQUEST_ORDER, type PolicyName } from "../policies/index.ts";
import type { CompiledPolicy, CompiledUnit } from "../policies/policy-set.ts";
import type { InlineFilters } from "./compose.ts";
import { selectUnits, type LossReason, type Selection, type Slot } from "./select-units.ts";

type Level = "gateway" | "port" | "listener" | "backend" | "section" | "behind" | "route" | "rule" | "filters" | "own";

/**
 * The policies of one level. "section" are those of a provider or target of a backend, "behind" those of the Service or
 * InferencePool that a provider leads to, "filters" the own filters and fields of a route that delegates, "own" the
 * settings of an object itself.
 */
export interface ExplainedLevel {
  readonly level: Level;
  /** The route of a chain of delegation, such as "HTTPRoute infra/parent"; unset for the explained route. */
  readonly route?: string;
  readonly policies: readonly CompiledPolicy[];
}

export interface PolicySource {
  readonly level: Level;
  /** The route that the policy is inherited from; unset for the explained route and for levels above all routes. */
  readonly route?: string;
  /** Object and field: "GwPolicy default/p spec.traffic.cors"; for the route's own filters its key. */
  readonly origin: string;
}

export interface LostPolicy extends PolicySource {
  readonly to: PolicySource;
  readonly reason: LossReason;
}

export interface ExplainedPolicy {
  readonly policy: PolicyName;
  /** Which headers a modifier of headers edits. */
  readonly part?: "request" | "response";
  /** True when it runs before a route is chosen. */
  readonly preRouting: boolean;
  /** Where it comes from; several for authorization, whose rules are collected. */
  readonly from: readonly PolicySource[];
  readonly lost: readonly LostPolicy[];
}

interface SlotState {
  from: readonly PolicySource[];
  readonly lost: LostPolicy[];
}

/**
 * Returns the policies of a rule in the order in which they run.
 * @param levels from the least specific to the most specific
 * @param inline what the rule itself sets; undefined where no rule is involved
 */
export function explainPolicies(levels: readonly ExplainedLevel[], inline?: InlineFilters): ExplainedPolicy[] {
  return [...explainPhase(levels, true, undefined), ...explainPhase(levels, false, inline)];
}

function explainPhase(
  levels: readonly ExplainedLevel[],
  preRouting: boolean,
  inline: InlineFilters | undefined,
): ExplainedPolicy[] {
  const sourceOf = sourcesOf(levels);
  const slots = new Map<Slot, SlotState>();
  const stateOf = (slot: Slot): SlotState => {
    let state = slots.get(slot);
    if (state === undefined) slots.set(slot, (state = { from: [], lost: [] }));
    return state;
  };
  const all = levels.map(({ policies }) => policies);
  const selection = selectUnits(all, preRouting, ({ slot, unit, winner, reason }) =>
    stateOf(slot).lost.push({ ...sourceOf(unit), to: sourceOf(winner), reason }),
  );
  for (const [slot, unit] of selection.units) stateOf(slot).from = [sourceOf(unit)];
  if (selection.authorization.length > 0) stateOf("authorization").from = selection.authorization.map(sourceOf);
  if (inline !== undefined) addInline(inline, selection, { stateOf, sourceOf });
  return REQUEST_ORDER.flatMap((policy) => explainStep(policy, preRouting, slots, selection));
}

type SourceOf = (unit: CompiledUnit) => PolicySource;

function sourcesOf(levels: readonly ExplainedLevel[]): SourceOf {
  const sources = new Map<CompiledUnit, PolicySource>();
  for (const { policies, ...level } of levels)
    for (const { units } of policies)
      for (const unit of units) sources.set(unit, { ...level, origin: unit.compiled.origin ?? unit.owner });
  return (unit) => sources.get(unit) ?? { level: "rule", origin: unit.owner };
}

/** Adds the route's own fields, which win over every attached policy that did not lock the slot. */
function addInline(
  inline: InlineFilters,
  { locked }: Selection,
  { stateOf, sourceOf }: { readonly stateOf: (slot: Slot) => SlotState; readonly sourceOf: SourceOf },
): void {
  const own: PolicySource = { level: "filters", origin: inline.owner };
  for (const slot of inlineSlots(inline)) {
    const state = stateOf(slot);
    const lock = locked.get(slot);
    if (lock === undefined) {
      for (const before of state.from) state.lost.push({ ...before, to: own, reason: "moreSpecific" });
      state.from = [own];
    } else state.lost.push({ ...own, to: sourceOf(lock), reason: "override" });
  }
}

function inlineSlots({ cors, requestTimeoutMs, retry, requestHeaders, responseHeaders }: InlineFilters): Slot[] {
  const set: readonly (readonly [Slot, unknown])[] = [
    ["cors", cors],
    ["timeouts", requestTimeoutMs],
    ["retry", retry],
    ["request-headers", requestHeaders],
    ["response-headers", responseHeaders],
  ];
  return set.flatMap(([slot, value]) => (value === undefined ? [] : [slot]));
}

/** Returns the entries of one position of the order; none where nothing fills it. */
function explainStep(
  policy: PolicyName,
  preRouting: boolean,
  slots: ReadonlyMap<Slot, SlotState>,
  selection: Selection,
): ExplainedPolicy[] {
  if (policy === "headerModifiers")
    return (["request", "response"] as const).flatMap((part) => {
      const state = slots.get(`${part}-headers`);
      return state === undefined ? [] : [{ policy, part, preRouting, ...state }];
    });
  const state = slots.get(policy === "responseBuffer" ? "buffer" : policy);
  if (state === undefined || !buffers(policy, selection)) return [];
  return [{ policy, preRouting, ...state }];
}

/** One unit configures the buffers of both directions, which run at two positions. */
function buffers(policy: PolicyName, { units }: Selection): boolean {
  const unit = units.get("buffer")?.unit;
  if (unit?.case !== "buffer") return true;
  if (policy === "buffer") return unit.value.request !== undefined;
  if (policy === "responseBuffer") return unit.value.response !== undefined;
  return true;
}
