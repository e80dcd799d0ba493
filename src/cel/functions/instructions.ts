/**
 * The instructions of a compiled pattern, a Thompson NFA as re2js compiles it, and the zero-width assertions between
 * two characters. The automaton and the match finder run them.
 */
import type { RE2JS } from "re2js";

/** One NFA instruction, as re2js compiles it; the operation codes are those of Go's regexp/syntax. */
export interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly runes: Int32Array;
  matchRune(rune: number): boolean;
}

export const ALT = 1;
export const ALT_MATCH = 2;
export const CAPTURE = 3;
export const EMPTY_WIDTH = 4;
export const MATCH = 6;
export const NOP = 7;
export const RUNE = 8;
const RUNE_ANY = 10;
const RUNE_ANY_NOT_NEWLINE = 11;

const BEGIN_LINE = 1;
const END_LINE = 2;
const BEGIN_TEXT = 4;
const END_TEXT = 8;
const WORD_BOUNDARY = 16;
const NO_WORD_BOUNDARY = 32;
export const FOLD_CASE = 1;

export const NEWLINE = 10;

export type Before = "start" | "newline" | "word" | "other";

/** Pseudo character for the end of the text. */
export const END = -1;

/** Every assertion that can hold after the first character of a text. */
export const ANYWHERE: number = BEGIN_LINE | END_LINE | END_TEXT | WORD_BOUNDARY | NO_WORD_BOUNDARY;

interface Program {
  readonly inst: readonly Instruction[];
  readonly start: number;
}

/** re2js declares the members of its compiled program as any. */
export function programOf(pattern: RE2JS): Program {
  return pattern.re2().prog as Program;
}

export function beforeOf(rune: number): Before {
  return rune === NEWLINE ? "newline" : isWord(rune) ? "word" : "other";
}

export function consumes(instruction: Instruction, rune: number): boolean {
  if (instruction.op === RUNE_ANY) return true;
  return instruction.op === RUNE_ANY_NOT_NEWLINE ? rune !== NEWLINE : instruction.matchRune(rune);
}

/** The zero-width assertions that hold between the previous character and `rune`. */
export function assertions(before: Before, rune: number): number {
  let holds: number = (before === "word") === isWord(rune) ? NO_WORD_BOUNDARY : WORD_BOUNDARY;
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
