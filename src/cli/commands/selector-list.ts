/**
 * Parses label selectors from JSON, for an option of the controller. The parser is strict, because a misread selector
 * would select other namespaces than the operator meant.
 */
import { InvalidArgumentError } from "commander";
import type { LabelSelector } from "../../api/label-selector.ts";
import { isRecord } from "../../lib/is-record.ts";

/** Operators of a label selector, and whether they take values. */
const OPERATORS: ReadonlyMap<unknown, boolean> = new Map([
  ["In", true],
  ["NotIn", true],
  ["Exists", false],
  ["DoesNotExist", false],
]);

export function selectorList(text: string): LabelSelector[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InvalidArgumentError("it is not JSON");
  }
  if (!Array.isArray(value)) throw new InvalidArgumentError("a list is needed");
  const selectors: readonly unknown[] = value;
  for (const [at, selector] of selectors.entries()) {
    const error = findSelectorError(selector);
    if (error !== undefined) throw new InvalidArgumentError(`[${at}]: ${error}`);
  }
  return value as LabelSelector[]; // every member was checked
}

function findSelectorError(selector: unknown): string | undefined {
  if (!isRecord(selector)) return "a label selector is needed";
  const { matchLabels = {}, matchExpressions = [], ...others } = selector;
  const [stranger] = Object.keys(others);
  if (stranger !== undefined) return `${stranger} is not known; use matchLabels and matchExpressions`;
  if (!isRecord(matchLabels) || !Object.values(matchLabels).every((label) => typeof label === "string"))
    return "matchLabels must be a map of texts";
  if (!Array.isArray(matchExpressions)) return "matchExpressions must be a list";
  const bad = matchExpressions.findIndex((expression) => !isExpression(expression));
  return bad < 0
    ? undefined
    : `matchExpressions[${bad}] needs a key, an operator (${names()}), and values for In and NotIn`;
}

function isExpression(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { key, operator, values = [], ...others } = value;
  const takesValues = OPERATORS.get(operator);
  if (typeof key !== "string" || key === "" || takesValues === undefined || Object.keys(others).length > 0)
    return false;
  if (!Array.isArray(values) || !values.every((each) => typeof each === "string")) return false;
  return values.length > 0 === takesValues;
}

function names(): string {
  return [...OPERATORS.keys()].join(", ");
}
