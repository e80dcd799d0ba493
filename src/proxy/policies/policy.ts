/**
 * The interface that every policy implements: compiled once per configuration, run once per request. The table is
 * index.ts; docs/developer/adding-a-policy.md shows how to add one.
 */
import type { ExternalService } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import type { CelPhase } from "../../cel/environments/phases.ts";
import type { Logger } from "../../lib/log.ts";
import type { SharedTable } from "../../lib/shared-table.ts";
import type { PasswordChecker } from "../../lib/password/checker.ts";
import type { Callout } from "../callouts/callout.ts";
import type { OutboundSubtype } from "../observability/tracing/outbound.ts";
import type { Exchange, MaybePromise, Next, Reply } from "../exchange/exchange.ts";

export interface Policy<Spec> {
  /**
   * Prepares everything that does not depend on a request. The returned function is named after the policy, returns
   * synchronously when it can, and never reads configuration objects.
   * @throws ConfigError for mistakes that only the data plane can detect
   */
  compile(spec: Spec, deps: PolicyDeps): Middleware;
}

/**
 * One step of a chain. Policies receive an Exchange; the steps of a route (rewrites, redirects) receive a
 * RoutedExchange.
 */
export type Middleware<Seen extends Exchange = Exchange> = (exchange: Seen, next: Next) => MaybePromise<Reply>;

export interface Kept {
  close(): void;
}

/** Services of the process that a policy may use. Policies never import each other, the router or the backends. */
export interface PolicyDeps {
  readonly log: Logger;
  /** Monotonic milliseconds; injected so that tests control the clock. */
  readonly nowMs: () => number;
  /**
   * Compiles an expression of the user. One that does not compile is returned as an expression that always fails: the
   * policy stays in force, and its own rule for failures decides. The chain captures a body only when some expression
   * reads it.
   * @param place selects the variables that it may read, as `x-gw-cel` of the field says; "request" before routing is
   * "gateway"
   */
  readonly expression: (source: string, place: CelPhase) => Expression;
  /** Checks passwords on worker threads: a password hash would block the event loop for too long. */
  readonly passwords: Pick<PasswordChecker, "check">;
  /**
   * Creates or returns state that survives a reconfiguration of the policy (rate buckets); it is closed when the policy
   * is removed.
   * @param key unique within the process: policy key, unit and position
   */
  readonly keep: <T extends Kept>(key: string, create: () => T) => T;
  /** Memory for counters that all threads of the replica share. */
  readonly slots: SharedTable;
  /**
   * Returns the client of an external service; one that could not be resolved has `invalidReason` set.
   * @param timeoutMs limit of a call, where the settings of the service name none
   */
  readonly callout: (service: ExternalService | undefined, subtype: OutboundSubtype, timeoutMs?: number) => Callout;
  /** Key of the GwPolicy that owns this unit, for `keep` and log lines. */
  readonly owner: string;
}
