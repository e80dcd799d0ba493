/**
 * Overload resolution of the checker: which overload of a function accepts the arguments, and the message when none
 * does.
 */
import type { Call, Node } from "../ast.ts";
import type { FunctionEntry } from "../function.ts";
import { CelError } from "../errors.ts";
import { macroOf } from "../macros/table.ts";
import { unknownFunction } from "../names.ts";
import { functionOf, namespaceOf } from "../resolve.ts";
import type { Overload } from "../signature.ts";
import { type CelType, DYN, typeText } from "../types.ts";
import type { Checker } from "./checker.ts";
import { checkConstants } from "./constants.ts";

export function checkCall(checker: Checker, node: Call): CelType {
  const { target, name, args } = node;
  const { environment } = checker;
  const namespace = target === undefined ? undefined : namespaceOf(target, checker);
  const macro = macroOf(node, namespace, environment);
  if (macro !== undefined) return macro.check(checker, node);
  if (target === undefined) {
    const found = functionOf(name, args.length, node.absolute, environment);
    if (found === undefined) throw unknownFunction(name, args.length, environment, node.position);
    return apply(checker, node, { key: name, found, args });
  }
  if (namespace !== undefined) {
    const full = `${namespace.names.join(".")}.${name}`;
    const found = functionOf(full, args.length, namespace.absolute, environment);
    if (found !== undefined) return apply(checker, node, { key: full, found, args });
  }
  const method = environment.functions.get(`.${name}/${args.length}`);
  if (method !== undefined) return apply(checker, node, { key: `.${name}`, found: method, args: [target, ...args] });
  // In `nosuch.f(x)` the namespace is unknown as well, but the author means the function, so report that.
  const isMethod = namespace === undefined || environment.variables.has(namespace.names[0] as string);
  const wanted = isMethod ? `.${name}` : `${namespace.names.join(".")}.${name}`;
  throw unknownFunction(wanted, args.length, environment, node.position);
}

interface Application {
  /** The name in the function table, without the number of arguments. */
  readonly key: string;
  readonly found: FunctionEntry;
  /** The arguments, led by the receiver of a method. */
  readonly args: readonly Node[];
}

function apply(checker: Checker, node: Call, { key, found, args }: Application): CelType {
  const { overloads } = found;
  const types = args.map((arg) => checker.check(arg));
  const result = resultOf(checker, overloads, types);
  if (result !== undefined) {
    if (checker.parsesConstants) checkConstants(`${key}/${node.args.length}`, found, args, checker.environment.steps);
    return result;
  }
  const given = types.map((type) => typeText(checker.types.resolve(type))).join(", ");
  const taken = [...new Set(overloads.map(parametersText))].join(" or ");
  throw new CelError("no_such_overload", `"${node.name}" takes ${taken}, not (${given})`, node.position);
}

function parametersText({ parameters, further }: Overload): string {
  const texts = parameters.map(typeText);
  if (further !== undefined) texts.push(`${further.map(typeText).join(" | ")}, ...`);
  return `(${texts.join(", ")})`;
}

/**
 * Returns the result type of a call: that of the first overload that accepts the arguments, or dyn when several accept
 * them and their results differ.
 *
 * @returns undefined when no overload accepts them
 */
export function resultOf(
  checker: Checker,
  overloads: readonly Overload[],
  args: readonly CelType[],
): CelType | undefined {
  if (!args.every(isSimple)) return firstResult(checker, overloads, args);
  let known = resultsOfSimple.get(overloads);
  if (known === undefined) resultsOfSimple.set(overloads, (known = new Map<string, CelType>()));
  const key = args.map(typeText).join();
  const found = known.get(key);
  if (found !== undefined) return found;
  const result = firstResult(checker, overloads, args);
  if (result !== undefined && isSimple(result)) known.set(key, result);
  return result;
}

/**
 * Caches the results for arguments of simple types: they contain no type variables, so the answer never changes. There
 * are only a few such types.
 */
const resultsOfSimple = new WeakMap<readonly Overload[], Map<string, CelType>>();

function isSimple(type: CelType): boolean {
  return type.kind === "named" && type.parameters.length === 0;
}

function firstResult(
  { types }: Checker,
  overloads: readonly Overload[],
  args: readonly CelType[],
): CelType | undefined {
  let result: CelType | undefined;
  for (const overload of overloads) {
    const [given, ...parameters] = overload.isGeneric
      ? types.instantiate([overload.result, ...overload.parameters])
      : [overload.result, ...overload.parameters];
    const fits = types.attempt(
      () => hasArity(overload, args.length) && args.every((arg, at) => takes(types, overload, parameters[at], arg)),
    );
    if (!fits || given === undefined) continue;
    const found = types.resolve(given);
    if (result === undefined) result = found;
    else if (typeText(result) !== typeText(found)) return DYN;
  }
  return result;
}

function hasArity({ parameters, further }: Overload, count: number): boolean {
  return further === undefined ? parameters.length === count : parameters.length <= count;
}

function takes(
  types: Checker["types"],
  { further = [] }: Overload,
  parameter: CelType | undefined,
  arg: CelType,
): boolean {
  if (parameter !== undefined) return types.isAssignable(arg, parameter);
  return further.some((type) => types.isAssignable(arg, type));
}
