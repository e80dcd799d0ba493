/** Compiles calls: macros first, then functions by name and number of arguments. */
import type { Call, Node } from "../ast.ts";
import { Run, type Program } from "../budget.ts";
import type { Compiler } from "./compile.ts";
import type { CelFunction } from "../function.ts";
import { COST_LIMIT, Failure, NO_OVERLOAD } from "../errors.ts";
import { hasFixedType } from "./fixed-type.ts";
import { ROUNDING } from "../functions/math.ts";
import { literalMatcher } from "../functions/regex.ts";
import { macroOf } from "../macros/table.ts";
import { functionOf, namespaceOf } from "../resolve.ts";
import { isDouble } from "../values.ts";

/** Pure functions that are evaluated at compile time when all arguments are constants (constant folding). */
const FOLDED: ReadonlySet<string> = new Set(["cidr", "ip", "duration", "timestamp", "quantity", "url"]);

export function compileCall(compiler: Compiler, node: Call): Program {
  const { target, name, args } = node;
  const { environment } = compiler;
  const namespace = target === undefined ? undefined : namespaceOf(target, compiler);
  const macro = macroOf(node, namespace, environment);
  if (macro !== undefined) return macro.compile(compiler, node);
  if (target === undefined) {
    const found = functionOf(name, args.length, node.absolute, environment);
    return found === undefined ? missing(name) : fold(name, args, invoke(found.call, compileAll(compiler, args)));
  }
  if (namespace !== undefined) {
    const full = `${namespace.names.join(".")}.${name}`;
    const found = functionOf(full, args.length, namespace.absolute, environment);
    if (found !== undefined) {
      const call = ROUNDING.has(full) && args.every(hasFixedType) ? onDoublesOnly(found.call) : found.call;
      return invoke(call, compileAll(compiler, args));
    }
  }
  return method(compiler, node, target);
}

function method(compiler: Compiler, { name, args }: Call, target: Node): Program {
  const found = compiler.environment.functions.get(`.${name}/${args.length}`);
  if (found === undefined) return missing(name);
  const operand = compiler.compile(target);
  const [pattern] = args;
  if (name === "matches" && pattern?.kind === "constant" && typeof pattern.value === "string") {
    return matchesLiteral(operand, pattern.value);
  }
  return invoke(found.call, [operand, ...compileAll(compiler, args)]);
}

/** Returns a program that fails. Only an unchecked program can contain it. */
function missing(name: string): Program {
  const failure = new Failure("unknown_function", `unknown function "${name}"`);
  return () => failure;
}

function onDoublesOnly(call: CelFunction): CelFunction {
  return (run, value) => (isDouble(value) ? call(run, value) : NO_OVERLOAD);
}

function matchesLiteral(operand: Program, pattern: string): Program {
  const matches = literalMatcher(pattern);
  return (run) => {
    const value = operand(run);
    if (value instanceof Failure) return value;
    return typeof value === "string" ? matches(run, value) : NO_OVERLOAD;
  };
}

function compileAll(compiler: Compiler, nodes: readonly Node[]): Program[] {
  return nodes.map((node) => compiler.compile(node));
}

function fold(name: string, args: readonly Node[], program: Program): Program {
  if (!FOLDED.has(name) || !args.every((arg) => arg.kind === "constant")) return program;
  const value = program(new Run({ root: () => undefined }, 0, 1000));
  return () => value;
}

/**
 * Compiles a call with its arguments. Every call costs one step, and a function charges for its own further work. One
 * and two arguments have versions of their own, without an array of values.
 */
function invoke(call: CelFunction, args: readonly Program[]): Program {
  const [first, second] = args;
  if (args.length === 1 && first !== undefined) {
    return (run) => {
      const a = first(run);
      if (a instanceof Failure) return a;
      return --run.steps < 0 ? COST_LIMIT : call(run, a);
    };
  }
  if (args.length === 2 && first !== undefined && second !== undefined) {
    return (run) => {
      const a = first(run);
      if (a instanceof Failure) return a;
      const b = second(run);
      if (b instanceof Failure) return b;
      return --run.steps < 0 ? COST_LIMIT : call(run, a, b);
    };
  }
  return (run) => {
    const values: unknown[] = [];
    for (const arg of args) {
      const value = arg(run);
      if (value instanceof Failure) return value;
      values.push(value);
    }
    return run.spend(1 + values.length) ? COST_LIMIT : call(run, ...values);
  };
}
