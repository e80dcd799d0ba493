/**
 * Unification of type variables while an expression is checked: it decides whether a value of one type may be used
 * where another is expected, and binds type variables on the way.
 *
 * An overload may turn out not to fit only at its last argument. Every binding is therefore logged, and `attempt`
 * undoes the bindings of a failed trial (backtracking); without that, a rejected overload would narrow the types of the
 * next one. `#mentions` is the occurs check: a variable is never bound to a type that contains it, which would make
 * `resolve` recurse forever.
 */
import { type CelType, DYN, isDyn, named, parametersOf } from "../types.ts";

export class Substitution {
  readonly #bound = new Map<string, CelType>();
  readonly #log: { readonly name: string; readonly before: CelType | undefined }[] = [];
  #fresh = 0;

  /** @returns the result of `trial`; when it is false, all bindings of the trial are undone */
  attempt(trial: () => boolean): boolean {
    const mark = this.#log.length;
    if (trial()) return true;
    this.#undo(mark);
    return false;
  }

  /** Renames the variables of a signature, so that each call of a function has its own. */
  instantiate(types: readonly CelType[]): CelType[] {
    const suffix = `%${this.#fresh++}`;
    const rename = (type: CelType): CelType => {
      if (type.kind === "variable") return { kind: "variable", name: type.name + suffix };
      return type.kind === "object" || type.parameters.length === 0
        ? type
        : named(type.name, ...type.parameters.map(rename));
    };
    return types.map(rename);
  }

  freshVariable(): CelType {
    return { kind: "variable", name: `%${this.#fresh++}` };
  }

  /** Returns the type with all bound variables replaced. */
  resolve(type: CelType): CelType {
    if (type.kind === "object") return type;
    if (type.kind === "variable") {
      const bound = this.#bound.get(type.name);
      return bound === undefined ? type : this.resolve(bound);
    }
    return type.parameters.length === 0
      ? type
      : named(type.name, ...type.parameters.map((parameter) => this.resolve(parameter)));
  }

  isAssignable(from: CelType, to: CelType): boolean {
    return this.attempt(() => this.#assign(from, to));
  }

  /** Returns the type of a place that accepts both types: the more general one, or dyn when they are not compatible. */
  join(left: CelType, right: CelType): CelType {
    if (!this.isAssignable(left, right)) return DYN;
    return this.#mostGeneral(left, right);
  }

  #undo(mark: number): void {
    while (this.#log.length > mark) {
      const { name, before } = this.#log.pop() as { name: string; before: CelType | undefined };
      if (before === undefined) this.#bound.delete(name);
      else this.#bound.set(name, before);
    }
  }

  #bind(name: string, type: CelType): void {
    this.#log.push({ name, before: this.#bound.get(name) });
    this.#bound.set(name, type);
  }

  /**
   * Decides whether `from` fits `to`, and binds variables on both sides. dyn fits everything; null fits all types but
   * those of NOT_NULLABLE; otherwise names and parameters must agree.
   */
  #assign(from: CelType, to: CelType): boolean {
    if (to.kind === "variable") return this.#assignVariable(from, to.name);
    if (from.kind === "variable") return this.#assignVariable(to, from.name);
    if (isDyn(from) || isDyn(to)) return true;
    if (isNullable(from, to) || isNullable(to, from)) return true;
    if (from.kind === "object" || to.kind === "object") return sameObject(from, to);
    if (from.name !== to.name || from.parameters.length !== to.parameters.length) return false;
    return from.parameters.every((parameter, at) => this.#assign(parameter, to.parameters[at] ?? DYN));
  }

  /**
   * Binds a variable to a type. A bound variable is widened to the more general of both types: arguments int and dyn for
   * one variable make it dyn.
   */
  #assignVariable(type: CelType, name: string): boolean {
    if (type.kind === "variable" && type.name === name) return true;
    const bound = this.#bound.get(name);
    if (bound === undefined) {
      if (this.#mentions(type, name)) return false;
      this.#bind(name, type);
      return true;
    }
    const fits = this.isAssignable(type, bound) || this.isAssignable(bound, type);
    if (!fits) return false;
    const general = this.#mostGeneral(type, bound);
    if (!this.#mentions(general, name)) this.#bind(name, general);
    return true;
  }

  #mentions(type: CelType, name: string): boolean {
    if (type.kind === "object") return false;
    if (type.kind === "named") return type.parameters.some((parameter) => this.#mentions(parameter, name));
    if (type.name === name) return true;
    const bound = this.#bound.get(type.name);
    return bound !== undefined && this.#mentions(bound, name);
  }

  #mostGeneral(left: CelType, right: CelType): CelType {
    if (isNull(left)) return right;
    if (isNull(right)) return left;
    return this.#isAsGeneral(left, right) ? left : right;
  }

  #isAsGeneral(left: CelType, right: CelType): boolean {
    if (left.kind === "variable" || isDyn(left)) return true;
    if (right.kind === "variable" || isDyn(right)) return false;
    if (left.kind === "object") return right.kind === "object";
    if (right.kind === "object" || left.name !== right.name) return right.kind === "object";
    return left.parameters.every((parameter, at) => this.#isAsGeneral(parameter, right.parameters[at] ?? DYN));
  }
}

function isNull(type: CelType): boolean {
  return type.kind === "named" && type.name === "null_type";
}

/** Types that never accept null. All others do, for historic reasons of the language. */
const NOT_NULLABLE: ReadonlySet<string> = new Set([
  "bool",
  "int",
  "uint",
  "double",
  "string",
  "bytes",
  "list",
  "map",
  "type",
]);

function isNullable(nothing: CelType, type: CelType): boolean {
  return isNull(nothing) && (type.kind !== "named" || !NOT_NULLABLE.has(type.name));
}

/**
 * Decides whether two types are the same object, or an object and a map with string keys, which are interchangeable.
 */
function sameObject(left: CelType, right: CelType): boolean {
  if (left.kind === "object" && right.kind === "object") return left.name === right.name;
  const [key] = parametersOf(left, "map") ?? parametersOf(right, "map") ?? [];
  return key !== undefined && (key.kind !== "named" || key.name === "string" || isDyn(key));
}
