/**
 * `accessLog` of a Bind: which requests and connections get a line, and the fields of the line (docs/access-log.md).
 */
import type { AccessLog } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Scope } from "../../cel/scope.ts";
import type { AttributeSink } from "../../telemetry/attributes.ts";
import { holds } from "../policies/shared/expression-support.ts";
import { compileAttributes, type CompiledAttributes } from "./attributes.ts";
import type { StreamInfo } from "./stream-info/stream-info.ts";
import { FIELDS, type Column, type Field } from "./fields.ts";
import type { ReportDeps } from "./report-deps.ts";

export interface LogReport {
  /** Returns whether a finished request or connection gets a line. */
  wants(scope: Scope): boolean;
  /**
   * Adds the fields in their order, each name once.
   * @param debug true to include the fields that only debug lines have
   */
  addTo(sink: AttributeSink, info: StreamInfo, debug: boolean): void;
}

/** The part of the configuration that log lines and OTLP records share. */
export type LogSpec = Pick<AccessLog, "otelNames" | "filter" | "attributes">;

export function compileLogReport({ otelNames, filter, attributes }: LogSpec, deps: ReportDeps): LogReport {
  const compiled = compileAttributes(attributes, (source) => deps.expression(source, "log"));
  return new CompiledLog(otelNames ? "otel" : "legacy", compiled, compileFilter(filter, deps));
}

type Filter = (scope: Scope) => boolean;

const everything: Filter = () => true;

/**
 * An expression lets a record pass only when it yields `true`; one that fails does not.
 * @param source an empty expression lets everything pass
 */
export function compileFilter(source: string, { expression }: ReportDeps): Filter {
  if (source === "") return everything;
  const filter = expression(source, "log");
  return (scope) => holds(filter, scope);
}

/** Consecutive fields of one kind: those of LLM requests are skipped together for all others, and so on. */
interface Group {
  readonly kind: Field["kind"];
  readonly columns: readonly Column[];
}

function groupsOf(fields: readonly Field[], preset: "legacy" | "otel", hidden: ReadonlySet<string>): Group[] {
  const groups: { kind: Field["kind"]; columns: Column[] }[] = [];
  for (const field of fields) {
    const { kind } = field;
    if (groups.length === 0 || groups.at(-1)?.kind !== kind) groups.push({ kind, columns: [] });
    groups.at(-1)?.columns.push(...field[preset].filter(({ name }) => !hidden.has(name)));
  }
  return groups;
}

class CompiledLog implements LogReport {
  readonly wants: Filter;
  readonly #groups: readonly Group[];
  readonly #allGroups: readonly Group[];
  readonly #hidden: CompiledAttributes["hidden"];
  readonly #added: CompiledAttributes["added"];

  constructor(preset: "legacy" | "otel", { hidden, added }: CompiledAttributes, wants: Filter) {
    this.wants = wants;
    this.#hidden = hidden;
    this.#added = added;
    this.#allGroups = groupsOf(FIELDS, preset, hidden);
    this.#groups = groupsOf(
      FIELDS.filter(({ debug }) => debug === undefined),
      preset,
      hidden,
    );
  }

  addTo(sink: AttributeSink, info: StreamInfo, debug: boolean): void {
    const added = this.#added?.(info.scope);
    const groups = debug ? this.#allGroups : this.#groups;
    for (const { kind, columns } of groups) {
      if (kind !== undefined && info.http?.[kind] === undefined) continue;
      for (const { name, read } of columns) {
        const value = read(info);
        if (value !== undefined && added?.has(name) !== true) sink.add(name, value);
      }
    }
    const notes = info.http?.notes;
    if (notes !== undefined)
      for (const [name, value] of notes)
        if (!this.#hidden.has(name) && added?.has(name) !== true) sink.add(name, value);
    if (added !== undefined) for (const [name, value] of added) sink.add(name, value);
  }
}

/** The log of a Bind without a policy. */
export const EVERYTHING: LogReport = new CompiledLog("legacy", { hidden: new Set(), added: undefined }, everything);
