/**
 * The events of `/debug/trace` (docs/reference/admin.md) and the interface that records them for one request. Parts of
 * the data plane record into `exchange.debug`, which is undefined unless an operator waits for this request;
 * src/proxy/debug-trace implements it.
 */
import type { HeaderList } from "../../lib/header-list.ts";
import type { Reply } from "./exchange.ts";

/** Moments of a request at which its state is shown. */
export type RequestStage = "initial request" | "gateway policies" | "route policies" | "backend auth" | "final request";
export type ResponseStage = "raw response" | "backend response ready" | "final response";
export type BodyStage = "llm request before translation" | "final request" | "llm raw response" | "response";

export type DebugSeverity = "success" | "info" | "warn" | "error";

/** A policy that is in force, with the object and field that it comes from. */
interface PolicyInForce {
  readonly policy: string;
  readonly origin?: string | undefined;
}

/** An endpoint that could have been chosen, as the choice saw it. */
export interface CandidateEndpoint {
  readonly endpoint: string;
  readonly health: number;
  readonly latencySeconds: number;
  readonly pendingRequests: number;
  readonly capacity: number;
  readonly score: number;
  readonly evicted: boolean;
}

export type DebugMessage =
  | { readonly type: "requestStarted" }
  | {
      readonly type: "policySelection";
      readonly phase: PolicyPhase;
      readonly effectivePolicy: readonly PolicyInForce[];
    }
  | {
      readonly type: "routeSelection";
      readonly selectedRoute: { readonly route: string; readonly rule: string } | null;
      readonly evaluatedRoutes: readonly string[];
    }
  | { readonly type: "policy"; readonly kind: string; readonly result: PolicyResult }
  | { readonly type: "policyEvent"; readonly kind: string; readonly details: unknown }
  | { readonly type: "cel"; readonly expr: string; readonly requestState?: unknown; readonly result: unknown }
  | {
      readonly type: "authorizationResult";
      readonly rules: readonly AuthorizationRuleResult[];
      readonly result: "allow" | "deny";
    }
  | { readonly type: "traceSampling"; readonly decision: boolean }
  | { readonly type: "backendCallStart"; readonly target: string }
  | { readonly type: "backendCallResult"; readonly status: number | null; readonly error: string | null }
  | { readonly type: "llmRouteResolved"; readonly provider: string; readonly routeType: string }
  | {
      readonly type: "llmRequestDetected";
      readonly provider: string;
      readonly inputFormat: string;
      readonly upstreamRouteType: string;
      readonly requestModel: string;
      readonly streaming: boolean;
    }
  | {
      readonly type: "llmStreamingTranslation";
      readonly provider: string;
      readonly inputFormat: string;
      readonly upstreamRouteType: string;
      readonly streamFormat: string;
    }
  | {
      readonly type: "endpointSelection";
      readonly candidates: readonly CandidateEndpoint[];
      readonly chosen: string;
      readonly cause: "score" | "affinity" | "override" | "onlyRejected";
    }
  | {
      readonly type: "endpointPick";
      readonly result: string;
      readonly endpoints: readonly string[];
      readonly error: string | null;
    }
  | { readonly type: "mcpFanout"; readonly targets: readonly McpTargetOutcome[] };

export type PolicyPhase = "frontend" | "listenerFrontend" | "gateway" | "route" | "backend" | "subBackend";

type PolicyResult =
  | { readonly type: "skip"; readonly reason: string }
  | { readonly type: "apply"; readonly details: unknown; readonly snapshot: unknown };

export interface AuthorizationRuleResult {
  /** The expression of the rule. */
  readonly name: string;
  readonly matched: boolean;
  readonly mode: "allow" | "deny" | "require";
}

export interface McpTargetOutcome {
  readonly target: string;
  readonly method: string;
  readonly outcome: string;
  /** Items of a list before and after authorization and filters; absent for other methods. */
  readonly itemsBefore?: number;
  readonly itemsAfter?: number;
}

/** The head of a request as it leaves: it holds credentials of the gateway, which are never shown. */
export interface OutgoingHead {
  readonly method: string;
  readonly path: string;
  readonly headers: HeaderList;
}

/** When an event began, and how it went where its message alone does not say. */
export interface DebugTiming {
  /** performance.now() at the beginning; unset for an instant. */
  readonly startedAtMs?: number | undefined;
  readonly severity?: DebugSeverity | undefined;
  /** Where it happened, outer first: route, policy, attempt. */
  readonly scope?: readonly string[] | undefined;
}

export interface DebugTrace {
  record(message: DebugMessage, timing?: DebugTiming): void;
  /** Returns the roots of expressions as JSON, with secrets masked. @param only names of roots; by default all */
  state(only?: ReadonlySet<string>): unknown;
  /** Shows the request as policies see it. */
  request(stage: RequestStage): void;
  /** Shows the request as it leaves. @param isAuthenticated true when credentials of the gateway are in it */
  outgoing(stage: RequestStage, head: OutgoingHead, isAuthenticated: boolean): void;
  response(stage: ResponseStage, reply: Pick<Reply, "status" | "headers">): void;
  body(stage: BodyStage, body: Buffer): void;
  /** Shows a body that streams once the request is over. @param read returns what has passed of it */
  bodyLater(stage: BodyStage, read: () => Buffer): void;
}
