/**
 * What a macro is: a call that is compiled and checked with the syntax of its arguments. The compiler and the checker
 * pass themselves as MacroCompiler and MacroChecker, so that a macro depends on neither of them.
 */
import type { Call, Node } from "./ast.ts";
import type { Program } from "./budget.ts";
import type { CelType } from "./types.ts";

/** What a macro uses of the compiler. */
export interface MacroCompiler {
  readonly environment: { readonly variables: ReadonlyMap<string, CelType>; readonly escapedFields: boolean };
  readonly reads: { add(root: string, field: string | undefined): void };
  compile(node: Node): Program;
  /** Compiles the operand of a selection without recording a read, because the longer chain has recorded it. */
  operand(node: Node): Program;
  noteRead(node: Node): void;
  /** Compiles `body` with new local variables in scope. */
  withLocals<T>(names: readonly string[], body: (slots: readonly number[]) => T): T;
}

/** What a macro uses of the checker. */
export interface MacroChecker {
  readonly types: { resolve(type: CelType): CelType; join(one: CelType, other: CelType): CelType };
  check(node: Node): CelType;
  /** Checks a node that must have a certain type. @throws CelError no_such_overload */
  wants(wanted: CelType, node: Node, where: string): CelType;
  /** Checks `body` with the local variables in scope. */
  withLocals<T>(locals: readonly { readonly name: string; readonly type: CelType }[], body: () => T): T;
}

export type CompileMacro = (compiler: MacroCompiler, call: Call) => Program;
export type CheckMacro = (checker: MacroChecker, call: Call) => CelType;

export interface Macro {
  readonly compile: CompileMacro;
  readonly check: CheckMacro;
}

/** Keys are those of a FunctionTable. */
export type MacroTable = ReadonlyMap<string, Macro>;
