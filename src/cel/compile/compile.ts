/**
 * The compiler: syntax tree → closures. Each node becomes one function over its compiled operands (closure generation),
 * so no tree is interpreted while a request waits. The Checker has already reported wrong names and types; a program
 * that was not checked fails when it reaches such a node.
 *
 * On the way the compiler assigns a slot to each local variable and records the attributes that the program can read.
 * Frequent shapes have closures of their own: comparison with a literal string, membership in a list of literal
 * strings, selection of a constant key.
 */
import { type Index, type Node, type Select, qualifiedName } from "../ast.ts";
import { compileCall } from "./calls.ts";
import type { Environment } from "../environment.ts";
import { Failure, NO_SUCH_KEY } from "../errors.ts";
import { hasFixedType } from "./fixed-type.ts";
import { fieldOf, indexOf, optionalField, optionalIndex } from "../lookup.ts";
import { unescapeField } from "../names.ts";
import * as operators from "./operators.ts";
import type { Program } from "../budget.ts";
import { ReadsCollector } from "../reads.ts";
import { meaningOf } from "../resolve.ts";
import { TYPES, type Type, adopt } from "../values.ts";

/** The state of one compilation: the environment, the local variables in scope, and the reads so far. */
export class Compiler {
  readonly environment: Environment;
  readonly reads: ReadsCollector = new ReadsCollector();
  readonly #locals: { readonly name: string; readonly slot: number }[] = [];
  /** Nodes declared as double, although JSON may hold an int for them. */
  readonly #doubles: ReadonlySet<Node>;
  slots = 0;

  constructor(environment: Environment, doubles: ReadonlySet<Node>) {
    this.environment = environment;
    this.#doubles = doubles;
  }

  /** Compiles `body` with new local variables in scope. */
  withLocals<T>(names: readonly string[], body: (slots: readonly number[]) => T): T {
    const slots = names.map((name) => {
      const slot = this.slots++;
      this.#locals.push({ name, slot });
      return slot;
    });
    const result = body(slots);
    this.#locals.length -= names.length;
    return result;
  }

  localSlot(name: string): number | undefined {
    return this.#locals.findLast((local) => local.name === name)?.slot;
  }

  hasLocal(name: string): boolean {
    return this.localSlot(name) !== undefined;
  }

  compile(node: Node): Program {
    this.noteRead(node);
    const program = this.#compileNoted(node);
    return this.#doubles.has(node) ? operators.asDouble(program) : program;
  }

  #compileNoted(node: Node): Program {
    switch (node.kind) {
      case "constant": {
        const { value } = node;
        return () => value;
      }
      case "identifier":
        return this.#name(node);
      case "select":
        return this.#select(node);
      case "index":
        return this.#index(node);
      case "call":
        return compileCall(this, node);
      case "and":
      case "or":
        return operators.logic(
          node.kind,
          node.args.map((arg) => this.compile(arg)),
        );
      case "not":
        return operators.not(this.compile(node.operand));
      case "negate":
        return operators.negate(this.compile(node.operand));
      case "conditional":
        return operators.conditional(
          this.compile(node.condition),
          this.compile(node.consequent),
          this.compile(node.otherwise),
        );
      case "binary":
        return this.#binary(node);
      case "list":
        return operators.list(node.items.map((item) => ({ ...item, value: this.compile(item.value) })));
      case "map":
        return operators.map(
          node.entries.map((entry) => ({ ...entry, key: this.compile(entry.key), value: this.compile(entry.value) })),
        );
    }
  }

  #binary(node: Extract<Node, { kind: "binary" }>): Program {
    const { operator } = node;
    const left = this.compile(node.left);
    const right = this.compile(node.right);
    switch (operator) {
      case "==":
      case "!=": {
        const wanted = operator === "==";
        const literal = node.right.kind === "constant" ? node.right.value : undefined;
        if (typeof literal === "string") return operators.equalsText(left, literal, wanted);
        return operators.equality(left, right, wanted);
      }
      case "in": {
        const texts = literalTexts(node.right);
        if (texts !== undefined) return operators.membershipInTexts(left, texts);
        return operators.membership(left, right, this.environment.substringIn);
      }
      case "<":
      case "<=":
      case ">":
      case ">=":
        return operators.order(operator, left, right);
      default:
        return operators.calculate(operator, left, right, !hasFixedType(node.left) || !hasFixedType(node.right));
    }
  }

  #select(node: Select): Program {
    const name = qualifiedName(node);
    if (name !== undefined && (name.absolute || this.localSlot(name.names[0] as string) === undefined)) {
      return this.#name(node);
    }
    const operand = this.operand(node.operand);
    const field = this.#field(node);
    if (node.optional) {
      return (run) => {
        const value = operand(run);
        return value instanceof Failure ? value : optionalField(run, value, field);
      };
    }
    return selectField(operand, field);
  }

  #index(node: Index): Program {
    const operand = this.operand(node.operand);
    if (node.index.kind === "constant" && typeof node.index.value === "string" && !node.optional) {
      return selectField(operand, node.index.value);
    }
    const index = this.compile(node.index);
    const { optional } = node;
    return (run) => {
      const value = operand(run);
      if (value instanceof Failure) return value;
      const key = index(run);
      if (key instanceof Failure) return key;
      if (optional) return optionalIndex(run, value, key);
      const found = indexOf(run, value, key);
      return found === undefined ? NO_SUCH_KEY : found;
    };
  }

  /** Compiles the operand of a selection without recording a read, because the longer chain has recorded it. */
  operand(node: Node): Program {
    return this.#chain(node) === undefined ? this.compile(node) : this.#compileNoted(node);
  }

  #field(node: Select): string {
    return this.environment.escapedFields && !node.quoted ? unescapeField(node.field) : node.field;
  }

  /** Compiles a variable, a local variable, a type name, or fields of one of them. */
  #name(node: Node): Program {
    const name = qualifiedName(node);
    const meaning = name === undefined ? undefined : meaningOf(name, this.environment, this);
    if (meaning === undefined) return unknownName(name?.names[0] ?? "");
    if (meaning.kind === "local") {
      const slot = this.localSlot(meaning.name) as number;
      return (run) => run.locals[slot];
    }
    const { escapedFields } = this.environment;
    const root = meaning.kind === "type" ? typeName(meaning.name) : rootVariable(meaning.name);
    return meaning.fields.reduce(
      (operand, field) => selectField(operand, escapedFields ? unescapeField(field) : field),
      root,
    );
  }

  /**
   * Returns the chain of selections from a variable: `a.b["c"]` → [a, b, c]; an undefined entry is a computed index.
   */
  #chain(node: Node): { root: string; fields: (string | undefined)[] } | undefined {
    const fields: (string | undefined)[] = [];
    let at = node;
    while (at.kind === "select" || at.kind === "index") {
      fields.push(at.kind === "select" ? this.#field(at) : constantText(at.index));
      at = at.operand;
    }
    if (at.kind !== "identifier" || (!at.absolute && this.localSlot(at.name) !== undefined)) return undefined;
    return { root: at.name, fields: fields.toReversed() };
  }

  noteRead(node: Node): void {
    if (node.kind !== "identifier" && node.kind !== "select" && node.kind !== "index") return;
    const chain = this.#chain(node);
    if (chain === undefined) return;
    const { root, fields } = chain;
    if (!this.environment.variables.has(root)) return;
    this.reads.add(root, fields[0]);
  }
}

function rootVariable(name: string): Program {
  const missing = new Failure("no_such_attribute", `${name} does not exist here`);
  return ({ scope }) => {
    const value = scope.root(name);
    return value === undefined ? missing : adopt(value);
  };
}

function selectField(operand: Program, field: string): Program {
  const missing = new Failure("no_such_key", `no such key: ${field}`);
  return (run) => {
    const value = operand(run);
    if (value instanceof Failure) return value;
    const found = fieldOf(run, value, field);
    return found === undefined ? missing : found;
  };
}

function typeName(name: string): Program {
  const type = TYPES.get(name) as Type;
  return () => type;
}

/** Returns a program that fails. Only an unchecked program can contain it. */
function unknownName(name: string): Program {
  const failure = new Failure("unknown_variable", `unknown variable "${name}"`);
  return () => failure;
}

function constantText(node: Node): string | undefined {
  return node.kind === "constant" && typeof node.value === "string" ? node.value : undefined;
}

function literalTexts(node: Node): ReadonlySet<unknown> | undefined {
  if (node.kind !== "list" || node.items.length === 0) return undefined;
  if (!node.items.every(({ value, optional }) => !optional && constantText(value) !== undefined)) return undefined;
  return new Set(node.items.map(({ value }) => constantText(value)));
}
