/**
 * Compiles the standard macros (cel-spec "Macros"): presence tests, comprehensions over one or two variables, bindings,
 * and the macros of optional values. table.ts lists them.
 */
import type { Call, Node } from "../ast.ts";
import type { Run, Program } from "../budget.ts";
import { COST_LIMIT, CelError, Failure, NO_OVERLOAD } from "../errors.ts";
import { hasField, putEntry } from "../lookup.ts";
import type { CompileMacro, MacroCompiler } from "../macro.ts";
import { unescapeField } from "../names.ts";
import { NONE, Optional, adopt, isMap, mapGet, mapKeys } from "../values.ts";
import { variableNames, variableName } from "../variable-name.ts";

/** Calls `visit` for each element with the local variables set; a result other than undefined ends the iteration. */
type Walk = (run: Run, visit: (item: unknown, key: unknown) => unknown) => unknown;

/** @param bodies the arguments after the variable names, compiled with the variables in scope */
function comprehension(
  compiler: MacroCompiler,
  call: Call,
  variables: 1 | 2,
  build: (walk: Walk, bodies: readonly Program[]) => Program,
): Program {
  const range = compiler.compile(call.target as Node);
  const names = variableNames(call, variables);
  return compiler.withLocals(names, (slots) => {
    const bodies = call.args.slice(variables);
    const cost = bodies.reduce((sum, body) => sum + body.size, 1);
    return build(
      walker(range, slots, cost),
      bodies.map((body) => compiler.compile(body)),
    );
  });
}

/**
 * Iterates over a list or a map and charges for each element in proportion to the body, so that nested comprehensions
 * are bounded by the budget.
 */
function walker(range: Program, [first = 0, second]: readonly number[], cost: number): Walk {
  return (run, visit) => {
    const source = range(run);
    if (source instanceof Failure) return source;
    const isList = Array.isArray(source);
    if (!isList && !isMap(source)) return NO_OVERLOAD;
    const items: readonly unknown[] = isList ? source : mapKeys(source, run);
    for (let at = 0; at < items.length; at++) {
      if (run.spend(cost)) return COST_LIMIT;
      const item = adopt(items[at]);
      const key = isList ? at : item;
      if (second === undefined) run.locals[first] = item;
      else {
        run.locals[first] = key;
        run.locals[second] = isList ? item : mapGet(source, item, run);
      }
      const result = visit(item, key);
      if (result !== undefined) return result;
    }
    return undefined;
  };
}

function failureOf(value: unknown): Failure {
  return value instanceof Failure ? value : NO_OVERLOAD;
}

/**
 * Compiles `all` and `exists`: an element that decides the result absorbs the failures of the others, before and after
 * it.
 */
export function quantifier(decisive: boolean, variables: 1 | 2): CompileMacro {
  return (compiler, call) =>
    comprehension(compiler, call, variables, (walk, [predicate]) => {
      const test = predicate as Program;
      return (run) => {
        let failure: Failure | undefined;
        const result = walk(run, () => {
          const value = test(run);
          if (value === decisive) return decisive;
          if (value === COST_LIMIT) return value;
          if (value !== !decisive) failure ??= failureOf(value);
          return undefined;
        });
        return result ?? failure ?? !decisive;
      };
    });
}

export function existsOne(variables: 1 | 2): CompileMacro {
  return (compiler, call) =>
    comprehension(compiler, call, variables, (walk, [predicate]) => {
      const test = predicate as Program;
      return (run) => {
        let count = 0;
        const result = walk(run, () => {
          const value = test(run);
          if (value === true) count++;
          return typeof value === "boolean" ? undefined : failureOf(value);
        });
        return result ?? count === 1;
      };
    });
}

/** Compiles the macros that build a value: an optional filter, then a transformation whose results are collected. */
export function collecting(
  variables: 1 | 2,
  start: () => { add(run: Run, value: unknown, key: unknown, item: unknown): Failure | undefined; result: unknown },
): CompileMacro {
  return (compiler, call) =>
    comprehension(compiler, call, variables, (walk, bodies) => {
      const filter = bodies.length === 2 ? bodies[0] : undefined;
      const transform = bodies.at(-1) as Program;
      return (run) => {
        const target = start();
        const failure = walk(run, (item, key) => {
          const wanted = filter === undefined ? true : filter(run);
          if (wanted === false) return undefined;
          if (wanted !== true) return failureOf(wanted);
          const value = transform(run);
          return value instanceof Failure ? value : target.add(run, value, key, item);
        });
        return failure ?? target.result;
      };
    });
}

export function intoList(): { add(run: Run, value: unknown): undefined; result: unknown } {
  const result: unknown[] = [];
  return {
    result,
    add: (_, value) => {
      result.push(value);
      return undefined;
    },
  };
}

export function intoFilteredList(): {
  add(run: Run, value: unknown, key: unknown, item: unknown): Failure | undefined;
  result: unknown;
} {
  const result: unknown[] = [];
  return {
    result,
    add: (_run, value, _key, item) => {
      if (typeof value !== "boolean") return NO_OVERLOAD;
      if (value) result.push(item);
      return undefined;
    },
  };
}

export function intoMap(): { add(run: Run, value: unknown, key: unknown): undefined; result: Map<unknown, unknown> } {
  const result = new Map<unknown, unknown>();
  return {
    result,
    add: (_, value, key) => {
      result.set(key, value);
      return undefined;
    },
  };
}

export function intoMapEntries(): { add(run: Run, value: unknown): Failure | undefined; result: unknown } {
  const result = new Map<unknown, unknown>();
  return {
    result,
    add: (run, value) => {
      if (!isMap(value)) return NO_OVERLOAD;
      for (const key of mapKeys(value, run)) {
        const failure = putEntry(run, result, key, mapGet(value, key, run));
        if (failure !== undefined) return failure;
      }
      return undefined;
    },
  };
}

export const has: CompileMacro = (compiler, { args, position }) => {
  const [node] = args;
  if (node?.kind !== "select") throw new CelError("syntax", "has() takes a selection like a.b", position);
  if (node.optional) {
    const program = compiler.compile(node);
    return (run) => {
      const value = program(run);
      return value instanceof Optional ? value.value !== undefined : failureOf(value);
    };
  }
  compiler.noteRead(node);
  const operand = compiler.operand(node.operand);
  const field = compiler.environment.escapedFields && !node.quoted ? unescapeField(node.field) : node.field;
  return (run) => {
    const value = operand(run);
    if (value instanceof Failure) return value.code === "no_such_attribute" ? false : value;
    return hasField(run, value, field);
  };
};

/** Evaluates a value once and binds it to a name for the body, which is the last argument. */
export function binding(initOf: (call: Call) => Node | undefined): CompileMacro {
  return (compiler, call) => {
    const init = compiler.compile(initOf(call) as Node);
    return compiler.withLocals([variableName(call.args[0])], ([slot = 0]) => {
      const body = compiler.compile(call.args.at(-1) as Node);
      return (run) => {
        const value = init(run);
        if (value instanceof Failure) return value;
        run.locals[slot] = value;
        return body(run);
      };
    });
  };
}

export function optionalMap(flat: boolean): CompileMacro {
  return (compiler, { target, args }) => {
    const operand = compiler.compile(target as Node);
    return compiler.withLocals([variableName(args[0])], ([slot = 0]) => {
      const body = compiler.compile(args[1] as Node);
      return (run) => {
        const value = operand(run);
        if (!(value instanceof Optional)) return failureOf(value);
        if (value.value === undefined) return NONE;
        run.locals[slot] = value.value;
        const result = body(run);
        if (result instanceof Failure) return result;
        if (!flat) return new Optional(result);
        return result instanceof Optional ? result : NO_OVERLOAD;
      };
    });
  };
}

/** Compiles `or` and `orValue`, which evaluate their argument only when they need it. */
export function alternative(wanted: "optional" | "value"): CompileMacro {
  return (compiler, { target, args }) => {
    const operand = compiler.compile(target as Node);
    const fallback = compiler.compile(args[0] as Node);
    return (run) => {
      const value = operand(run);
      if (!(value instanceof Optional)) return failureOf(value);
      if (value.value !== undefined) return wanted === "optional" ? value : value.value;
      const other = fallback(run);
      return wanted === "value" || other instanceof Optional ? other : failureOf(other);
    };
  };
}

export const dyn: CompileMacro = (compiler, { args }) => compiler.compile(args[0] as Node);
