/** Calls: macros first, then functions by name and number of arguments, checked once at compilation. */
import { type Call, type Node, qualifiedName } from "./ast.ts";
import { Run } from "./budget.ts";
import type { Compiler } from "./compile.ts";
import type { CelFunction } from "./environment.ts";
import { Failure, NO_OVERLOAD } from "./errors.ts";
import { hasFixedType } from "./fixed-type.ts";
import { ROUNDING } from "./functions/math.ts";
import { literalMatcher } from "./functions/regex.ts";
import { STANDARD_MACROS } from "./macros.ts";
import { unknownFunction } from "./names.ts";
import type { Program } from "./operators.ts";
import { isDouble } from "./values.ts";

/** Pure functions whose result for literal arguments is found at compilation. */
const FOLDED: ReadonlySet<string> = new Set(["cidr", "ip", "duration", "timestamp", "quantity", "url"]);

export function compileCall(compiler: Compiler, node: Call): Program {
  const { target, name, args } = node;
  const key = `${target === undefined ? "" : "."}${name}/${args.length}`;
  const qualified = target === undefined ? undefined : namespaceOf(compiler, target);
  if (qualified !== undefined) {
    const full = `${qualified.names.join(".")}.${name}`;
    const macro = STANDARD_MACROS.get(`${full}/${args.length}`);
    if (macro !== undefined) return macro(compiler, node);
    const found = findFunction(compiler, full, args.length, qualified.absolute);
    if (found !== undefined) {
      const call = ROUNDING.has(full) && args.every(hasFixedType) ? onDoublesOnly(found) : found;
      return invoke(call, compileAll(compiler, args));
    }
  }
  const macro = compiler.environment.macros.get(key) ?? compiler.environment.macros.get(anyArity(key));
  const compiled = (macro ?? STANDARD_MACROS.get(key))?.(compiler, node);
  if (compiled !== undefined) return compiled;
  if (target === undefined) {
    const found = findFunction(compiler, name, args.length, node.absolute);
    if (found === undefined) {
      return compiler.unknown(unknownFunction(name, args.length, compiler.environment, node.position));
    }
    return fold(name, args, invoke(found, compileAll(compiler, args)));
  }
  return method(compiler, node, target);
}

function method(compiler: Compiler, node: Call, target: Node): Program {
  const { name, args } = node;
  const { functions } = compiler.environment;
  const found = functions.get(`.${name}/${args.length}`);
  if (found === undefined) {
    const qualified = namespaceOf(compiler, target);
    const [root = ""] = qualified?.names ?? [];
    // `nosuch.f(x)`: the namespace is as unknown as the function, and the function is what the author meant.
    const full = qualified === undefined || compiler.environment.variables.has(root);
    const wanted = full ? `.${name}` : `${qualified.names.join(".")}.${name}`;
    return compiler.unknown(unknownFunction(wanted, args.length, compiler.environment, node.position));
  }
  const operand = compiler.compile(target);
  const [pattern] = args;
  if (name === "matches" && pattern?.kind === "constant" && typeof pattern.value === "string") {
    return matchesLiteral(operand, pattern.value);
  }
  return invoke(found, [operand, ...compileAll(compiler, args)]);
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

/** The dotted name before a call, unless it starts with a local variable. */
function namespaceOf(compiler: Compiler, target: Node): { names: string[]; absolute: boolean } | undefined {
  const name = qualifiedName(target);
  if (name === undefined) return undefined;
  return name.absolute || compiler.localSlot(name.names[0] as string) === undefined ? name : undefined;
}

function findFunction(compiler: Compiler, name: string, arity: number, absolute: boolean): CelFunction | undefined {
  const { functions } = compiler.environment;
  for (const candidate of compiler.candidates(name, absolute)) {
    const found = functions.get(`${candidate}/${arity}`) ?? functions.get(`${candidate}/*`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function anyArity(key: string): string {
  return key.replace(/\/\d+$/, "/*");
}

function compileAll(compiler: Compiler, nodes: readonly Node[]): Program[] {
  return nodes.map((node) => compiler.compile(node));
}

function fold(name: string, args: readonly Node[], program: Program): Program {
  if (!FOLDED.has(name) || !args.every((arg) => arg.kind === "constant")) return program;
  const value = program(new Run({ root: () => undefined }, 0, 1000));
  return () => value;
}

function invoke(call: CelFunction, args: readonly Program[]): Program {
  const [first, second] = args;
  if (args.length === 1 && first !== undefined) {
    return (run) => {
      const a = first(run);
      return a instanceof Failure ? a : call(run, a);
    };
  }
  if (args.length === 2 && first !== undefined && second !== undefined) {
    return (run) => {
      const a = first(run);
      if (a instanceof Failure) return a;
      const b = second(run);
      return b instanceof Failure ? b : call(run, a, b);
    };
  }
  return (run) => {
    const values: unknown[] = [];
    for (const arg of args) {
      const value = arg(run);
      if (value instanceof Failure) return value;
      values.push(value);
    }
    return call(run, ...values);
  };
}
