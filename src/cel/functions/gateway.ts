/** Functions of request-time expressions beyond the CEL standard library. */
import { randomUUID } from "node:crypto";

import type { Run } from "../budget.ts";
import type { CelFunction, Declaration } from "../function.ts";
import { COST_LIMIT, Failure, NO_OVERLOAD } from "../errors.ts";
import { HeaderView } from "../header-view.ts";
import { Secret, isMap, mapGet, mapKeys, toDouble } from "../values.ts";
import { ENCODING_FUNCTIONS } from "./encodings.ts";
import { FLATTEN_FUNCTIONS } from "./flatten.ts";
import { NUMBERS, extreme } from "./math.ts";
import { NETWORK_FUNCTIONS } from "./network.ts";
import { regex, spendFind } from "./regex.ts";
import { join } from "./strings.ts";

/** A fixed price, because the cookies of a request are limited by the size of its header. */
const COOKIE_STEPS = 200;
const UUID_STEPS = 10;

function merge(run: Run, left: unknown, right: unknown): unknown {
  if (!isMap(left) || !isMap(right)) return NO_OVERLOAD;
  const result = new Map<unknown, unknown>();
  for (const map of [left, right]) {
    for (const key of mapKeys(map, run)) {
      if (run.spend(1)) return COST_LIMIT;
      result.set(key, mapGet(map, key, run));
    }
  }
  return result;
}

/** Replaces the first match. `$1`, `$name` and `${name}` stand for groups, `$$` for a dollar sign. */
function regexReplace(run: Run, text: unknown, pattern: unknown, replacement: unknown): unknown {
  if (typeof text !== "string" || typeof pattern !== "string" || typeof replacement !== "string") return NO_OVERLOAD;
  const compiled = regex(run, pattern);
  if (compiled instanceof Failure) return compiled;
  const occurs = compiled.automaton.test(run, text);
  if (occurs !== true) return occurs === false ? text : occurs;
  if (spendFind(run, compiled, text.length)) return COST_LIMIT;
  const matcher = compiled.pattern.matcher(text);
  if (!matcher.find()) return text;
  const names = compiled.pattern.namedGroups();
  const group = (name: string): string => {
    const number = /^\d+$/.test(name) ? Number(name) : names[name];
    return number === undefined || number > matcher.groupCount() ? "" : (matcher.group(number) ?? "");
  };
  const filled = replacement.replace(/\$(?:(\$)|\{(\w+)\}|(\w+))/g, (_all, dollar, braced, bare) =>
    dollar === "$" ? "$" : group(String(braced ?? bare)),
  );
  const result = text.slice(0, matcher.start()) + filled + text.slice(matcher.end());
  return run.spendLength(result.length) ? COST_LIMIT : result;
}

function strip(end: "start" | "end"): CelFunction {
  return (_run, text, part) => {
    if (typeof text !== "string" || typeof part !== "string") return NO_OVERLOAD;
    if (end === "start") return text.startsWith(part) ? text.slice(part.length) : text;
    return part !== "" && text.endsWith(part) ? text.slice(0, -part.length) : text;
  };
}

/** Adds a method of header views that shares its name with a method of strings or lists. */
function onHeaders(
  apply: (run: Run, view: HeaderView, argument: unknown) => unknown,
  otherwise?: CelFunction,
): CelFunction {
  return (run, value, ...args) => {
    if (value instanceof HeaderView) return apply(run, value, args[0]);
    return otherwise === undefined ? NO_OVERLOAD : otherwise(run, value, ...args);
  };
}

function cookie(run: Run, view: HeaderView, name: unknown): unknown {
  if (run.spend(COOKIE_STEPS)) return COST_LIMIT;
  if (typeof name !== "string") return NO_OVERLOAD;
  return view.cookie(name) ?? new Failure("no_such_key", `no such cookie: ${name}`);
}

export const GATEWAY_FUNCTIONS: readonly Declaration[] = [
  ...ENCODING_FUNCTIONS,
  ...NETWORK_FUNCTIONS,
  ...FLATTEN_FUNCTIONS,
  [".merge(map<A, B>, map<C, D>): map<dyn, dyn>", merge],
  [".regexReplace(string, string, string): string", regexReplace],
  [".stripPrefix(string, string): string", strip("start")],
  [".stripSuffix(string, string): string", strip("end")],
  [".join(list<string>): string; .join(headers): headers", onHeaders((_run, view) => view.shaped("join"), join)],
  [".raw(headers): headers", onHeaders((_run, view) => view.shaped("raw"))],
  [".split(headers): headers", onHeaders((_run, view) => view.shaped("split"))],
  [".redacted(headers): headers", onHeaders((_run, view) => view.redacted())],
  [".cookie(headers, string): string", onHeaders(cookie)],
  [".unredacted(secret): string", (_run, value) => (value instanceof Secret ? value.reveal() : NO_OVERLOAD)],
  ["fail(A): dyn", (_run, message) => new Failure("failed", typeof message === "string" ? message : "failed")],
  ["random(): double", () => toDouble(Math.random())],
  ["uuid(): string", (run) => (run.spend(UUID_STEPS) ? COST_LIMIT : randomUUID())],
  [`min(${NUMBERS}): dyn`, extreme(-1)],
  [`max(${NUMBERS}): dyn`, extreme(1)],
];
