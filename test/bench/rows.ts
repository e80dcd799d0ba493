/** The rows of the comparison, one for each kind of request. Each peer lists the rows that it can run (peers.ts). */

export type RowName =
  | "get"
  | "get-policies"
  | "mib"
  | "few-routes"
  | "many-routes"
  | "get-threads"
  | "chat"
  | "chat-policies"
  | "chat-processed"
  | "chat-picked"
  | "chat-stream"
  | "translate"
  | "translate-stream"
  | "gemini"
  | "gemini-stream"
  | "converse"
  | "converse-stream"
  | "messages"
  | "messages-stream"
  | "responses"
  | "responses-stream"
  | "tools"
  | "prompt"
  | "prompt-guards"
  | "stream-guard"
  | "agent"
  | "tool"
  | "tool-policies"
  | "tool-list"
  | "first-chunk"
  | "added-latency";

/**
 * "processor": CPU-microseconds of the process tree per request, with 16 connections at full speed. The others are the
 * milliseconds that the gateway adds at a low request rate.
 */
type Measure = "processor" | "first byte" | "whole answer";

export interface Row {
  readonly name: RowName;
  readonly title: string;
  readonly measure: Measure;
  readonly method: "GET" | "POST";
  /** Name of the request body in bodies.ts. */
  readonly body?: string;
  /** The MCP tool or method that is called; each connection then opens a session first. */
  readonly mcp?: string;
  /** Text that a correct response contains. */
  readonly expect?: string;
}

const GET = { method: "GET", expect: "xxxx", measure: "processor" } as const;
const CHAT = { method: "POST", body: "gpt-4o-mini.json", expect: "total_tokens", measure: "processor" } as const;
const STREAM = { ...CHAT, body: "gpt-4o-mini.sse.json", expect: "word99" } as const;

export const ROWS: readonly Row[] = [
  { name: "get", title: "GET, 1 KiB answer", ...GET },
  { name: "get-policies", title: "the same with key, authorization, limits", ...GET },
  { name: "few-routes", title: "GET, 10 routes", ...GET },
  { name: "many-routes", title: "GET, 10,000 routes", ...GET },
  { name: "get-threads", title: "GET, a thread for each core", ...GET },
  { name: "mib", title: "GET, 1 MiB answer", ...GET },
  { name: "chat", title: "chat JSON, key injected", ...CHAT },
  { name: "chat-policies", title: "the same with key, authorization, limits", ...CHAT },
  { name: "chat-processed", title: "chat JSON through an external processor", ...CHAT },
  { name: "chat-picked", title: "chat JSON to the endpoint that a picker names", ...CHAT },
  { name: "chat-stream", title: "chat stream of 103 events", ...STREAM },
  {
    name: "translate",
    title: "Completions → Messages, JSON",
    ...CHAT,
    body: "claude-sonnet-4-5.json",
    expect: "completion_tokens",
  },
  {
    name: "translate-stream",
    title: "Completions → Messages, stream",
    ...STREAM,
    body: "claude-sonnet-4-5.sse.json",
  },
  { name: "gemini", title: "Completions → Gemini, JSON", ...CHAT },
  { name: "gemini-stream", title: "Completions → Gemini, stream", ...STREAM },
  { name: "converse", title: "Completions → Converse, JSON", ...CHAT },
  { name: "converse-stream", title: "Completions → Converse, stream", ...STREAM },
  { name: "messages", title: "Messages → Completions, JSON", ...CHAT, body: "messages.json", expect: "end_turn" },
  { name: "messages-stream", title: "Messages → Completions, stream", ...STREAM, body: "messages.sse.json" },
  { name: "responses", title: "Responses → Converse, JSON", ...CHAT, body: "responses.json" },
  { name: "responses-stream", title: "Responses → Converse, stream", ...STREAM, body: "responses.sse.json" },
  {
    name: "tools",
    title: "Messages → Messages, 200 KiB with 40 tools",
    ...CHAT,
    body: "tools.json",
    expect: "end_turn",
  },
  { name: "prompt", title: "chat JSON, prompt of 64 KiB", ...CHAT, body: "prompt.json" },
  { name: "prompt-guards", title: "the same with five built-in guards", ...CHAT, body: "prompt.json" },
  { name: "stream-guard", title: "chat stream with a guard of five built-ins", ...STREAM },
  { name: "agent", title: "A2A call, JSON", ...CHAT, body: "agent.json", expect: "artifacts" },
  {
    name: "tool",
    title: "MCP tools/call, one target",
    method: "POST",
    expect: "echo: ",
    measure: "processor",
    mcp: "echo",
  },
  {
    name: "tool-policies",
    title: "the same with two targets, authorization",
    method: "POST",
    expect: "echo: ",
    measure: "processor",
    mcp: "one_echo",
  },
  {
    name: "tool-list",
    title: "MCP tools/list, 1,000 tools of 10 targets",
    method: "POST",
    expect: "j_tool-99",
    measure: "processor",
    mcp: "tools/list",
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

/** Measurements without a load generator; the command line names them like rows. */
export const SPECIAL_ROWS = [
  "admission",
  "credentials",
  "expressions",
  "llm",
  "policies",
  "reports",
  "streams",
  "mcp-sessions",
  "churn",
  "churn-cluster",
  "scale",
  "startup",
] as const;
