/** The purpose of outgoing calls, as labels of metrics and attributes of spans (docs/telemetry.md). */

/** The request itself, a call that a policy makes for it, or a mirrored copy. */
export type OutboundKind = "Primary" | "Policy" | "Mirror";

export type OutboundSubtype =
  | "Http"
  | "Llm"
  | "Mcp"
  | "ExtAuthz"
  | "ExtProc"
  | "EndpointPicker"
  | "RateLimit"
  | "Guardrail"
  | "Oidc"
  | "Credential"
  | "Otlp";
