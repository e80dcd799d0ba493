/** What the reports of a Bind are compiled with: expressions, exporters, and what tests replace. */
import type { CelPhase } from "../../cel/environments/phases.ts";
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import type { Exporters } from "./exporters.ts";

export interface ReportDeps {
  /** Returns an expression that always fails when the source does not compile. */
  readonly expression: (source: string, place: CelPhase) => Expression;
  readonly exporters: Exporters;
  /** The roots that exist before any request: `env`. */
  readonly process: Scope;
  /** Returns a number in [0, 1), like Math.random; tests inject a seeded one. */
  readonly random: () => number;
}
