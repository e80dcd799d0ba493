/**
 * The entry of this module: it compiles the text of an expression in an Environment to an Expression, which policies
 * evaluate per request. The caller decides what a failed evaluation means.
 *
 * text ──lex, parse──> tree ──Checker──> types, errors ──Compiler──> closures ──evaluate(scope)──> value or CelError
 */
import { messageOf } from "../../lib/errors.ts";
import { REQUEST_STEPS, Run, type Program } from "../budget.ts";
import { Checker } from "../check/checker.ts";
import { Compiler } from "./compile.ts";
import type { Environment } from "../environment.ts";
import { COST_LIMIT, CelError, Failure } from "../errors.ts";
import type { Expression, Reads } from "../expression.ts";
import { jsonText, toHost } from "../json.ts";
import { parse } from "../parse.ts";
import { READS_NOTHING } from "../reads.ts";
import type { Scope } from "../scope.ts";
import { typeText } from "../types.ts";

/** @throws CelError with a code and a position when the text is not a valid expression of this environment */
export function compileExpression(source: string, environment: Environment): Expression {
  return expressionOf(source, environment, prepare(source, environment, true));
}

/**
 * Compiles without static checks: an unknown name fails when the evaluation reaches it. @throws CelError syntax,
 * too_long, too_deep
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
      // The program may have ignored a failure, but work that the budget cut short has no valid result.
      if (run.steps < 0) value = COST_LIMIT;
      if (value instanceof Failure) throw new CelError(value.code, value.message);
      return value;
    },
  };
}

/**
 * Parses and checks an expression without compiling it, for admission and translation. Constant arguments must parse as
 * well, such as the pattern of `matches`; in a compiled program they fail only when they are reached.
 *
 * @throws CelError as compileExpression
 */
export function parseExpression(source: string, environment: Environment): ParsedExpression {
  const checker = new Checker(environment, true);
  return { type: typeText(checker.types.resolve(checker.check(parse(source, environment)))) };
}

export interface ParsedExpression {
  /** Type of the result: "bool", "string", "list<int>", …, or "dyn" when it is known only at run time. */
  readonly type: string;
}

/**
 * Replaces an expression that does not compile. Its policy stays in force, and every evaluation fails (fail closed).
 */
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
 * Converts a result to the bytes of a body: strings and bytes unchanged, everything else as JSON.
 *
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
  /** Number of local variables that the program needs. */
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

/**
 * Converts any error to a CelError. Deeply nested data can exhaust the stack, and a lazily computed attribute can fail;
 * for the caller both are failed expressions.
 */
function wrapped(error: unknown): CelError {
  if (error instanceof CelError) return error;
  if (error instanceof RangeError) return new CelError("cost_limit", "the data nest too deeply or grow too large");
  return new CelError("failed", `an attribute could not be read: ${messageOf(error)}`);
}
