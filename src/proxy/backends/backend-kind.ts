/** What the kind of a backend means for reports, and for the protocol that is spoken with it. The registry uses it. */
import type { Backend, BackendSettings, Provider } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { OutboundSubtype } from "../observability/tracing/outbound.ts";
import { AGENT_RUNTIME_DEFAULTS } from "./agent-runtime.ts";

const SUBTYPES: Readonly<Record<string, OutboundSubtype>> = { ai: "Llm", mcp: "Mcp" };
const PROTOCOLS: Readonly<Record<string, string>> = { ai: "llm", mcp: "mcp" };

/** Returns the label of calls in metrics. @param type of the backend in reports */
export function subtypeOf(type: string): OutboundSubtype {
  return SUBTYPES[type] ?? "Http";
}

/** Returns `backend.protocol` of expressions and logs. @param type of the backend in reports */
export function protocolOf(type: string): string {
  return PROTOCOLS[type] ?? "http";
}

/** Decides whether requests to the backend are those of the Agent2Agent protocol. */
export function isAgent({ kind }: Backend): boolean {
  return kind.case === "a2a" || (kind.case === "service" && kind.value.a2a);
}

/** A provider that leads to another backend (`custom.backendRef`). */
export interface ProviderBehind {
  /** Name of the provider; of a GwModel "namespace/name". */
  readonly provider: string;
  /** Key of the other backend. */
  readonly backend: string;
  readonly settings: BackendSettings | undefined;
}

/** Returns the providers of an `ai` backend that lead to another one. */
export function backendsBehind(kind: Backend["kind"] | undefined): readonly ProviderBehind[] {
  if (kind?.case !== "ai") return [];
  return kind.value.groups.flatMap(({ providers }) => providers.flatMap((node) => providerBehind(node.name, node)));
}

export function providerBehind(provider: string, { backend, settings }: Provider): ProviderBehind[] {
  return backend === "" ? [] : [{ provider, backend, settings }];
}

/** Returns the settings of a backend that are in force where the configuration has none. */
export function defaultsOf({ kind }: Backend): BackendSettings | undefined {
  return kind.case === "agentRuntime" ? AGENT_RUNTIME_DEFAULTS : undefined;
}
