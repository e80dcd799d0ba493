/**
 * The table of standard macros by name and number of arguments, and the lookup of the macro for a call. The checker and
 * the compiler both use it.
 */
import type { Call } from "../ast.ts";
import type { Macro, MacroTable } from "../macro.ts";
import {
  checkAlternative,
  checkBinding,
  checkDyn,
  checkFilter,
  checkHas,
  checkIntoEntries,
  checkIntoList,
  checkIntoMap,
  checkOptionalMap,
  checkQuantifier,
} from "./check.ts";
import {
  alternative,
  binding,
  collecting,
  dyn,
  existsOne,
  has,
  intoFilteredList,
  intoList,
  intoMap,
  intoMapEntries,
  optionalMap,
  quantifier,
} from "./compile.ts";

/** One row per macro: its compilation and its type check. */
export const STANDARD_MACROS: MacroTable = new Map<string, Macro>([
  ["has/1", { compile: has, check: checkHas }],
  ["dyn/1", { compile: dyn, check: checkDyn }],
  ["cel.bind/3", { compile: binding(({ args }) => args[1]), check: checkBinding(({ args }) => args[1]) }],
  [".all/2", { compile: quantifier(false, 1), check: checkQuantifier(1) }],
  [".all/3", { compile: quantifier(false, 2), check: checkQuantifier(2) }],
  [".exists/2", { compile: quantifier(true, 1), check: checkQuantifier(1) }],
  [".exists/3", { compile: quantifier(true, 2), check: checkQuantifier(2) }],
  [".exists_one/2", { compile: existsOne(1), check: checkQuantifier(1) }],
  [".exists_one/3", { compile: existsOne(2), check: checkQuantifier(2) }],
  [".existsOne/2", { compile: existsOne(1), check: checkQuantifier(1) }],
  [".existsOne/3", { compile: existsOne(2), check: checkQuantifier(2) }],
  [".map/2", { compile: collecting(1, intoList), check: checkIntoList(1) }],
  [".map/3", { compile: collecting(1, intoList), check: checkIntoList(1) }],
  [".filter/2", { compile: collecting(1, intoFilteredList), check: checkFilter }],
  [".transformList/3", { compile: collecting(2, intoList), check: checkIntoList(2) }],
  [".transformList/4", { compile: collecting(2, intoList), check: checkIntoList(2) }],
  [".transformMap/3", { compile: collecting(2, intoMap), check: checkIntoMap }],
  [".transformMap/4", { compile: collecting(2, intoMap), check: checkIntoMap }],
  [".transformMapEntry/3", { compile: collecting(2, intoMapEntries), check: checkIntoEntries }],
  [".transformMapEntry/4", { compile: collecting(2, intoMapEntries), check: checkIntoEntries }],
  [".optMap/2", { compile: optionalMap(false), check: checkOptionalMap(false) }],
  [".optFlatMap/2", { compile: optionalMap(true), check: checkOptionalMap(true) }],
  [".or/1", { compile: alternative("optional"), check: checkAlternative("optional") }],
  [".orValue/1", { compile: alternative("value"), check: checkAlternative("value") }],
]);

const STANDARD_NAMES = bareNames(STANDARD_MACROS);
const furtherNames = new WeakMap<MacroTable, ReadonlySet<string>>();

/** Strips namespace and arity: "cel.bind/3" → "bind". */
function bareNames(macros: MacroTable): ReadonlySet<string> {
  return new Set([...macros.keys()].map((key) => key.replace(/^.*\./, "").replace(/\/.*$/, "")));
}

/** Rules out most calls by their bare name, before a key is built. */
function mayBeMacro(name: string, { macros }: { readonly macros: MacroTable }): boolean {
  if (STANDARD_NAMES.has(name)) return true;
  let names = furtherNames.get(macros);
  if (names === undefined) furtherNames.set(macros, (names = bareNames(macros)));
  return names.has(name);
}

/** @param namespace the dotted name before the call, when there is one */
export function macroOf(
  { target, name, args }: Call,
  namespace: { readonly names: readonly string[] } | undefined,
  environment: { readonly macros: MacroTable },
): Macro | undefined {
  if (!mayBeMacro(name, environment)) return undefined;
  const arity = args.length;
  const qualified = namespace === undefined ? undefined : `${namespace.names.join(".")}.${name}/${arity}`;
  const key = target === undefined ? name : `.${name}`;
  return (
    (qualified === undefined ? undefined : STANDARD_MACROS.get(qualified)) ??
    environment.macros.get(`${key}/${arity}`) ??
    environment.macros.get(`${key}/*`) ??
    STANDARD_MACROS.get(`${key}/${arity}`)
  );
}
