/**
 * Outlier ejection: decides what a response or a failure means for the endpoint that gave it, by the `health` block of
 * a policy. Without a condition, failures lower the score and never eject; with one, the condition alone decides what a
 * failure is, and `eviction` when failures eject. `Attempt` reports here. See docs/adr/0007-health-verdicts.md.
 */
import type { BackendHealth, Eviction } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { CelError } from "../../cel/errors.ts";
import type { Expression } from "../../cel/expression.ts";
import type { CelPhase } from "../../cel/environments/phases.ts";
import type { Scope } from "../../cel/scope.ts";
import type { BackendMeter } from "../../telemetry/metrics.ts";
import type { EndpointStats } from "./endpoint-stats.ts";

const DEFAULT_EVICTION_MS = 3000;

export class HealthRule {
  /**
   * undefined when the default applies: status 500 or above, a gRPC status other than 0, or no response is unhealthy.
   */
  readonly condition: Expression | undefined;
  readonly #eviction: Eviction | undefined;
  /** Milliseconds of a clock that all threads share. */
  readonly nowMs: () => number;
  /** Counts calls and ejections; undefined when they are not counted. */
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

  /** A condition whose evaluation fails does not count against the endpoint. */
  finds(condition: Expression, scope: Scope): boolean {
    try {
      return condition.evaluate(scope) === true;
    } catch (error) {
      if (error instanceof CelError) return false;
      throw error;
    }
  }

  /**
   * @param hintMs time after which the upstream asked to be called again
   * @param backoffMs time between retries of the request; 0 without retries
   */
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

/**
 * Tells whether a failure ejects.
 * @param failures in a row, this one included
 * @param health score before this failure
 */
function isDue(eviction: Eviction | undefined, failures: number, health: number): boolean {
  const { consecutiveFailures, healthThreshold } = eviction ?? {};
  if (consecutiveFailures === undefined && healthThreshold === undefined) return true;
  if (consecutiveFailures !== undefined && consecutiveFailures > 0 && failures >= consecutiveFailures) return true;
  return healthThreshold !== undefined && health < healthThreshold / 100;
}
