/** The functions of the CEL math extension. */
import { checkedInt } from "../arithmetic.ts";
import type { Run } from "../budget.ts";
import type { CelFunction, Declaration } from "../function.ts";
import { compare } from "../equality.ts";
import { COST_LIMIT, INVALID_ARGUMENT, NO_OVERLOAD } from "../errors.ts";
import { Uint, adopt, doubleOf, isDouble, isInt, numberOf, toDouble, toInt } from "../values.ts";

/** @param wanted sign of compare(candidate, best) with which the candidate replaces the best */
export function extreme(wanted: 1 | -1): CelFunction {
  return (run, ...args) => {
    const items: readonly unknown[] = args.length === 1 && Array.isArray(args[0]) ? args[0] : args;
    if (items.length === 0) return INVALID_ARGUMENT;
    if (run.spend(items.length)) return COST_LIMIT;
    let best = adopt(items[0]);
    if (numberOf(best) === undefined) return NO_OVERLOAD;
    for (const item of items) {
      const order = numberOf(item) === undefined ? undefined : compare(run, item, best);
      if (order === undefined) return NO_OVERLOAD;
      if (Math.sign(order) === wanted) best = item;
    }
    return best;
  };
}

function onDouble(apply: (value: number) => unknown): CelFunction {
  return (_run, value) => (isDouble(value) ? apply(doubleOf(value)) : NO_OVERLOAD);
}

/** Rounds a double, which may be an int already, because JSON writes 1.0 as 1. */
function rounding(apply: (value: number) => number): CelFunction {
  return (_run, value) => {
    if (isInt(value)) return toDouble(Number(value));
    return isDouble(value) ? toDouble(apply(doubleOf(value))) : NO_OVERLOAD;
  };
}

/** Functions of a double that accept an int only because a number from outside may be either. */
export const ROUNDING: ReadonlySet<string> = new Set(["ceil", "floor", "trunc", "round"].map((name) => `math.${name}`));

function abs(_run: Run, value: unknown): unknown {
  if (isDouble(value)) return toDouble(Math.abs(doubleOf(value)));
  if (value instanceof Uint) return value;
  if (!isInt(value)) return NO_OVERLOAD;
  return value < 0 ? checkedInt(-BigInt(value)) : value;
}

function sign(_run: Run, value: unknown): unknown {
  if (isDouble(value)) return toDouble(Math.sign(doubleOf(value)));
  if (value instanceof Uint) return new Uint(value.value === 0n ? 0n : 1n);
  return isInt(value) ? Math.sign(Number(value)) : NO_OVERLOAD;
}

function sqrt(_run: Run, value: unknown): unknown {
  const number = numberOf(value);
  return number === undefined ? NO_OVERLOAD : toDouble(Math.sqrt(Number(number)));
}

function bits(apply: (a: bigint, b: bigint) => bigint): CelFunction {
  return (_run, a, b) => {
    if (isInt(a) && isInt(b)) return toInt(BigInt.asIntN(64, apply(BigInt(a), BigInt(b))));
    if (a instanceof Uint && b instanceof Uint) return new Uint(BigInt.asUintN(64, apply(a.value, b.value)));
    return NO_OVERLOAD;
  };
}

function bitNot(_run: Run, value: unknown): unknown {
  if (isInt(value)) return toInt(~BigInt(value));
  return value instanceof Uint ? new Uint(BigInt.asUintN(64, ~value.value)) : NO_OVERLOAD;
}

/** Shifts bits; both directions fill with zeros. */
function shift(left: boolean): CelFunction {
  return (_run, value, count) => {
    if (!isInt(count)) return NO_OVERLOAD;
    if (count < 0) return INVALID_ARGUMENT;
    const by = count > 63 ? undefined : BigInt(count);
    const shifted = (bits: bigint): bigint => {
      if (by === undefined) return 0n;
      return left ? BigInt.asUintN(64, bits << by) : bits >> by;
    };
    if (value instanceof Uint) return new Uint(shifted(value.value));
    if (!isInt(value)) return NO_OVERLOAD;
    return toInt(BigInt.asIntN(64, shifted(BigInt.asUintN(64, BigInt(value)))));
  };
}

/** The numeric arguments of min and max, or one list of numbers instead. */
export const NUMBERS = "int | uint | double | list<int> | list<uint> | list<double>...";

export const MATH_FUNCTIONS: readonly Declaration[] = [
  [`math.greatest(${NUMBERS}): dyn`, extreme(1)],
  [`math.least(${NUMBERS}): dyn`, extreme(-1)],
  ["math.ceil(double): double", rounding(Math.ceil)],
  ["math.floor(double): double", rounding(Math.floor)],
  ["math.trunc(double): double", rounding(Math.trunc)],
  // Round half away from zero; Math.round rounds half up.
  ["math.round(double): double", rounding((value) => (value < 0 ? -Math.round(-value) : Math.round(value)))],
  ["math.isInf(double): bool", onDouble((value) => value === Infinity || value === -Infinity)],
  ["math.isNaN(double): bool", onDouble(Number.isNaN)],
  ["math.isFinite(double): bool", onDouble(Number.isFinite)],
  ["math.abs(N): N", abs],
  ["math.sign(N): N", sign],
  ["math.sqrt(N): double", sqrt],
  ["math.bitAnd(int, int): int; math.bitAnd(uint, uint): uint", bits((a, b) => a & b)],
  ["math.bitOr(int, int): int; math.bitOr(uint, uint): uint", bits((a, b) => a | b)],
  ["math.bitXor(int, int): int; math.bitXor(uint, uint): uint", bits((a, b) => a ^ b)],
  ["math.bitNot(int): int; math.bitNot(uint): uint", bitNot],
  ["math.bitShiftLeft(int, int): int; math.bitShiftLeft(uint, int): uint", shift(true)],
  ["math.bitShiftRight(int, int): int; math.bitShiftRight(uint, int): uint", shift(false)],
];
