/** What is measured: one entry per kind of work. Who can do it, and at which address, stands with each peer. */

export type RowName =
  | "get"
  | "get-policies"
  | "mib"
  | "few-routes"
  | "many-routes"
  | "get-threads"
  | "chat"
  | "chat-policies"
  | "chat-stream"
  | "translate"
  | "translate-stream"
  | "first-chunk"
  | "added-latency";

/**
 * "processor": CPU-microseconds of the process tree per request, as fast as 16 connections go. The others are
 * milliseconds more than without anything in between, at a rate that keeps nobody busy.
 */
type Measure = "processor" | "first byte" | "whole answer";

export interface Row {
  readonly name: RowName;
  readonly title: string;
  readonly measure: Measure;
  readonly method: "GET" | "POST";
  /** File in bodies/. */
  readonly body?: string;
  /** A correct answer contains this text. */
  readonly expect?: string;
}

const GET = { method: "GET", expect: "xxxx", measure: "processor" } as const;
const CHAT = { method: "POST", body: "gpt-4o-mini.json", expect: "total_tokens", measure: "processor" } as const;

export const ROWS: readonly Row[] = [
  { name: "get", title: "GET, 1 KiB answer", ...GET },
  { name: "get-policies", title: "the same with key, authorization, limits", ...GET },
  { name: "few-routes", title: "GET, 10 routes", ...GET },
  { name: "many-routes", title: "GET, 10,000 routes", ...GET },
  { name: "get-threads", title: "GET, a thread for each core", ...GET },
  { name: "mib", title: "GET, 1 MiB answer", ...GET },
  { name: "chat", title: "chat JSON, key injected", ...CHAT },
  { name: "chat-policies", title: "the same with key, authorization, limits", ...CHAT },
  { name: "chat-stream", title: "chat stream of 103 events", ...CHAT, body: "gpt-4o-mini.sse.json", expect: "word99" },
  {
    name: "translate",
    title: "OpenAI → Anthropic, JSON",
    ...CHAT,
    body: "claude-sonnet-4-5.json",
    expect: "completion_tokens",
  },
  {
    name: "translate-stream",
    title: "OpenAI → Anthropic, stream",
    ...CHAT,
    body: "claude-sonnet-4-5.sse.json",
    expect: "word99",
  },
  { name: "added-latency", title: "chat JSON, 20 a second: median", ...CHAT, measure: "whole answer" },
  {
    name: "first-chunk",
    title: "chat stream, an event per 2 ms: first one",
    ...CHAT,
    body: "gpt-4o-mini-paced.sse.json",
    expect: "word99",
    measure: "first byte",
  },
];

/** Work that is not a load: named like rows on the command line. */
export const SPECIAL_ROWS = [
  "admission",
  "expressions",
  "policies",
  "reports",
  "churn",
  "churn-cluster",
  "startup",
] as const;
