/** Runs one official case: compiles it in the environment that the case declares, evaluates it and compares. */
import { isDeepStrictEqual } from "node:util";
import { compileExpression, compileUnchecked, parseExpression } from "../../../src/cel/compile/compile-expression.ts";
import { RULE_STEPS, Run } from "../../../src/cel/budget.ts";
import type { Environment } from "../../../src/cel/environment.ts";
import { RULE_ENVIRONMENT } from "../../../src/cel/environments/index.ts";
import { CelError, type CelErrorCode } from "../../../src/cel/errors.ts";
import { ENCODING_FUNCTIONS } from "../../../src/cel/functions/encodings.ts";
import { functionTable } from "../../../src/cel/function.ts";
import { toHost } from "../../../src/cel/json.ts";
import { type CelType, DYN, typeText } from "../../../src/cel/types.ts";
import type { Case } from "./cases.ts";
import { typeOf, valueOf } from "./values.ts";

/** @returns undefined when the case passes, otherwise what came instead */
export function runCase(given: Case): string | undefined {
  const { expected } = given;
  let value: unknown;
  try {
    const wrongType = faultOfType(given);
    if (wrongType !== undefined || expected.kind === "type") return wrongType;
    value = evaluate(given);
  } catch (error) {
    if (!(error instanceof CelError)) return `threw ${String(error)}`;
    if (expected.kind === "error" && isOfKind(error.code, expected.message)) return undefined;
    return `${error.code}: ${error.message}`;
  }
  if (expected.kind === "error") return `gave ${show(value)}`;
  const wanted = toHost(new Run({ root: () => undefined }, 0, RULE_STEPS), valueOf(expected.value));
  return isDeepStrictEqual(value, wanted) ? undefined : `gave ${show(value)}`;
}

function faultOfType(given: Case): string | undefined {
  const { expected } = given;
  if (expected.kind === "error" || expected.type === undefined) return undefined;
  const wanted = typeText(typeOf(expected.type));
  const { type } = parseExpression(given.expression, environmentOf(given));
  return type === wanted ? undefined : `has type ${type}, not ${wanted}`;
}

function evaluate(given: Case): unknown {
  const bindings = new Map(Object.entries(given.bindings).map(([name, value]) => [name, valueOf(value)]));
  const compile = given.checked ? compileExpression : compileUnchecked;
  return compile(given.expression, environmentOf(given)).evaluate({ root: (name) => bindings.get(name) });
}

function environmentOf({ container, declarations, bindings }: Case): Environment {
  const variables = new Map(Object.keys(bindings).map((name) => [name, DYN as CelType]));
  const functions = new Map([...RULE_ENVIRONMENT.functions, ...functionTable(ENCODING_FUNCTIONS)]);
  for (const { name, ident, function: declared } of declarations) {
    if (ident !== undefined) variables.set(name, typeOf(ident.type));
    for (const { params = [], resultType } of declared?.overloads ?? []) {
      const overload = {
        parameters: params.map(typeOf),
        further: undefined,
        result: typeOf(resultType),
        isGeneric: true,
      };
      functions.set(`${name}/${params.length}`, { signature: name, call: notImplemented, overloads: [overload] });
    }
  }
  return { ...RULE_ENVIRONMENT, variables, functions, escapedFields: false, container };
}

/** The data declare functions only to deduce types with them. */
function notImplemented(): never {
  throw new Error("a declared function was called");
}

/**
 * The data describe errors in the words of one implementation, sometimes loosely ("foo", or a missing overload where a
 * division by zero is meant). These are the codes that each can mean; words that are not listed fail the case.
 */
const KINDS: readonly (readonly [RegExp, readonly CelErrorCode[]])[] = [
  [/undeclared reference|unknown variable/, ["unknown_variable"]],
  [/unbound function/, ["unknown_function"]],
  [/^foo$|by zero/, ["division_by_zero"]],
  [/^no matching overload/, ["no_such_overload", "division_by_zero"]],
  // A wrong number of arguments is found as a function that does not exist with so many.
  [/no.such.overload|found no matching overload/, ["no_such_overload", "unknown_function"]],
  [/does not support field selection|unsupported key type/, ["no_such_overload"]],
  [/no such key/, ["no_such_key", "no_such_overload"]],
  [/repeated key/, ["repeated_key"]],
  [/invalid UTF-8/, ["invalid_utf8"]],
  [/^range|overflow/, ["overflow", "invalid_argument"]],
  [/index.* out of range|substring range/, ["index_out_of_range"]],
  [/^invalid_argument/, ["invalid_argument", "index_out_of_range", "no_such_overload"]],
  [/conversion|parse error|not allowed|formatting|negative offset/, ["invalid_argument"]],
];

function isOfKind(code: CelErrorCode, message: string): boolean {
  const kind = KINDS.find(([pattern]) => pattern.test(message));
  return kind !== undefined && kind[1].includes(code);
}

function show(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => (typeof item === "bigint" ? `${item}n` : item));
}
