/**
 * The door of this room. In: the text of an expression and the Environment of the place where it stands. Out: an
 * Expression to evaluate per request. Not here: what a failure means, which each caller decides by its own rule.
 */
import { messageOf } from "../../lib/errors.ts";
import { REQUEST_STEPS, Run } from "../budget.ts";
import { Checker } from "../check/checker.ts";
import { Compiler } from "./compile.ts";
import type { Environment } from "../environment.ts";
import { COST_LIMIT, CelError, Failure } from "../errors.ts";
import type { Expression, Reads } from "../expression.ts";
import { jsonText, toHost } from "../json.ts";
import type { Program } from "./operators.ts";
import { parse } from "../parse.ts";
import { READS_NOTHING } from "../reads.ts";
import type { Scope } from "../scope.ts";
import { typeText } from "../types.ts";

/** @throws CelError with a code and a position when the text is not an expression of this environment */
export function compileExpression(source: string, environment: Environment): Expression {
  return expressionOf(source, environment, prepare(source, environment, true));
}

/**
 * The language without static checks: an unknown name fails when it is reached, and not before.
 * @throws CelError syntax, too_long, too_deep
 */
export function compileUnchecked(source: string, environment: Environment): Expression {
  return expressionOf(source, environment, prepare(source, environment, false));
}

function expressionOf(source: string, environment: Environment, { program, reads, slots }: Prepared): Expression {
  return {
    source,
    reads,
    evaluate(scope) {
      const run = new Run(scope, slots, environment.steps);
      let value: unknown;
      try {
        value = program(run);
        if (typeof value !== "boolean" && typeof value !== "string") value = toHost(run, value);
      } catch (error) {
        throw wrapped(error);
      }
      // Whatever the program made of it: work that was cut short has no result.
      if (run.steps < 0) value = COST_LIMIT;
      if (value instanceof Failure) throw new CelError(value.code, value.message);
      return value;
    },
  };
}

/**
 * Parses and checks without making a program: for admission and translation. Constant arguments must parse as well, such
 * as the pattern of `matches`; a program that runs all the same fails only when it gets there.
 * @throws CelError as compileExpression
 */
export function parseExpression(source: string, environment: Environment): ParsedExpression {
  const checker = new Checker(environment, true);
  return { type: typeText(checker.types.resolve(checker.check(parse(source, environment)))) };
}

export interface ParsedExpression {
  /** Of the result: "bool", "string", "list<int>", … and "dyn" where it is not known before it runs. */
  readonly type: string;
}

/** Stands in for an expression that does not compile: its policy stays in force, and every evaluation fails. */
export function failingExpression(source: string, reason: string): Expression {
  return {
    source,
    reads: READS_NOTHING,
    evaluate: () => {
      throw new CelError("does_not_compile", `"${source}" does not compile: ${reason}`);
    },
  };
}

/**
 * A result as the bytes of a body: text and bytes as they are, everything else as JSON.
 * @throws CelError when the value has no JSON form
 */
export function bodyOf(value: unknown): Buffer {
  if (typeof value === "string") return Buffer.from(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const text = jsonText(new Run(NOTHING, 0, REQUEST_STEPS * 20), value);
  if (text instanceof Failure) throw new CelError(text.code, text.message);
  return Buffer.from(text);
}

const NOTHING: Scope = { root: () => undefined };

interface Prepared {
  readonly program: Program;
  readonly reads: Reads;
  /** How many local variables it needs. */
  readonly slots: number;
}

function prepare(source: string, environment: Environment, checked: boolean): Prepared {
  const tree = parse(source, environment);
  const checker = new Checker(environment);
  if (checked) checker.check(tree);
  const compiler = new Compiler(environment, checker.doubles);
  const program = compiler.compile(tree);
  const { reads, slots } = compiler;
  return { program, reads, slots };
}

/** Deep data can exhaust the stack, and a lazily made attribute can fail: to the caller both are failed expressions. */
function wrapped(error: unknown): CelError {
  if (error instanceof CelError) return error;
  if (error instanceof RangeError) return new CelError("cost_limit", "the data nest too deeply or grow too large");
  return new CelError("failed", `an attribute could not be read: ${messageOf(error)}`);
}
