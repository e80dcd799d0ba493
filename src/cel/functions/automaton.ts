/**
 * A lazy DFA (as in RE2) that decides whether a pattern occurs in a text or covers all of it, and that charges its work
 * to the budget of the expression. The regular expressions of CEL and the path matches of routes run on it.
 *
 * The matchers of re2js are linear in the text as well, but there the cost of one character grows with the pattern, and
 * a running match cannot be stopped when the budget is spent. Here the compiled program of re2js, a Thompson NFA, is
 * determinized while it runs (subset construction). A state is a set of NFA instructions together with the kind of
 * character before it, which the zero-width assertions `^`, `\b` and `$` need. A transition that is already in the
 * table costs one array read; a new one costs a closure over the instructions and is charged for.
 *
 * char ──> ASCII: #table[state * width + class] ──┬── known ──> next state, MATCHED or DEAD
 *     └──> other: state.wide.get(char) ───────────┴── UNKNOWN ──> #step: #closure, #advance, #number
 *
 * The number of DFA states can be exponential in the pattern, so at most MAX_STATES are kept; then the tables are
 * cleared and filled again. A warm automaton makes an evaluation cheaper and never more expensive.
 */
import type { RE2JS } from "re2js";

import type { Run } from "../budget.ts";
import { COST_LIMIT, type Failure } from "../errors.ts";
import {
  ALT,
  ALT_MATCH,
  ANYWHERE,
  assertions,
  beforeOf,
  CAPTURE,
  consumes,
  EMPTY_WIDTH,
  END,
  FOLD_CASE,
  MATCH,
  NEWLINE,
  NOP,
  programOf,
  RUNE,
  type Before,
  type Instruction,
} from "./instructions.ts";

const ASCII = 128;
/**
 * Limits of the cached states and of the cached transitions beyond ASCII, per pattern; a full state table is cleared.
 */
const MAX_STATES = 500;
const MAX_WIDE_STEPS = 2_000;
/**
 * Budget: the test charges once per BLOCK characters; the other two are the characters and the instructions per step.
 */
const BLOCK = 512;
const CHARACTERS_PER_STEP = 64;
const INSTRUCTIONS_PER_STEP = 2;

interface State {
  readonly instructions: readonly number[];
  readonly before: Before;
  /** True when no match that began earlier can still end: every match begins at the current position or later. */
  readonly idle: boolean;
  /** Transitions on characters beyond ASCII. */
  readonly wide: Map<number, number>;
}

/**
 * States are numbers of rows in the table. The first three are reserved: not computed yet, matched, and dead (a match
 * is no longer possible).
 */
const UNKNOWN = 0;
const MATCHED = 1;
const DEAD = 2;
const FIRST_STATE = 3;
/** The position of a match that does not exist. */
export const NOWHERE = -1;

export class Automaton {
  readonly #program: readonly Instruction[];
  readonly #start: number;
  /**
   * Whether a match may begin after the first character, so that every state also contains the start of the pattern.
   */
  readonly #restarts: boolean;
  readonly #coversText: boolean;
  /** Maps each ASCII character to its class; characters that no instruction distinguishes share one. */
  readonly #classes: Uint8Array;
  readonly #width: number;
  readonly #visited: Uint32Array;
  #visit = 0;
  /** Number of instructions that the last closure visited, which is the cost of the step. */
  #work = 0;
  readonly #numbers = new Map<string, number>();
  #states: State[] = [];
  /** Transition table: the next state by state and class. */
  #table: Int32Array = new Int32Array(0);
  #wideSteps = 0;

  /**
   * @param coversText whether a match must begin and end with the text, as in routes; otherwise it may occur anywhere
   */
  constructor(pattern: RE2JS, coversText = false) {
    const { inst, start } = programOf(pattern);
    this.#program = inst;
    this.#start = start;
    this.#classes = classesOf(inst);
    this.#width = (this.#classes[ASCII - 1] as number) + 1;
    this.#visited = new Uint32Array(inst.length);
    this.#coversText = coversText;
    this.#restarts =
      !coversText && this.#closure([start], ANYWHERE).some((pc) => this.#op(pc) === MATCH || this.#op(pc) >= RUNE);
  }

  test(run: Run, text: string): boolean | Failure {
    const found = this.locate(run, text, 0);
    return typeof found === "number" ? found !== NOWHERE : found;
  }

  /**
   * Runs the automaton over the text, one UTF-16 unit per step for ASCII and one code point otherwise. The budget is
   * charged per block, so the loop itself stays a table lookup.
   * @returns NOWHERE, or a position near the first match at or before which no match begins
   */
  locate(run: Run, text: string, from: number): number | Failure {
    const classes = this.#classes;
    const width = this.#width;
    let state = this.#number([this.#start], from === 0 ? "start" : beforeOf(text.charCodeAt(from - 1)), true);
    let table = this.#table;
    let idleAt = from;
    for (let at = from; at < text.length;) {
      const end = Math.min(text.length, at + BLOCK);
      if (run.spend(1 + (end - at) / CHARACTERS_PER_STEP)) return COST_LIMIT;
      if (this.#states[state]?.idle === true) idleAt = at;
      for (; at < end; at++) {
        let rune = text.charCodeAt(at);
        let next: number;
        if (rune < ASCII) next = table[state * width + (classes[rune] as number)] as number;
        else {
          rune = text.codePointAt(at) as number;
          if (rune > 0xffff) at++;
          next = this.#states[state]?.wide.get(rune) ?? UNKNOWN;
        }
        if (next === UNKNOWN) {
          next = this.#step(run, state, rune);
          table = this.#table;
        }
        if (next === MATCHED) return idleAt;
        if (next === DEAD) return run.steps < 0 ? COST_LIMIT : NOWHERE;
        state = next;
      }
    }
    const last = this.#step(run, state, END);
    return run.steps < 0 ? COST_LIMIT : last === MATCHED ? idleAt : NOWHERE;
  }

  #op(pc: number): number {
    return (this.#program[pc] as Instruction).op;
  }

  /** Computes the state after one more character; DEAD when the budget is spent. */
  #step(run: Run, number: number, rune: number): number {
    const state = this.#states[number] as State;
    const reached = this.#closure(state.instructions, assertions(state.before, rune));
    if (run.spend(1 + this.#work / INSTRUCTIONS_PER_STEP)) return DEAD;
    const next = this.#advance(reached, rune);
    // #number may have cleared a full table on the way; the row of the previous state is then gone.
    if (rune === END || this.#states[number] !== state) return next;
    if (rune < ASCII) this.#table[number * this.#width + (this.#classes[rune] as number)] = next;
    else if (this.#wideSteps++ < MAX_WIDE_STEPS) state.wide.set(rune, next);
    return next;
  }

  /**
   * Moves every instruction of the set over one character, and adds the start again when a match may begin later. MATCH
   * in the set ends the search, unless the match has to cover the whole text.
   */
  #advance(reached: readonly number[], rune: number): number {
    const following = new Set<number>();
    for (const pc of reached) {
      const instruction = this.#program[pc] as Instruction;
      if (instruction.op === MATCH) {
        if (rune === END || !this.#coversText) return MATCHED;
        continue;
      }
      if (rune !== END && consumes(instruction, rune)) following.add(instruction.out);
    }
    const idle = following.size === 0;
    if (this.#restarts) following.add(this.#start);
    if (following.size === 0) return DEAD;
    return this.#number(
      [...following].sort((a, b) => a - b),
      beforeOf(rune),
      idle,
    );
  }

  /**
   * Returns the number of the state with these instructions, and adds it when it is new. A full table is cleared first.
   */
  #number(instructions: readonly number[], before: Before, idle: boolean): number {
    const key = `${before} ${idle ? "idle " : ""}${instructions.join(" ")}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    if (this.#numbers.size >= MAX_STATES) this.#clear();
    const number = this.#numbers.size + FIRST_STATE;
    this.#numbers.set(key, number);
    this.#states[number] = { instructions, before, idle, wide: new Map() };
    const needed = (number + 1) * this.#width;
    if (needed > this.#table.length) {
      const larger = new Int32Array(needed * 2);
      larger.set(this.#table);
      this.#table = larger;
    }
    return number;
  }

  #clear(): void {
    this.#numbers.clear();
    this.#states = [];
    this.#table = new Int32Array(0);
    this.#wideSteps = 0;
  }

  /** Epsilon closure: the instructions reachable without consuming a character, under the assertions that hold here. */
  #closure(from: readonly number[], holds: number): number[] {
    const visit = ++this.#visit;
    const reached: number[] = [];
    const open = [...from];
    this.#work = 0;
    for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
      if (this.#visited[pc] === visit) continue;
      this.#visited[pc] = visit;
      this.#work++;
      const { op, out, arg } = this.#program[pc] as Instruction;
      if (op === ALT || op === ALT_MATCH) open.push(out, arg);
      else if (op === NOP || op === CAPTURE || (op === EMPTY_WIDTH && (arg & ~holds) === 0)) open.push(out);
      else if (op === MATCH || op >= RUNE) reached.push(pc);
    }
    return reached;
  }
}

/**
 * Splits ASCII into classes at the bounds of the ranges that instructions name, and of word characters and newlines.
 */
function classesOf(program: readonly Instruction[]): Uint8Array {
  const firsts = new Set([NEWLINE, NEWLINE + 1, 0x30, 0x3a, 0x41, 0x5b, 0x5f, 0x60, 0x61, 0x7b]);
  for (const { op, arg, runes } of program) {
    if (op < RUNE) continue;
    const single = runes.length === 1;
    for (let at = 0; at < runes.length; at += single ? 1 : 2) {
      const low = runes[at] as number;
      firsts.add(low).add((single ? low : (runes[at + 1] as number)) + 1);
    }
    if (single && (arg & FOLD_CASE) !== 0) addCases(firsts, String.fromCodePoint(runes[0] as number));
  }
  const classes = new Uint8Array(ASCII);
  for (let rune = 1; rune < ASCII; rune++) {
    classes[rune] = (classes[rune - 1] as number) + (firsts.has(rune) ? 1 : 0);
  }
  return classes;
}

/**
 * Adds both cases of a case-insensitive literal. Only U+212A (Kelvin sign) and U+017F (long s) fold into ASCII from
 * beyond it.
 */
function addCases(firsts: Set<number>, char: string): void {
  const folded = char === "\u212a" ? "k" : char === "\u017f" ? "s" : char;
  for (const other of [folded.toLowerCase(), folded.toUpperCase()]) {
    const rune = other.codePointAt(0) as number;
    firsts.add(rune).add(rune + 1);
  }
}
