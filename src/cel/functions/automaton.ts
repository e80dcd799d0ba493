/**
 * Answers whether a pattern occurs in a text, or covers all of it, counting the work. The library's own engines are linear in the text too,
 * but what a character costs grows with the pattern, and nothing stops them on the way. Here the compiled pattern runs
 * as an automaton whose states are made when they are first needed: a known step is nearly free, a new state is charged
 * for. A warm automaton makes an evaluation cheaper, never dearer.
 */
import type { RE2JS } from "re2js";

import type { Run } from "../budget.ts";
import { COST_LIMIT, type Failure } from "../errors.ts";

/** One instruction, as the library compiles it; the numbers of the operations are those of Go's regexp/syntax. */
interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly runes: Int32Array;
  matchRune(rune: number): boolean;
}

const ALT = 1;
const ALT_MATCH = 2;
const CAPTURE = 3;
const EMPTY_WIDTH = 4;
const MATCH = 6;
const NOP = 7;
const RUNE = 8;
const RUNE_ANY = 10;
const RUNE_ANY_NOT_NEWLINE = 11;

const BEGIN_LINE = 1;
const END_LINE = 2;
const BEGIN_TEXT = 4;
const END_TEXT = 8;
const WORD_BOUNDARY = 16;
const NO_WORD_BOUNDARY = 32;
const FOLD_CASE = 1;

const NEWLINE = 10;
/** Stands for the end of the text among the runes. */
const END = -1;
const ASCII = 128;
/** States and steps that are kept of one pattern; then it starts afresh. */
const MAX_STATES = 500;
const MAX_WIDE_STEPS = 2_000;
/** Characters between two looks at the budget, and characters and instructions that cost one step. */
const BLOCK = 512;
const CHARACTERS_PER_STEP = 64;
const INSTRUCTIONS_PER_STEP = 2;

type Before = "start" | "newline" | "word" | "other";

interface State {
  readonly instructions: readonly number[];
  readonly before: Before;
  /** Steps by characters beyond ASCII. */
  readonly wide: Map<number, number>;
}

/** States are numbers into tables. The first ones mean: not made yet, a match, and that nothing can match any more. */
const UNKNOWN = 0;
const MATCHED = 1;
const DEAD = 2;
const FIRST_STATE = 3;

export class Automaton {
  readonly #program: readonly Instruction[];
  readonly #start: number;
  /** Whether a match may begin after the first character. */
  readonly #restarts: boolean;
  readonly #coversText: boolean;
  /** ASCII characters that no instruction tells apart share a class. */
  readonly #classes: Uint8Array;
  readonly #width: number;
  readonly #visited: Uint32Array;
  #visit = 0;
  /** Instructions that the last closure visited. */
  #work = 0;
  readonly #numbers = new Map<string, number>();
  #states: State[] = [];
  /** The next state by state and class. */
  #table: Int32Array = new Int32Array(0);
  #wideSteps = 0;

  /** @param coversText a match has to begin and end with the text, as in routes; otherwise it may stand anywhere */
  constructor(pattern: RE2JS, coversText = false) {
    // The library declares the members of its compiled program as any.
    const { inst, start } = pattern.re2().prog as { readonly inst: readonly Instruction[]; readonly start: number };
    this.#program = inst;
    this.#start = start;
    this.#classes = classesOf(inst);
    this.#width = (this.#classes[ASCII - 1] as number) + 1;
    this.#visited = new Uint32Array(inst.length);
    const anywhere = BEGIN_LINE | END_LINE | END_TEXT | WORD_BOUNDARY | NO_WORD_BOUNDARY;
    this.#coversText = coversText;
    this.#restarts =
      !coversText && this.#closure([start], anywhere).some((pc) => this.#op(pc) === MATCH || this.#op(pc) >= RUNE);
  }

  test(run: Run, text: string): boolean | Failure {
    const classes = this.#classes;
    const width = this.#width;
    let state = this.#number([this.#start], "start");
    let table = this.#table;
    for (let at = 0; at < text.length;) {
      const end = Math.min(text.length, at + BLOCK);
      if (run.spend(1 + (end - at) / CHARACTERS_PER_STEP)) return COST_LIMIT;
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
        if (next === MATCHED) return true;
        if (next === DEAD) return run.steps < 0 ? COST_LIMIT : false;
        state = next;
      }
    }
    const last = this.#step(run, state, END);
    return run.steps < 0 ? COST_LIMIT : last === MATCHED;
  }

  #op(pc: number): number {
    return (this.#program[pc] as Instruction).op;
  }

  /** Makes the state after one more character; DEAD when the budget is spent. */
  #step(run: Run, number: number, rune: number): number {
    const state = this.#states[number] as State;
    const reached = this.#closure(state.instructions, assertions(state.before, rune));
    if (run.spend(1 + this.#work / INSTRUCTIONS_PER_STEP)) return DEAD;
    const next = this.#advance(reached, rune);
    // A full table was emptied on the way, and the state that we come from with it.
    if (rune === END || this.#states[number] !== state) return next;
    if (rune < ASCII) this.#table[number * this.#width + (this.#classes[rune] as number)] = next;
    else if (this.#wideSteps++ < MAX_WIDE_STEPS) state.wide.set(rune, next);
    return next;
  }

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
    if (this.#restarts) following.add(this.#start);
    if (following.size === 0) return DEAD;
    const before = rune === NEWLINE ? "newline" : isWord(rune) ? "word" : "other";
    return this.#number(
      [...following].sort((a, b) => a - b),
      before,
    );
  }

  #number(instructions: readonly number[], before: Before): number {
    const key = `${before} ${instructions.join(" ")}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    if (this.#numbers.size >= MAX_STATES) this.#clear();
    const number = this.#numbers.size + FIRST_STATE;
    this.#numbers.set(key, number);
    this.#states[number] = { instructions, before, wide: new Map() };
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

  /** The instructions that are reached without a character, under the assertions that hold here. */
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

function consumes(instruction: Instruction, rune: number): boolean {
  if (instruction.op === RUNE_ANY) return true;
  return instruction.op === RUNE_ANY_NOT_NEWLINE ? rune !== NEWLINE : instruction.matchRune(rune);
}

function assertions(before: Before, rune: number): number {
  let holds = (before === "word") === isWord(rune) ? NO_WORD_BOUNDARY : WORD_BOUNDARY;
  if (before === "start") holds |= BEGIN_TEXT | BEGIN_LINE;
  if (before === "newline") holds |= BEGIN_LINE;
  if (rune === END) holds |= END_TEXT | END_LINE;
  if (rune === NEWLINE) holds |= END_LINE;
  return holds;
}

function isWord(rune: number): boolean {
  return (
    (rune >= 0x61 && rune <= 0x7a) || (rune >= 0x41 && rune <= 0x5a) || (rune >= 0x30 && rune <= 0x39) || rune === 0x5f
  );
}

/** The first characters of all classes: those of the ranges that instructions name, and of words and lines. */
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

/** The Kelvin sign and the long s are the only ones beyond ASCII that fold into it. */
function addCases(firsts: Set<number>, char: string): void {
  const folded = char === "\u212a" ? "k" : char === "\u017f" ? "s" : char;
  for (const other of [folded.toLowerCase(), folded.toUpperCase()]) {
    const rune = other.codePointAt(0) as number;
    firsts.add(rune).add(rune + 1);
  }
}
