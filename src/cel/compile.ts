/**
 * Syntax tree → closures. Names, functions and known fields are checked here, once; nothing is interpreted while a
 * request waits. In: text and an Environment. Out: an Expression. Follows the CEL language definition.
 */
import { type Index, type Node, type Select, qualifiedName } from "./ast.ts";
import { compileCall } from "./calls.ts";
import type { Environment } from "./environment.ts";
import { CelError, Failure, NO_SUCH_KEY } from "./errors.ts";
import { hasFixedType } from "./fixed-type.ts";
import { fieldOf, indexOf, optionalField, optionalIndex } from "./lookup.ts";
import { checkFields, unescapeField, unknownVariable } from "./names.ts";
import * as operators from "./operators.ts";
import type { Program } from "./operators.ts";
import { ReadsCollector } from "./reads.ts";
import { TYPES, adopt } from "./values.ts";

/** One compilation: the environment, the local variables in scope, and what was read so far. */
export class Compiler {
  readonly environment: Environment;
  readonly reads: ReadsCollector = new ReadsCollector();
  readonly #locals: { readonly name: string; readonly slot: number }[] = [];
  /** Without checks an unknown name is a failure of the running program, and only if it is reached. */
  readonly #checked: boolean;
  slots = 0;

  constructor(environment: Environment, checked = true) {
    this.environment = environment;
    this.#checked = checked;
  }

  /** What stands for a name that does not exist. @throws the error, when the compilation checks */
  unknown(error: CelError): Program {
    if (this.#checked) throw error;
    const failure = new Failure(error.code, error.message);
    return () => failure;
  }

  /** Compiles `body` with fresh local variables. */
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

  compile(node: Node): Program {
    this.noteRead(node);
    return this.#compileNoted(node);
  }

  /** Every spelling under which a name is looked up, the innermost namespace first. */
  candidates(name: string, absolute: boolean): string[] {
    const { container } = this.environment;
    if (absolute || container === "") return [name];
    const parts = container.split(".");
    return [...parts.map((_, at) => `${parts.slice(0, parts.length - at).join(".")}.${name}`), name];
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
        return value instanceof Failure ? value : optionalField(value, field);
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
      if (optional) return optionalIndex(value, key);
      const found = indexOf(value, key);
      return found === undefined ? NO_SUCH_KEY : found;
    };
  }

  /** The operand of a selection: its read is already noted as part of the longer chain. */
  operand(node: Node): Program {
    return this.#chain(node) === undefined ? this.compile(node) : this.#compileNoted(node);
  }

  #field(node: Select): string {
    return this.environment.escapedFields && !node.quoted ? unescapeField(node.field) : node.field;
  }

  /** A variable, a local variable, a type name, or fields of one of them. The longest declared name wins. */
  #name(node: Node): Program {
    const name = qualifiedName(node);
    // Callers pass identifiers and pure selections only.
    if (name === undefined) throw new CelError("unsupported", "not a name", node.position);
    const [first = ""] = name.names;
    const slot = name.absolute ? undefined : this.localSlot(first);
    if (slot !== undefined) return (run) => run.locals[slot];
    for (let length = name.names.length; length > 0; length--) {
      const program = this.#declared(name.names.slice(0, length).join("."), name.absolute);
      if (program === undefined) continue;
      const { escapedFields } = this.environment;
      return name.names
        .slice(length)
        .reduce((operand, field) => selectField(operand, escapedFields ? unescapeField(field) : field), program);
    }
    return this.unknown(unknownVariable(first, this.environment, rootOf(node).position));
  }

  #declared(name: string, absolute: boolean): Program | undefined {
    for (const candidate of this.candidates(name, absolute)) {
      if (this.environment.variables.has(candidate)) return rootVariable(candidate);
      const type = TYPES.get(candidate);
      if (type !== undefined) return () => type;
    }
    return undefined;
  }

  /** The member chain from a variable: `a.b["c"]` → [a, b, c]; undefined entries stand for computed indexes. */
  #chain(node: Node): { root: string; fields: { name: string | undefined; position: number }[] } | undefined {
    const fields: { name: string | undefined; position: number }[] = [];
    let at = node;
    while (at.kind === "select" || at.kind === "index") {
      const { position } = at;
      if (at.kind === "select") fields.push({ name: this.#field(at), position });
      else fields.push({ name: constantText(at.index), position });
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
    this.reads.add(root, fields[0]?.name);
    if (this.#checked) checkFields(root, fields, this.environment);
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
    const found = fieldOf(value, field);
    return found === undefined ? missing : found;
  };
}

function rootOf(node: Node): Node {
  let at = node;
  while (at.kind === "select") at = at.operand;
  return at;
}

function constantText(node: Node): string | undefined {
  return node.kind === "constant" && typeof node.value === "string" ? node.value : undefined;
}

function literalTexts(node: Node): ReadonlySet<unknown> | undefined {
  if (node.kind !== "list" || node.items.length === 0) return undefined;
  if (!node.items.every(({ value, optional }) => !optional && constantText(value) !== undefined)) return undefined;
  return new Set(node.items.map(({ value }) => constantText(value)));
}
