/**
 * Merges the policies of all levels: decides which unit fills each slot of a chain. compose.ts builds chains of the
 * result, and explain.ts tells operators about it.
 *
 * Merging follows GEP-713, unit by unit:
 * - The most specific level wins. Within a level the oldest policy wins.
 * - A policy with `override` locks its units against all more specific levels, the filters of the route included.
 * - Authorization rules of all levels are collected into one unit.
 * - Header edits of requests and of responses are separate slots, so two policies may each supply one direction.
 */
import type { PolicyName } from "../policies/index.ts";
import { knownUnit, type CompiledPolicy, type CompiledUnit } from "../policies/policy-set.ts";

export type Slot = PolicyName | "request-headers" | "response-headers";

/** Why a unit is not in force: the winner is older on the same level, more specific, or has `override`. */
export type LossReason = "older" | "moreSpecific" | "override";

interface Loss {
  readonly slot: Slot;
  readonly unit: CompiledUnit;
  readonly winner: CompiledUnit;
  readonly reason: LossReason;
}

export interface Selection {
  readonly preRouting: boolean;
  readonly units: Map<Slot, CompiledUnit>;
  /** The unit whose policy has `override`, by slot. */
  readonly locked: Map<Slot, CompiledUnit>;
  readonly authorization: CompiledUnit[];
}

/**
 * @param levels from the least specific to the most specific, each sorted oldest first
 * @param onLoss told about each unit that another one keeps out of a slot
 */
export function selectUnits(
  levels: readonly (readonly CompiledPolicy[])[],
  preRouting: boolean,
  onLoss?: (loss: Loss) => void,
): Selection {
  const selection: Selection = { preRouting, units: new Map(), locked: new Map(), authorization: [] };
  for (const level of levels)
    selectLevel(
      level.filter((policy) => policy.preRouting === preRouting),
      selection,
      onLoss,
    );
  return selection;
}

function selectLevel(
  level: readonly CompiledPolicy[],
  selection: Selection,
  onLoss: ((loss: Loss) => void) | undefined,
): void {
  const filled = new Map<Slot, CompiledUnit>();
  const locks = new Map<Slot, CompiledUnit>();
  for (const { slot, unit, override } of claimsOf(level)) {
    const lock = selection.locked.get(slot);
    const older = filled.get(slot);
    if (lock !== undefined) onLoss?.({ slot, unit, winner: lock, reason: "override" });
    else if (older !== undefined) onLoss?.({ slot, unit, winner: older, reason: "older" });
    else {
      fill(slot, unit, selection, onLoss);
      if (slot !== "authorization") filled.set(slot, unit);
      if (override && !locks.has(slot)) locks.set(slot, unit);
    }
  }
  for (const [slot, unit] of locks) selection.locked.set(slot, unit);
}

/** A slot that a unit of a policy asks for. */
interface Claim {
  readonly slot: Slot;
  readonly unit: CompiledUnit;
  readonly override: boolean;
}

function claimsOf(level: readonly CompiledPolicy[]): Claim[] {
  return level.flatMap(({ units, override }) =>
    units.flatMap((unit) => slotsOf(unit).map((slot) => ({ slot, unit, override }))),
  );
}

function fill(
  slot: Slot,
  unit: CompiledUnit,
  { units, authorization }: Selection,
  onLoss: ((loss: Loss) => void) | undefined,
): void {
  if (slot === "authorization") {
    authorization.push(unit);
    return;
  }
  const general = units.get(slot);
  if (general !== undefined) onLoss?.({ slot, unit: general, winner: unit, reason: "moreSpecific" });
  units.set(slot, unit);
}

export function slotsOf({ unit }: CompiledUnit): Slot[] {
  if (unit.case !== "headerModifiers") return [knownUnit(unit).case];
  const slots: Slot[] = [];
  if (unit.value.request !== undefined) slots.push("request-headers");
  if (unit.value.response !== undefined) slots.push("response-headers");
  return slots;
}
