/**
 * `transformations`, `overrides` and `defaults` of an `ai` block: sets top-level fields of the client's body. All
 * expressions see the body as the client sent it, as `llmRequest`. Then the overrides are written, over them the results
 * of the expressions, and last the defaults, which also fill a field that an expression has removed.
 */
import type { AiPolicy } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { BackendDeps } from "../../backends/handler.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import { jsonOf } from "../../policies/shared/expression-support.ts";
import type { Json, JsonObject } from "../shared/json.ts";

interface FixedField {
  readonly name: string;
  /** Returns the value; a list or an object is a new one each time, because later steps change bodies in place. */
  readonly value: () => Json;
}

interface ComputedField {
  readonly name: string;
  readonly expression: Expression;
}

export class BodyFields {
  readonly #overrides: readonly FixedField[];
  readonly #transformations: readonly ComputedField[];
  readonly #defaults: readonly FixedField[];
  /** Whether an expression reads `request.body`, which then has to be in memory. */
  readonly readsRequestBody: boolean;

  constructor(
    { overrides, transformations, defaults }: Pick<AiPolicy, "overrides" | "transformations" | "defaults">,
    expression: BackendDeps["expression"],
  ) {
    this.#overrides = compileFixed(overrides);
    this.#defaults = compileFixed(defaults);
    this.#transformations = lastOfEach(transformations).map(({ field, expression: source }) => ({
      name: field,
      expression: expression(source, "llm"),
    }));
    this.readsRequestBody = this.#transformations.some((field) => field.expression.reads.requestBody);
  }

  apply(body: JsonObject, exchange: Exchange): void {
    const computed = this.#compute(body, exchange);
    for (const { name, value } of this.#overrides) setField(body, name, value());
    // Null removes the field, as a failure does.
    for (const { name, value } of computed) setField(body, name, value ?? undefined);
    for (const { name, value } of this.#defaults) if (!hasField(body, name)) setField(body, name, value());
  }

  #compute(body: JsonObject, exchange: Exchange): { readonly name: string; readonly value: Json | undefined }[] {
    if (this.#transformations.length === 0) return [];
    exchange.setRoot("llmRequest", body);
    return this.#transformations.map(({ name, expression }) => ({ name, value: jsonOf(expression, exchange) }));
  }
}

function compileFixed(fields: AiPolicy["overrides"]): FixedField[] {
  return lastOfEach(fields).map(({ field, valueJson }) => {
    // The translator prints the text, so it is JSON.
    const parse = (): Json => JSON.parse(valueJson) as Json;
    const value = parse();
    return { name: field, value: typeof value === "object" && value !== null ? parse : () => value };
  });
}

/** Returns the last entry for each field. */
function lastOfEach<T extends { readonly field: string }>(entries: readonly T[]): T[] {
  return [...new Map(entries.map((entry) => [entry.field, entry])).values()];
}

/** A field that is null counts as set. */
function hasField(body: JsonObject, name: string): boolean {
  return Object.hasOwn(body, name) && body[name] !== undefined;
}

/** @param value undefined to remove the field */
export function setField(body: JsonObject, name: string, value: Json | undefined): void {
  // Defined and not assigned: assigning "__proto__" would change the prototype of the body.
  if (name === "__proto__")
    Object.defineProperty(body, name, { value, writable: true, enumerable: true, configurable: true });
  // JSON.stringify skips undefined members; deleting a member would make the object slow to print.
  else if (value !== undefined || name in body) body[name] = value;
}
