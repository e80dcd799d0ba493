/**
 * What an answer means for the member of a set that gave it (`health`, proxying.md 8). Without a condition of the user a
 * failure lowers the score and never evicts; with one it alone decides.
 */
import type { BackendHealth, Eviction } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { CelError } from "../../cel/errors.ts";
import type { Expression } from "../../cel/expression.ts";
import type { CelPhase } from "../../cel/phases.ts";
import type { Scope } from "../../cel/scope.ts";
import type { BackendMeter } from "../../telemetry/metrics.ts";
import type { EndpointStats } from "./endpoint-stats.ts";

const DEFAULT_EVICTION_MS = 3000;

export class HealthRule {
  /** Undefined: status 500 and above, a gRPC status that is not 0, and no answer are unhealthy. */
  readonly condition: Expression | undefined;
  readonly #eviction: Eviction | undefined;
  /** Milliseconds of a clock that all threads share. */
  readonly nowMs: () => number;
  /** Hears of calls and of members that are put out of rotation; undefined: nobody counts. */
  readonly meter: BackendMeter | undefined;

  constructor(
    block: BackendHealth | undefined,
    deps: {
      readonly expression: (source: string, place: CelPhase) => Expression;
      readonly nowMs: () => number;
      readonly meter?: BackendMeter | undefined;
    },
  ) {
    const source = block?.unhealthyCondition ?? "";
    this.condition = source === "" ? undefined : deps.expression(source, "log");
    this.#eviction = block?.eviction;
    this.nowMs = deps.nowMs;
    this.meter = deps.meter;
  }

  /** A condition that fails says nothing against the member. */
  finds(condition: Expression, scope: Scope): boolean {
    try {
      return condition.evaluate(scope) === true;
    } catch (error) {
      if (error instanceof CelError) return false;
      throw error;
    }
  }

  /** @param hintMs when the upstream says it can be asked again @param backoffMs between retries of the request; 0: none */
  recordUnhealthy(record: EndpointStats, hintMs: number | undefined, backoffMs: number): void {
    const before = record.health;
    const failures = record.recordUnhealthy();
    if (this.condition === undefined) return;
    const eviction = this.#eviction;
    const baseMs =
      eviction?.durationMs ??
      hintMs ??
      (backoffMs > 0 ? backoffMs : undefined) ??
      (eviction === undefined ? undefined : DEFAULT_EVICTION_MS);
    if (baseMs === undefined || !isDue(eviction, failures, before)) return;
    const restored = eviction?.restoreHealth;
    if (record.evict(baseMs, restored === undefined ? undefined : restored / 100, this.nowMs())) this.meter?.ejected();
  }
}

/** @param failures in a row, this one included @param health before this failure */
function isDue(eviction: Eviction | undefined, failures: number, health: number): boolean {
  const { consecutiveFailures, healthThreshold } = eviction ?? {};
  if (consecutiveFailures === undefined && healthThreshold === undefined) return true;
  if (consecutiveFailures !== undefined && consecutiveFailures > 0 && failures >= consecutiveFailures) return true;
  return healthThreshold !== undefined && health < healthThreshold / 100;
}
