/**
 * The operators + - * / % on values, with the 64-bit overflow rules of the CEL language definition. Compiled programs
 * and functions over lists and times use it. Small ints are calculated as numbers; only an unsafe result is repeated
 * with bigint.
 */
import { DIVISION_BY_ZERO, type Failure, NO_OVERLOAD, OVERFLOW } from "./errors.ts";
import { Duration, Timestamp, Uint, doubleOf, isDouble, isInt, toDouble, toInt } from "./values.ts";

export type ArithmeticOperator = "+" | "-" | "*" | "/" | "%";

const MAX_INT = 9223372036854775807n;
const MIN_INT = -9223372036854775808n;
const MAX_UINT = 18446744073709551615n;
const MAX_DURATION_SECONDS = 315_576_000_000;
/** Limit on the difference of two timestamps: CEL counts it in 64-bit nanoseconds, which are ±292 years. */
const MAX_SPAN_SECONDS = 9_223_372_036;
const NANOS = 1_000_000_000;

export function checkedInt(value: bigint): number | bigint | Failure {
  return value > MAX_INT || value < MIN_INT ? OVERFLOW : toInt(value);
}

export function checkedUint(value: bigint): Uint | Failure {
  return value < 0n || value > MAX_UINT ? OVERFLOW : new Uint(value);
}

/** Normalizes seconds and nanoseconds to one sign and checks the range of google.protobuf.Duration, ±10,000 years. */
export function checkedDuration(seconds: number, nanos: number): Duration | Failure {
  let whole = seconds + Math.trunc(nanos / NANOS);
  let rest = nanos % NANOS;
  if (whole > 0 && rest < 0) {
    whole--;
    rest += NANOS;
  } else if (whole < 0 && rest > 0) {
    whole++;
    rest -= NANOS;
  }
  // "+ 0" turns negative zero into zero.
  return Math.abs(whole) > MAX_DURATION_SECONDS ? OVERFLOW : new Duration(whole + 0, rest + 0);
}

/** Normalizes to non-negative nanoseconds and checks the range of timestamps, the years 1 to 9999. */
export function checkedTimestamp(seconds: number, nanos: number): Timestamp | Failure {
  const whole = seconds + Math.floor(nanos / NANOS);
  const rest = ((nanos % NANOS) + NANOS) % NANOS;
  return whole < -62_135_596_800 || whole > 253_402_300_799 ? OVERFLOW : new Timestamp(whole, rest);
}

/**
 * Applies an operator.
 *
 * @param mixed whether an int and a double may meet: true when a value comes from outside, because JSON does not
 * distinguish 1 from 1.0
 */
export function arithmetic(operator: ArithmeticOperator, a: unknown, b: unknown, mixed: boolean): unknown {
  if (isInt(a)) {
    if (isInt(b)) return ints(operator, a, b);
    return mixed && isDouble(b) ? doubles(operator, Number(a), doubleOf(b)) : NO_OVERLOAD;
  }
  if (isDouble(a)) {
    if (isDouble(b)) return doubles(operator, doubleOf(a), doubleOf(b));
    return mixed && isInt(b) ? doubles(operator, doubleOf(a), Number(b)) : NO_OVERLOAD;
  }
  if (a instanceof Uint) return b instanceof Uint ? uints(operator, a.value, b.value) : NO_OVERLOAD;
  if (operator === "+") return plus(a, b);
  return operator === "-" ? minus(a, b) : NO_OVERLOAD;
}

function ints(operator: ArithmeticOperator, a: number | bigint, b: number | bigint): unknown {
  if (typeof a === "number" && typeof b === "number") {
    const result = smallInts(operator, a, b);
    if (typeof result !== "number") return result;
    if (Number.isSafeInteger(result)) return result + 0;
  }
  const left = BigInt(a);
  const right = BigInt(b);
  switch (operator) {
    case "+":
      return checkedInt(left + right);
    case "-":
      return checkedInt(left - right);
    case "*":
      return checkedInt(left * right);
    case "/":
      return right === 0n ? DIVISION_BY_ZERO : checkedInt(left / right);
    case "%":
      if (right === 0n) return DIVISION_BY_ZERO;
      return right === -1n && left === MIN_INT ? OVERFLOW : checkedInt(left % right);
  }
}

function smallInts(operator: ArithmeticOperator, a: number, b: number): number | Failure {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return b === 0 ? DIVISION_BY_ZERO : Math.trunc(a / b);
    case "%":
      return b === 0 ? DIVISION_BY_ZERO : a % b;
  }
}

function uints(operator: ArithmeticOperator, a: bigint, b: bigint): unknown {
  switch (operator) {
    case "+":
      return checkedUint(a + b);
    case "-":
      return checkedUint(a - b);
    case "*":
      return checkedUint(a * b);
    case "/":
      return b === 0n ? DIVISION_BY_ZERO : checkedUint(a / b);
    case "%":
      return b === 0n ? DIVISION_BY_ZERO : checkedUint(a % b);
  }
}

function doubles(operator: ArithmeticOperator, a: number, b: number): unknown {
  switch (operator) {
    case "+":
      return toDouble(a + b);
    case "-":
      return toDouble(a - b);
    case "*":
      return toDouble(a * b);
    case "/":
      return toDouble(a / b);
    case "%":
      return NO_OVERLOAD;
  }
}

function plus(a: unknown, b: unknown): unknown {
  if (typeof a === "string" && typeof b === "string") return a + b;
  if (Array.isArray(a) && Array.isArray(b)) return [...(a as unknown[]), ...(b as unknown[])];
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    const joined = new Uint8Array(a.length + b.length);
    joined.set(a);
    joined.set(b, a.length);
    return joined;
  }
  if (a instanceof Duration && b instanceof Duration) {
    return checkedDuration(a.seconds + b.seconds, a.nanos + b.nanos);
  }
  if ((a instanceof Timestamp && b instanceof Duration) || (a instanceof Duration && b instanceof Timestamp)) {
    return checkedTimestamp(a.seconds + b.seconds, a.nanos + b.nanos);
  }
  return NO_OVERLOAD;
}

function minus(a: unknown, b: unknown): unknown {
  if (a instanceof Timestamp && b instanceof Timestamp) {
    const span = checkedDuration(a.seconds - b.seconds, a.nanos - b.nanos);
    return span instanceof Duration && Math.abs(span.seconds) > MAX_SPAN_SECONDS ? OVERFLOW : span;
  }
  if (a instanceof Timestamp && b instanceof Duration) {
    return checkedTimestamp(a.seconds - b.seconds, a.nanos - b.nanos);
  }
  if (a instanceof Duration && b instanceof Duration) {
    return checkedDuration(a.seconds - b.seconds, a.nanos - b.nanos);
  }
  return NO_OVERLOAD;
}
