/**
 * The errors of expressions. A running program passes failures along as values, because an expression may absorb them
 * (`a || b`) and creating an Error costs a stack trace; only the outermost caller gets a thrown CelError.
 */
import { GwError } from "../lib/errors.ts";

export type CelErrorCode =
  | "syntax"
  | "too_long"
  | "too_deep"
  | "unknown_variable"
  | "unknown_function"
  | "unsupported"
  | "does_not_compile"
  | "no_such_attribute"
  | "no_such_key"
  | "no_such_overload"
  | "index_out_of_range"
  | "overflow"
  | "division_by_zero"
  | "invalid_argument"
  | "invalid_regex"
  | "invalid_utf8"
  | "repeated_key"
  | "empty_optional"
  | "cost_limit"
  | "failed";

export class CelError extends GwError {
  readonly code: CelErrorCode;
  /** Offset in the source, in UTF-16 units; undefined for a failure at run time. */
  readonly position: number | undefined;

  constructor(code: CelErrorCode, message: string, position?: number) {
    super(position === undefined ? message : `${message} (at ${position})`);
    this.code = code;
    this.position = position;
  }
}

/** A failure that a running program passes along as a value. */
export class Failure {
  readonly code: CelErrorCode;
  readonly message: string;

  constructor(code: CelErrorCode, message: string) {
    this.code = code;
    this.message = message;
  }
}

export const NO_SUCH_KEY: Failure = new Failure("no_such_key", "no such key");
export const NO_OVERLOAD: Failure = new Failure("no_such_overload", "no such overload for these types");
export const OVERFLOW: Failure = new Failure("overflow", "value out of range");
export const DIVISION_BY_ZERO: Failure = new Failure("division_by_zero", "division by zero");
export const OUT_OF_RANGE: Failure = new Failure("index_out_of_range", "index out of range");
export const COST_LIMIT: Failure = new Failure("cost_limit", "the expression does too much work");
export const INVALID_ARGUMENT: Failure = new Failure("invalid_argument", "invalid argument");
