/** The variables of expressions that run for one item of an MCP backend: those of its request, and `mcp`. */
import type { Scope } from "../../cel/scope.ts";
import type { ItemKind } from "./methods.ts";

/** An item with the name that its target knows. */
export interface Item {
  readonly kind: ItemKind;
  readonly target: string;
  readonly name: string;
}

export type Variable = "tool" | "prompt" | "resource" | "task";
type Variables = Readonly<Partial<Record<Variable, Pick<Item, "target" | "name">>>>;

/** The variable of each kind. A template stands for the resources whose URIs it makes. */
export const VARIABLES: Readonly<Record<ItemKind, Variable>> = {
  tool: "tool",
  prompt: "prompt",
  resource: "resource",
  template: "resource",
  task: "task",
};

const NONE = { target: "", name: "" };

export class ItemScope implements Scope {
  readonly #caller: Scope;
  readonly #variables: Variables;

  /** @param item undefined for a request that concerns no single item */
  constructor(caller: Scope, item: Item | undefined, others: Variables = {}) {
    this.#caller = caller;
    if (item === undefined) this.#variables = others;
    else this.#variables = { ...others, [VARIABLES[item.kind]]: { target: item.target, name: item.name } };
  }

  root(name: string): unknown {
    return name === "mcp" ? this.#variables : this.#caller.root(name);
  }

  /** Returns a scope in which every kind of item exists; those that the request is not about have empty names. */
  withAllKinds(): ItemScope {
    const all = { tool: NONE, prompt: NONE, resource: NONE, task: NONE, ...this.#variables };
    return new ItemScope(this.#caller, undefined, all);
  }
}
