/** `accessLog` of a Bind: which requests get a line, and what stands in it (observability.md 1). */
import type { AccessLog } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Scope } from "../../cel/scope.ts";
import type { AttributeSink } from "../../telemetry/attributes.ts";
import { holds } from "../policies/expression-support.ts";
import { compileAttributes, type CompiledAttributes } from "./attributes.ts";
import type { Facts } from "./facts.ts";
import { FIELDS, type Column } from "./fields.ts";
import type { ReportDeps } from "./reports.ts";

export interface LogReport {
  /** Whether what is over gets a line. */
  wants(scope: Scope): boolean;
  /** Its fields in their order, each name once. @param debug those too that stand in a line only then */
  addTo(sink: AttributeSink, facts: Facts, debug: boolean): void;
}

/** What is left to say of a policy that sends its lines elsewhere, too. */
export type LogSpec = Pick<AccessLog, "otelNames" | "filter" | "attributes">;

export function compileLogReport({ otelNames, filter, attributes }: LogSpec, deps: ReportDeps): LogReport {
  const compiled = compileAttributes(attributes, (source) => deps.expression(source, "log"));
  return new CompiledLog(otelNames ? "otel" : "legacy", compiled, compileFilter(filter, deps));
}

type Filter = (scope: Scope) => boolean;

const everything: Filter = () => true;

/** Only `true` lets something through; an expression that fails does not. @param source empty: everything */
export function compileFilter(source: string, { expression }: ReportDeps): Filter {
  if (source === "") return everything;
  const filter = expression(source, "log");
  return (scope) => holds(filter, scope);
}

class CompiledLog implements LogReport {
  readonly wants: Filter;
  readonly #columns: readonly Column[];
  readonly #allColumns: readonly Column[];
  readonly #hidden: CompiledAttributes["hidden"];
  readonly #added: CompiledAttributes["added"];

  constructor(preset: "legacy" | "otel", { hidden, added }: CompiledAttributes, wants: Filter) {
    this.wants = wants;
    this.#hidden = hidden;
    this.#added = added;
    const shown = ({ name }: Column): boolean => !hidden.has(name);
    this.#allColumns = FIELDS.flatMap((field) => field[preset]).filter(shown);
    this.#columns = FIELDS.filter(({ debug }) => debug === undefined)
      .flatMap((field) => field[preset])
      .filter(shown);
  }

  addTo(sink: AttributeSink, facts: Facts, debug: boolean): void {
    const added = this.#added?.(facts.scope);
    const columns = debug ? this.#allColumns : this.#columns;
    for (const { name, read } of columns) {
      const value = read(facts);
      if (value !== undefined && added?.has(name) !== true) sink.add(name, value);
    }
    const notes = facts.http?.notes;
    if (notes !== undefined)
      for (const [name, value] of notes)
        if (!this.#hidden.has(name) && added?.has(name) !== true) sink.add(name, value);
    if (added !== undefined) for (const [name, value] of added) sink.add(name, value);
  }
}

/** Nobody said anything. */
export const EVERYTHING: LogReport = new CompiledLog("legacy", { hidden: new Set(), added: undefined }, everything);
