/** What is measured: one entry per kind of work. Who can do it, and at which address, stands with each peer. */

export type RowName =
  | "get"
  | "get-policies"
  | "chat"
  | "chat-policies"
  | "chat-stream"
  | "translate"
  | "translate-stream";

export interface Row {
  readonly name: RowName;
  readonly title: string;
  readonly method: "GET" | "POST";
  /** File in bodies/. */
  readonly body?: string;
  /** A correct answer contains this text. */
  readonly expect?: string;
}

export const ROWS: readonly Row[] = [
  { name: "get", title: "GET, 1 KiB answer", method: "GET", expect: "xxxx" },
  { name: "get-policies", title: "the same with key, authorization, limits", method: "GET", expect: "xxxx" },
  { name: "chat", title: "chat JSON, key injected", method: "POST", body: "gpt-4o-mini.json", expect: "total_tokens" },
  {
    name: "chat-policies",
    title: "the same with key, authorization, limits",
    method: "POST",
    body: "gpt-4o-mini.json",
    expect: "total_tokens",
  },
  {
    name: "chat-stream",
    title: "chat stream of 103 events",
    method: "POST",
    body: "gpt-4o-mini.sse.json",
    expect: "word99",
  },
  {
    name: "translate",
    title: "OpenAI → Anthropic, JSON",
    method: "POST",
    body: "claude-sonnet-4-5.json",
    expect: "completion_tokens",
  },
  {
    name: "translate-stream",
    title: "OpenAI → Anthropic, stream",
    method: "POST",
    body: "claude-sonnet-4-5.sse.json",
    expect: "word99",
  },
];

/** Work that is not a load: named like rows on the command line. */
export const SPECIAL_ROWS = [
  "admission",
  "expressions",
  "policies",
  "propagation",
  "propagation-cluster",
  "startup",
] as const;
