/** The operators as closures over compiled operands. A program returns a value or a Failure and never throws. */
import { type ArithmeticOperator, arithmetic } from "../arithmetic.ts";
import type { Program } from "../budget.ts";
import { compare, equals, isMapKey } from "../equality.ts";
import { COST_LIMIT, Failure, NO_OVERLOAD } from "../errors.ts";
import { putEntry } from "../lookup.ts";
import { Double, NONE, Optional, adopt, isDouble, isInt, isMap, mapHas, toDouble } from "../values.ts";

/**
 * Compiles `&&` and `||` with any number of operands: an operand that decides the result absorbs the failures of the
 * others, before and after it (cel-spec "Logical Operators").
 */
export function logic(kind: "and" | "or", args: readonly Program[]): Program {
  const decisive = kind === "or";
  return (run) => {
    let failure: Failure | undefined;
    for (const arg of args) {
      const value = arg(run);
      if (value === decisive) return decisive;
      if (value !== !decisive) failure ??= value instanceof Failure ? value : NO_OVERLOAD;
    }
    return failure ?? !decisive;
  };
}

export function not(operand: Program): Program {
  return (run) => {
    const value = operand(run);
    if (typeof value === "boolean") return !value;
    return value instanceof Failure ? value : NO_OVERLOAD;
  };
}

export function negate(operand: Program): Program {
  return (run) => {
    const value = operand(run);
    if (value instanceof Failure) return value;
    if (isInt(value)) return arithmetic("-", 0, value, false);
    if (!isDouble(value)) return NO_OVERLOAD;
    return value instanceof Double ? new Double(-value.value) : -value;
  };
}

/** Converts ints of an operand declared as double, because JSON writes 1.0 as 1. */
export function asDouble(operand: Program): Program {
  return (run) => {
    const value = operand(run);
    return isInt(value) ? toDouble(Number(value)) : value;
  };
}

export function conditional(condition: Program, then: Program, otherwise: Program): Program {
  return (run) => {
    const value = condition(run);
    if (value === true) return then(run);
    if (value === false) return otherwise(run);
    return value instanceof Failure ? value : NO_OVERLOAD;
  };
}

export function equality(left: Program, right: Program, wanted: boolean): Program {
  return (run) => {
    const a = left(run);
    if (a instanceof Failure) return a;
    const b = right(run);
    if (b instanceof Failure) return b;
    return equals(run, a, b) === wanted;
  };
}

/** Compares with a literal string, which needs no conversion. */
export function equalsText(left: Program, text: string, wanted: boolean): Program {
  return (run) => {
    const value = left(run);
    return value instanceof Failure ? value : (value === text) === wanted;
  };
}

const ORDERS: Readonly<Record<"<" | "<=" | ">" | ">=", (order: number) => boolean>> = {
  "<": (order) => order < 0,
  "<=": (order) => order <= 0,
  ">": (order) => order > 0,
  ">=": (order) => order >= 0,
};

export function order(operator: "<" | "<=" | ">" | ">=", left: Program, right: Program): Program {
  const holds = ORDERS[operator];
  return (run) => {
    const a = left(run);
    if (a instanceof Failure) return a;
    const b = right(run);
    if (b instanceof Failure) return b;
    const result = compare(run, a, b);
    return result === undefined ? NO_OVERLOAD : holds(result);
  };
}

export function calculate(operator: ArithmeticOperator, left: Program, right: Program, mixed: boolean): Program {
  return (run) => {
    const a = left(run);
    if (a instanceof Failure) return a;
    const b = right(run);
    if (b instanceof Failure) return b;
    if (operator === "+" && (typeof a === "string" || typeof a === "object")) {
      const length = lengthOf(a) + lengthOf(b);
      // A list is copied item by item; strings and bytes are charged by length.
      if (Array.isArray(a) ? run.spend(length) : run.spendLength(length)) return COST_LIMIT;
    }
    return arithmetic(operator, a, b, mixed);
  };
}

function lengthOf(value: unknown): number {
  return typeof value === "string" || Array.isArray(value) || value instanceof Uint8Array ? value.length : 0;
}

export function membership(item: Program, container: Program, substring: boolean): Program {
  return (run) => {
    const a = item(run);
    if (a instanceof Failure) return a;
    const b = container(run);
    if (b instanceof Failure) return b;
    if (Array.isArray(b)) {
      return b.some((candidate: unknown) => equals(run, a, adopt(candidate)));
    }
    if (isMap(b)) return mapHas(b, a, run);
    if (!substring || typeof a !== "string" || typeof b !== "string") return NO_OVERLOAD;
    return run.spendLength(b.length) ? COST_LIMIT : b.includes(a);
  };
}

/** Compiles `x in ["a", "b"]` where all items are literal strings, as a set lookup. */
export function membershipInTexts(item: Program, texts: ReadonlySet<unknown>): Program {
  return (run) => {
    const value = item(run);
    return value instanceof Failure ? value : texts.has(value);
  };
}

export function list(items: readonly { readonly value: Program; readonly optional: boolean }[]): Program {
  return (run) => {
    const result: unknown[] = [];
    if (run.spend(1 + items.length)) return COST_LIMIT;
    for (const { value, optional } of items) {
      const item = value(run);
      if (item instanceof Failure) return item;
      if (!optional) result.push(item);
      else if (!(item instanceof Optional)) return NO_OVERLOAD;
      else if (item !== NONE && item.value !== undefined) result.push(item.value);
    }
    return result;
  };
}

export interface MapEntry {
  readonly key: Program;
  readonly value: Program;
  readonly optional: boolean;
}

export function map(entries: readonly MapEntry[]): Program {
  return (run) => {
    const result = new Map<unknown, unknown>();
    for (const { key, value, optional } of entries) {
      const name = key(run);
      if (name instanceof Failure) return name;
      if (!isMapKey(name)) return new Failure("no_such_overload", "unsupported type of map key");
      let item = value(run);
      if (item instanceof Failure) return item;
      if (optional) {
        if (!(item instanceof Optional)) return NO_OVERLOAD;
        if (item.value === undefined) continue;
        item = item.value;
      }
      const failure = putEntry(run, result, name, item);
      if (failure !== undefined) return failure;
    }
    return result;
  };
}
