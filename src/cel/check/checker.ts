/**
 * The type checker. It finds, before an expression runs, what can never work: names that do not exist, fields that a
 * variable never has, and calls whose argument types no overload accepts. Admission and translation report its errors;
 * the compiler relies on it.
 *
 * Typing is gradual: a value of unknown type (`dyn`, such as a claim or a header) is compatible with every type, and
 * the checker rejects only what cannot succeed. Generic functions and empty literals use type variables, which
 * `Substitution` unifies on the way. The checker walks the tree once, bottom up.
 */
import { type Index, type Node, type Select, qualifiedName } from "../ast.ts";
import type { Environment } from "../environment.ts";
import { CelError } from "../errors.ts";
import { hint, unescapeField, unknownVariable } from "../names.ts";
import { isLongerThanNames, meaningOf } from "../resolve.ts";
import type { Overload } from "../signature.ts";
import {
  BOOL,
  type CelType,
  DYN,
  NULL,
  STRING,
  TYPE,
  isDyn,
  isKey,
  isNumber,
  listOf,
  mapOf,
  named,
  optionalOf,
  parametersOf,
  typeText,
} from "../types.ts";
import { kindOf } from "../values.ts";
import { checkCall, resultOf } from "./calls.ts";
import { BINARY, INDEX, MEMBERSHIP, MEMBERSHIP_OR_SUBSTRING, NEGATE, NOT } from "./operators.ts";
import { Substitution } from "./substitution.ts";

export class Checker {
  readonly environment: Environment;
  /** Whether to parse constant arguments as well, such as the pattern of `matches`. */
  readonly parsesConstants: boolean;
  readonly types: Substitution = new Substitution();
  /**
   * Selections of fields declared as double. JSON may hold 1 where 1.0 is meant, so the compiler converts these values.
   */
  readonly doubles: Set<Node> = new Set<Node>();
  readonly #locals: { readonly name: string; readonly type: CelType }[] = [];

  constructor(environment: Environment, parsesConstants = false) {
    this.environment = environment;
    this.parsesConstants = parsesConstants;
  }

  hasLocal(name: string): boolean {
    return this.#locals.some((local) => local.name === name);
  }

  /** Checks `body` with the local variables in scope. */
  withLocals<T>(locals: readonly { readonly name: string; readonly type: CelType }[], body: () => T): T {
    this.#locals.push(...locals);
    const result = body();
    this.#locals.length -= locals.length;
    return result;
  }

  /** @throws CelError unknown_variable, unknown_function, no_such_overload, with a position */
  check(node: Node): CelType {
    switch (node.kind) {
      case "constant":
        return typeOfConstant(node.value);
      case "identifier":
        return this.#name(node);
      case "select":
        return this.#select(node);
      case "index":
        return this.#index(node);
      case "call":
        return checkCall(this, node);
      case "and":
      case "or":
        for (const arg of node.args) this.wants(BOOL, arg, node.kind === "and" ? "&&" : "||");
        return BOOL;
      case "not":
        return this.#operator("!", NOT, node.operand, node.position);
      case "negate":
        return this.#operator("-", NEGATE, node.operand, node.position);
      case "conditional":
        this.wants(BOOL, node.condition, "the condition of ?:");
        return this.types.join(this.check(node.consequent), this.check(node.otherwise));
      case "binary":
        return this.#binary(node);
      case "list":
        return listOf(this.#joined(node.items));
      case "map":
        return this.#map(node);
    }
  }

  /** Checks a node that must have a certain type. @throws CelError no_such_overload */
  wants(wanted: CelType, node: Node, where: string): CelType {
    const type = this.types.resolve(this.check(node));
    if (this.types.isAssignable(type, wanted)) return type;
    throw new CelError("no_such_overload", `${where} needs ${typeText(wanted)}, not ${typeText(type)}`, node.position);
  }

  #binary({ operator, left, right, position }: Extract<Node, { kind: "binary" }>): CelType {
    const types = [left, right].map((operand) => this.types.resolve(this.check(operand)));
    if (operator === "==" || operator === "!=") return this.#equality(operator, types, position);
    if (operator === "in") {
      const overloads = this.environment.substringIn ? MEMBERSHIP_OR_SUBSTRING : MEMBERSHIP;
      return resultOf(this, overloads, types.map(comparable)) ?? this.#refuse("in", types, position);
    }
    const result = this.#operation(operator, BINARY[operator], types, position);
    // JSON does not distinguish 1 from 1.0, so the other operand does not determine the type of the result.
    return isNumber(result) && types.some(isDyn) ? DYN : result;
  }

  /**
   * Rejects a comparison of types that can never be equal. null is allowed everywhere, and numbers compare by value.
   */
  #equality(operator: "==" | "!=", types: readonly CelType[], position: number): CelType {
    const [left = DYN, right = DYN] = types.map(comparable);
    if (left === NULL || right === NULL || this.types.isAssignable(left, right)) return BOOL;
    return this.#refuse(operator, types, position);
  }

  #operator(name: string, overloads: readonly Overload[], operand: Node, position: number): CelType {
    return this.#operation(name, overloads, [this.check(operand)], position);
  }

  /** @throws CelError no_such_overload */
  #operation(name: string, overloads: readonly Overload[], types: readonly CelType[], position: number): CelType {
    return resultOf(this, overloads, types) ?? this.#refuse(name, types, position);
  }

  #refuse(name: string, types: readonly CelType[], position: number): never {
    const [left, right] = types.map((type) => typeText(this.types.resolve(type)));
    const message = right === undefined ? `"${name}" does not take ${left}` : `${left} ${name} ${right}`;
    throw new CelError("no_such_overload", `no such operation: ${message}`, position);
  }

  /** Returns the common type of the items of a literal. */
  #joined(items: readonly { readonly value: Node; readonly optional: boolean }[]): CelType {
    let common: CelType | undefined;
    for (const { value, optional } of items) {
      const type = optional ? this.#insideOptional(value) : this.check(value);
      common = common === undefined ? type : this.types.join(common, type);
    }
    return common ?? this.types.freshVariable();
  }

  #insideOptional(node: Node): CelType {
    const type = this.types.resolve(this.check(node));
    if (isDyn(type) || type.kind === "variable") return DYN;
    const [inner] = parametersOf(type, "optional_type") ?? [];
    if (inner !== undefined) return inner;
    throw new CelError("no_such_overload", `an optional entry needs optional, not ${typeText(type)}`, node.position);
  }

  #map({ entries }: Extract<Node, { kind: "map" }>): CelType {
    const keys = entries.map(({ key }) => ({ value: key, optional: false }));
    const key = this.types.resolve(this.#joined(keys));
    return mapOf(isKey(key) ? key : DYN, this.#joined(entries));
  }

  #name(node: Node): CelType {
    const name = qualifiedName(node);
    const meaning = name === undefined ? undefined : meaningOf(name, this.environment, this);
    if (name === undefined || meaning === undefined) {
      throw unknownVariable(name?.names[0] ?? "", this.environment, rootOf(node).position);
    }
    if (meaning.kind === "local") {
      return this.#locals.findLast((local) => local.name === meaning.name)?.type ?? DYN;
    }
    return meaning.kind === "type" ? TYPE : (this.environment.variables.get(meaning.name) ?? DYN);
  }

  #select(node: Select): CelType {
    const type = this.#isName(node) ? this.#name(node) : this.#selected(node);
    if (type.kind === "named" && type.name === "double") this.doubles.add(node);
    return type;
  }

  /** Tells whether the whole selection is one declared name, such as that of a type, and not a field of a variable. */
  #isName(node: Select): boolean {
    const root = rootOf(node);
    // The depth of a chain of selections equals the number of its names.
    if (root.kind === "identifier" && isLongerThanNames(root.name, node.depth, this.environment)) return false;
    const name = qualifiedName(node);
    if (name === undefined) return false;
    const meaning = meaningOf(name, this.environment, this);
    return meaning === undefined || (meaning.kind !== "local" && meaning.fields.length === 0);
  }

  #selected(node: Select): CelType {
    const operand = this.types.resolve(this.check(node.operand));
    const { escapedFields } = this.environment;
    const field = escapedFields && !node.quoted ? unescapeField(node.field) : node.field;
    const inner = parametersOf(operand, "optional_type")?.[0];
    if (inner !== undefined) return optionalOf(this.field(this.types.resolve(inner), field, node.position));
    const type = this.field(operand, field, node.position);
    return node.optional ? optionalOf(type) : type;
  }

  /** Returns the type of a field. @throws CelError unknown_variable when the object never has it, no_such_overload */
  field(type: CelType, field: string, position: number): CelType {
    if (type.kind === "variable" || isDyn(type)) return DYN;
    if (type.kind === "object") {
      const found = type.fields.get(field) ?? type.rest;
      if (found !== undefined) return found;
      const meant = hint(field, type.fields.keys(), `${type.name}.`);
      throw new CelError("unknown_variable", `unknown variable "${type.name}.${field}"${meant}`, position);
    }
    const [key, value] = parametersOf(type, "map") ?? [];
    if (key !== undefined && value !== undefined && this.types.isAssignable(STRING, key)) return value;
    throw new CelError("no_such_overload", `${typeText(type)} has no fields to select "${field}" from`, position);
  }

  #index(node: Index): CelType {
    const operand = this.types.resolve(this.check(node.operand));
    const inner = parametersOf(operand, "optional_type")?.[0];
    const container = inner === undefined ? operand : this.types.resolve(inner);
    const type = this.#indexed(container, node);
    return node.optional || inner !== undefined ? optionalOf(type) : type;
  }

  #indexed(container: CelType, { index, position }: Index): CelType {
    if (container.kind === "object") {
      this.wants(STRING, index, `an index of ${container.name}`);
      const constant = index.kind === "constant" ? index.value : undefined;
      return typeof constant === "string" ? this.field(container, constant, position) : DYN;
    }
    const type = this.check(index);
    const result = resultOf(this, INDEX, [container, type]);
    if (result !== undefined) return result;
    const texts = `${typeText(container)}[${typeText(this.types.resolve(type))}]`;
    throw new CelError("no_such_overload", `no such operation: ${texts}`, position);
  }
}

function typeOfConstant(value: unknown): CelType {
  return value === null ? NULL : named(kindOf(value) ?? "dyn");
}

/** Replaces all numeric types by one, because numbers compare by value across types. */
function comparable(type: CelType): CelType {
  if (type.kind !== "named") return type;
  if (isNumber(type)) return NUMBER;
  return type.parameters.length === 0 ? type : named(type.name, ...type.parameters.map(comparable));
}

const NUMBER = named("number");

function rootOf(node: Node): Node {
  let at = node;
  while (at.kind === "select") at = at.operand;
  return at;
}
