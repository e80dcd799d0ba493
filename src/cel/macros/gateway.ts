/**
 * Macros of the request environment, which need the syntax of their arguments: lazy alternatives, bindings, and
 * iteration over the keys or values of a map.
 */
import type { Call, Node } from "../ast.ts";
import { COST_LIMIT, Failure, INVALID_ARGUMENT, NO_OVERLOAD } from "../errors.ts";
import type { CompileMacro, Macro, MacroCompiler, MacroTable } from "../macro.ts";
import { checkBinding, checkCoalesce, checkFilterKeys, checkMapValues, checkVariables } from "./check.ts";
import { binding } from "./compile.ts";
import type { Program } from "../budget.ts";
import { adopt, isMap, mapGet, mapKeys } from "../values.ts";
import { variableName } from "../variable-name.ts";

/**
 * Tells whether default() replaces a value: null, a missing key or a missing attribute. Other failures stay failures.
 */
function isAbsent(value: unknown): boolean {
  if (value === null) return true;
  return value instanceof Failure && (value.code === "no_such_key" || value.code === "no_such_attribute");
}

const orDefault: CompileMacro = (compiler, { args }) => {
  const value = compiler.compile(args[0] as Node);
  const fallback = compiler.compile(args[1] as Node);
  return (run) => {
    const result = value(run);
    return isAbsent(result) ? fallback(run) : result;
  };
};

/**
 * Returns the first value that is neither null nor a failure. A spent budget ends the search; when no value is left the
 * result is null if any argument was null, and the last failure otherwise.
 */
const coalesce: CompileMacro = (compiler, { args }) => {
  const programs = args.map((arg) => compiler.compile(arg));
  return (run) => {
    let last: unknown = INVALID_ARGUMENT;
    for (const program of programs) {
      const value = program(run);
      if (value === COST_LIMIT) return value;
      if (value !== null && !(value instanceof Failure)) return value;
      if (value === null || last !== null) last = value;
    }
    return last;
  };
};

const variables: CompileMacro = (compiler) => {
  const names = [...compiler.environment.variables.keys()];
  for (const name of names) compiler.reads.add(name, undefined);
  return ({ scope }) => {
    const found = new Map<string, unknown>();
    for (const name of names) {
      const value = adopt(scope.root(name));
      if (value !== undefined && value !== null) found.set(name, value);
    }
    return found;
  };
};

/** Iterates over a map with one variable, its key or its value, and lets `keep` collect the entries. */
function overMap(
  variable: "key" | "value",
  keep: (result: Map<unknown, unknown>, key: unknown, value: unknown, computed: unknown) => Failure | undefined,
): CompileMacro {
  return (compiler: MacroCompiler, { target, args }: Call): Program => {
    const operand = compiler.compile(target as Node);
    return compiler.withLocals([variableName(args[0])], ([slot = 0]) => {
      const body = compiler.compile(args[1] as Node);
      const cost = 2 + (args[1] as Node).size;
      return (run) => {
        const map = operand(run);
        if (map instanceof Failure) return map;
        if (!isMap(map)) return NO_OVERLOAD;
        const result = new Map<unknown, unknown>();
        for (const key of mapKeys(map, run)) {
          if (run.spend(cost)) return COST_LIMIT;
          const value = mapGet(map, key, run);
          run.locals[slot] = variable === "key" ? key : value;
          const computed = body(run);
          const failure = computed instanceof Failure ? computed : keep(result, key, value, computed);
          if (failure !== undefined) return failure;
        }
        return result;
      };
    });
  };
}

const mapValues = overMap("value", (result, key, _value, computed) => {
  result.set(key, computed);
  return undefined;
});

const filterKeys = overMap("key", (result, key, value, wanted) => {
  if (typeof wanted !== "boolean") return NO_OVERLOAD;
  if (wanted) result.set(key, value);
  return undefined;
});

export const GATEWAY_MACROS: MacroTable = new Map<string, Macro>([
  ["default/2", { compile: orDefault, check: checkCoalesce }],
  ["coalesce/*", { compile: coalesce, check: checkCoalesce }],
  ["variables/0", { compile: variables, check: checkVariables }],
  [".with/2", { compile: binding(({ target }) => target), check: checkBinding(({ target }) => target) }],
  [".mapValues/2", { compile: mapValues, check: checkMapValues }],
  [".filterKeys/2", { compile: filterKeys, check: checkFilterKeys }],
]);
