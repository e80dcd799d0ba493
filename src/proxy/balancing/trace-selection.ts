/**
 * Shows operators how the endpoint of a traced request was chosen. The HTTP and LLM handlers call it after the choice.
 */
import type { CandidateEndpoint, DebugTrace } from "../exchange/debug-trace.ts";
import type { BalancedEndpoint, PickOptions } from "./pick.ts";

/** Candidates in one event; a Service may have thousands. */
const MAX_CANDIDATES = 16;

/** An endpoint with its address and port, or the name of a provider. */
export interface NamedEndpoint extends BalancedEndpoint {
  readonly name: string;
}

interface MadeChoice extends Partial<PickOptions> {
  readonly chosen: string;
  readonly nowMs: number;
  /** An endpoint picker has named the endpoint; the terms of the scores did not count. */
  readonly isNamed?: boolean;
}

export function traceSelection(
  debug: DebugTrace,
  candidates: Iterable<NamedEndpoint>,
  { chosen, affinity, nowMs, isNamed = false }: MadeChoice,
): void {
  const described = Array.from(candidates, (endpoint) => describe(endpoint, nowMs));
  const onlyRejected = described.length > 0 && described.every(({ evicted }) => evicted);
  const picked = affinity === undefined ? "score" : "affinity";
  // The chosen one comes first, so that it is always among those that are shown.
  described.sort((a, b) => Number(b.endpoint === chosen) - Number(a.endpoint === chosen) || b.score - a.score);
  debug.record({
    type: "endpointSelection",
    candidates: described.slice(0, MAX_CANDIDATES),
    chosen,
    cause: isNamed ? "override" : onlyRejected ? "onlyRejected" : picked,
  });
}

function describe({ name, record, capacity }: NamedEndpoint, nowMs: number): CandidateEndpoint {
  const { health, latencySeconds, pending, score } = record;
  return {
    endpoint: name,
    health,
    latencySeconds,
    pendingRequests: pending,
    capacity,
    score,
    evicted: record.isEvicted(nowMs),
  };
}
