/**
 * The CEL functions of the Kubernetes API server for validation rules: lists, regular expressions, URLs, quantities,
 * addresses.
 */
import type { Run } from "../budget.ts";
import { arithmetic } from "../arithmetic.ts";
import type { CelFunction, Declaration } from "../function.ts";
import { compare, equals } from "../equality.ts";
import { COST_LIMIT, Failure, INVALID_ARGUMENT, NO_OVERLOAD } from "../errors.ts";
import { adopt } from "../values.ts";
import { NETWORK_FUNCTIONS } from "./network.ts";
import { QUANTITY_FUNCTIONS } from "./quantity.ts";
import { regex, spendFind } from "./regex.ts";
import { indexOf, lastIndexOf } from "./strings.ts";
import { URL_FUNCTIONS } from "./url.ts";

function find(run: Run, text: unknown, pattern: unknown): unknown {
  const found = findAll(run, text, pattern, 1);
  return Array.isArray(found) ? (found[0] ?? "") : found;
}

function findAll(run: Run, text: unknown, pattern: unknown, limit: unknown = -1): unknown {
  if (typeof text !== "string" || typeof pattern !== "string" || typeof limit !== "number") return NO_OVERLOAD;
  const compiled = regex(run, pattern);
  if (compiled instanceof Failure) return compiled;
  const matcher = compiled.pattern.matcher(text);
  const found: string[] = [];
  let at = 0;
  // Each search may scan to the end of the text, with or without a match, so charge each one for the rest of the text.
  while (found.length !== limit) {
    if (spendFind(run, compiled, text.length - at)) return COST_LIMIT;
    if (!matcher.find()) break;
    at = matcher.end();
    found.push(matcher.group() ?? "");
  }
  return found;
}

/** Compares neighbours of a list; false or a Failure ends the walk. */
function isSorted(run: Run, list: unknown): unknown {
  if (!Array.isArray(list)) return NO_OVERLOAD;
  if (run.spend(list.length)) return COST_LIMIT;
  for (let at = 1; at < list.length; at++) {
    const order = compare(run, adopt(list[at - 1]), adopt(list[at]));
    if (order === undefined) return NO_OVERLOAD;
    if (!(order <= 0)) return false;
  }
  return true;
}

function sum(run: Run, list: unknown): unknown {
  if (!Array.isArray(list)) return NO_OVERLOAD;
  if (run.spend(list.length)) return COST_LIMIT;
  let total: unknown = list.length === 0 ? 0 : adopt(list[0]);
  for (const item of list.slice(1)) {
    total = arithmetic("+", total, adopt(item), true);
    if (total instanceof Failure) return total;
  }
  return total;
}

function extremeOf(wanted: 1 | -1): CelFunction {
  return (run, list) => {
    if (!Array.isArray(list)) return NO_OVERLOAD;
    if (list.length === 0) return INVALID_ARGUMENT;
    if (run.spend(list.length)) return COST_LIMIT;
    let best: unknown = adopt(list[0]);
    for (const item of list) {
      const order = compare(run, adopt(item), best);
      if (order === undefined) return NO_OVERLOAD;
      if (Math.sign(order) === wanted) best = adopt(item);
    }
    return best;
  };
}

/** Extends a function of strings to lists, which share its name. */
function position(onText: CelFunction, first: boolean): CelFunction {
  return (run, value, wanted) => {
    if (!Array.isArray(value)) return onText(run, value, wanted);
    if (run.spend(value.length)) return COST_LIMIT;
    const test = (item: unknown): boolean => equals(run, adopt(item), wanted);
    return first ? value.findIndex(test) : value.findLastIndex(test);
  };
}

export const KUBERNETES_FUNCTIONS: readonly Declaration[] = [
  ...NETWORK_FUNCTIONS,
  ...QUANTITY_FUNCTIONS,
  ...URL_FUNCTIONS,
  [".find(string, string): string", find],
  [".findAll(string, string): list<string>", findAll],
  [".findAll(string, string, int): list<string>", findAll],
  [".isSorted(list<A>): bool", isSorted],
  [".sum(list<A>): A", sum],
  [".min(list<A>): A", extremeOf(-1)],
  [".max(list<A>): A", extremeOf(1)],
  [".indexOf(string, string): int; .indexOf(list<A>, A): int", position(indexOf, true)],
  [".lastIndexOf(string, string): int; .lastIndexOf(list<A>, A): int", position(lastIndexOf, false)],
];
