/**
 * Finds all matches of a pattern in a text with their positions, leftmost first, as Rust and RE2 do. Prompt guards mask
 * with it. The automaton tells whether and near which position there is a match, at a table lookup per character; only
 * from there a Pike VM follows the instructions thread by thread, each thread with the position at which it began.
 * Threads are ordered by preference: a thread that matches ends all threads behind it. Every instruction that is
 * visited is charged to the budget, so a pattern with a text that makes the search quadratic ends in COST_LIMIT.
 */
import type { Run } from "../budget.ts";
import { COST_LIMIT, Failure } from "../errors.ts";
import { NOWHERE } from "./automaton.ts";
import {
  ALT,
  ALT_MATCH,
  assertions,
  beforeOf,
  CAPTURE,
  consumes,
  EMPTY_WIDTH,
  END,
  MATCH,
  NOP,
  programOf,
  RUNE,
  type Instruction,
} from "./instructions.ts";
import type { Regex } from "./regex.ts";

/** A part of a text. */
export interface Span {
  readonly start: number;
  /** Position after the last character. */
  readonly end: number;
}

const INSTRUCTIONS_PER_STEP = 4;
const CHARACTERS_PER_STEP = 64;
const ASCII = 128;

/** @returns the matches in order, without empty ones */
export function findMatches(run: Run, text: string, pattern: Regex): Span[] | Failure {
  let search: Search | undefined;
  const found: Span[] = [];
  for (let at = 0; at < text.length;) {
    const near = pattern.automaton.locate(run, text, at);
    if (near instanceof Failure) return near;
    if (near === NOWHERE) break;
    search ??= new Search(run, text, pattern);
    const match = search.from(near);
    if (run.steps < 0) return COST_LIMIT;
    if (match === undefined) break;
    if (match.end > match.start) found.push(match);
    at = match.end > match.start ? match.end : afterCharacter(text, match.end);
  }
  return found;
}

function afterCharacter(text: string, at: number): number {
  return at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1);
}

/** The threads of one step, in order of preference: instruction and begin of each. */
class Threads {
  readonly instructions: number[] = [];
  readonly starts: number[] = [];

  clear(): void {
    this.instructions.length = 0;
    this.starts.length = 0;
  }
}

class Search {
  readonly #run: Run;
  readonly #text: string;
  readonly #program: readonly Instruction[];
  readonly #start: number;
  readonly #firsts: Uint8Array;
  /** The step in which an instruction was last visited, so that each is visited once per step. */
  readonly #visited: Uint32Array;
  #step = 0;
  #open: number[] = [];

  constructor(run: Run, text: string, pattern: Regex) {
    const { inst, start } = programOf(pattern.pattern);
    this.#run = run;
    this.#text = text;
    this.#program = inst;
    this.#start = start;
    this.#visited = new Uint32Array(inst.length);
    this.#firsts = firstsOf(pattern);
  }

  /** Returns the first match that begins at `from` or later; undefined as well when the budget is spent. */
  from(from: number): Span | undefined {
    const text = this.#text;
    let [now, next] = [new Threads(), new Threads()];
    let match: Span | undefined;
    for (let at = from; ;) {
      if (match === undefined && now.instructions.length === 0) at = this.#skip(at);
      const rune = at < text.length ? (text.codePointAt(at) as number) : END;
      const holds = assertions(at === 0 ? "start" : beforeOf(text.charCodeAt(at - 1)), rune);
      // The threads of `now` stand before their zero-width instructions, which depend on the next character.
      const reached = this.#expand(now, { holds, at, restart: match === undefined });
      if (this.#run.steps < 0) return undefined;
      next.clear();
      for (let index = 0; index < reached.instructions.length; index++) {
        const instruction = this.#program[reached.instructions[index] as number] as Instruction;
        const start = reached.starts[index] as number;
        if (instruction.op === MATCH) {
          match = { start, end: at };
          break;
        }
        if (rune === END || !consumes(instruction, rune)) continue;
        next.instructions.push(instruction.out);
        next.starts.push(start);
      }
      if (rune === END || (match !== undefined && next.instructions.length === 0)) return match;
      [now, next] = [next, now];
      at += rune > 0xffff ? 2 : 1;
    }
  }

  /** Returns the next position at which a match may begin; one that is empty does not count. */
  #skip(from: number): number {
    const text = this.#text;
    let at = from;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code >= ASCII || this.#firsts[code] === 1) break;
      at++;
    }
    this.#run.spend((at - from) / CHARACTERS_PER_STEP);
    return at;
  }

  /** Follows the threads to the instructions that consume a character or match; a new thread may begin last. */
  #expand(now: Threads, { holds, at, restart }: { holds: number; at: number; restart: boolean }): Threads {
    const reached = new Threads();
    const step = ++this.#step;
    let work = 1;
    const { instructions, starts } = now;
    for (let index = 0; index <= instructions.length; index++) {
      if (index === instructions.length && !restart) break;
      const start = starts[index] ?? at;
      this.#open.push(instructions[index] ?? this.#start);
      for (let pc = this.#open.pop(); pc !== undefined; pc = this.#open.pop()) {
        if (this.#visited[pc] === step) continue;
        this.#visited[pc] = step;
        work++;
        const { op, out, arg } = this.#program[pc] as Instruction;
        // `out` is preferred to `arg`, so it is visited first.
        if (op === ALT || op === ALT_MATCH) this.#open.push(arg, out);
        else if (op === NOP || op === CAPTURE || (op === EMPTY_WIDTH && (arg & ~holds) === 0)) this.#open.push(out);
        else if (op === MATCH || op >= RUNE) {
          reached.instructions.push(pc);
          reached.starts.push(start);
        }
      }
    }
    this.#run.spend(work / INSTRUCTIONS_PER_STEP);
    return reached;
  }
}

const known = new WeakMap<Regex, Uint8Array>();

/** Returns 1 for each ASCII character with which a match may begin, whatever stands before it. */
function firstsOf(pattern: Regex): Uint8Array {
  let firsts = known.get(pattern);
  if (firsts !== undefined) return firsts;
  known.set(pattern, (firsts = new Uint8Array(ASCII)));
  const { inst, start } = programOf(pattern.pattern);
  const visited = new Set<number>();
  const open = [start];
  for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
    if (visited.has(pc)) continue;
    visited.add(pc);
    const instruction = inst[pc] as Instruction;
    const { op, out, arg } = instruction;
    if (op === ALT || op === ALT_MATCH) open.push(out, arg);
    else if (op === NOP || op === CAPTURE || op === EMPTY_WIDTH) open.push(out);
    else if (op >= RUNE) for (let rune = 0; rune < ASCII; rune++) if (consumes(instruction, rune)) firsts[rune] = 1;
  }
  return firsts;
}
