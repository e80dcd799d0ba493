/** What calls to others are made for: the words that metrics and spans have for it (observability.md 2 and 4.2). */

/** The request itself, a question of a policy about it, or a copy of it. */
export type OutboundKind = "Primary" | "Policy" | "Mirror";

export type OutboundSubtype = "Http" | "Llm" | "ExtAuthz" | "ExtProc" | "RateLimit" | "Otlp";
