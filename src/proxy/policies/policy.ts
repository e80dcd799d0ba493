/** The one shape of every behaviour of the data plane: compiled once per configuration, run once per request. */
import type { ExternalService } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import type { CelPhase } from "../../cel/phases.ts";
import type { Logger } from "../../lib/log.ts";
import type { SharedTable } from "../../lib/shared-table.ts";
import type { PasswordChecker } from "../../lib/password/checker.ts";
import type { Callout } from "../callouts/callout.ts";
import type { OutboundSubtype } from "../observability/outbound.ts";
import type { Exchange, MaybePromise, Next, Reply } from "../pipeline/exchange.ts";

export interface Policy<Spec> {
  /**
   * Prepares everything that is not per request. The returned function is named after the policy, returns
   * synchronously when it can, and never reads configuration objects.
   * @throws ConfigError for what only the data plane can know to be wrong
   */
  compile(spec: Spec, deps: PolicyDeps): Middleware;
}

/** One step of a chain. Policies see an Exchange; the steps of a route (rewrites, redirects) also what routing found. */
export type Middleware<Seen extends Exchange = Exchange> = (exchange: Seen, next: Next) => MaybePromise<Reply>;

export interface Kept {
  close(): void;
}

/** What a policy may ask of the process. Policies never import each other, the router or the backends. */
export interface PolicyDeps {
  readonly log: Logger;
  /** Milliseconds that never go backwards; passed in so that tests own the clock. */
  readonly nowMs: () => number;
  /**
   * Compiles a user's expression. One that does not compile comes back as one that always fails: the policy stays in
   * force and its own rule for failures decides. What it reads is collected, so that bodies are captured only for it.
   * @param place which variables it may read, as `x-gw-cel` of the field says; "request" before routing is "gateway"
   */
  readonly expression: (source: string, place: CelPhase) => Expression;
  /** Asks threads of their own: a password hash takes longer to compute than a request may hold the event loop. */
  readonly passwords: Pick<PasswordChecker, "check">;
  /**
   * State that survives a reconfiguration of the same policy (rate buckets), and is closed when the policy goes.
   * @param key unique within the process: policy key, unit and position
   */
  readonly keep: <T extends Kept>(key: string, create: () => T) => T;
  /** Memory for what must count once for all threads of the replica. */
  readonly slots: SharedTable;
  /** How to ask a service outside, and what for; one that could not be resolved says so in `invalidReason`. */
  readonly callout: (service: ExternalService | undefined, subtype: OutboundSubtype) => Callout;
  /** Key of the GwPolicy that owns this unit, for `keep` and log lines. */
  readonly owner: string;
}
