/** Shows operators how the HTTP handler calls a backend, in traced requests: settings and head. */
import type { BackendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { DebugTrace, OutgoingHead } from "../exchange/debug-trace.ts";

/** Shows the settings that govern the calls of a backend. */
export function tracePolicies(debug: DebugTrace, settings: BackendSettings): void {
  const effectivePolicy = Object.entries(settings)
    .filter(([name, value]) => name !== "$typeName" && value !== undefined)
    .map(([policy]) => ({ policy }));
  debug.record({ type: "policySelection", phase: "backend", effectivePolicy });
}

/** Shows the request as it leaves. */
export function traceHead(debug: DebugTrace, head: OutgoingHead, isAuthenticated: boolean): void {
  if (isAuthenticated) debug.outgoing("backend auth", head, true);
  debug.outgoing("final request", head, isAuthenticated);
}
