/**
 * Reads recorded requests: the events of `/debug/trace` as they arrive, and files of one event a line, which
 * `gwproxy trace --raw` writes and `gwproxy trace -f` opens. Everything in them comes from clients and upstreams, so
 * nothing but the shape is relied on.
 */

export type Severity = "success" | "info" | "warn" | "error";

export interface TraceEvent {
  /** Microseconds since the request began; null for an instant. */
  readonly eventStart: number | null;
  readonly eventEnd: number;
  readonly severity: Severity;
  /** Outer first, such as a route, a policy, an attempt. */
  readonly scope: readonly string[];
  readonly message: Readonly<Record<string, unknown>> & { readonly type: string };
}

const SEVERITIES: readonly Severity[] = ["success", "info", "warn", "error"];

/** Returns the event of one line of JSON; undefined when the text is not one. */
export function parseTraceEvent(line: string): TraceEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || !isRecord(value["message"]) || typeof value["message"]["type"] !== "string") return undefined;
  const { eventStart, eventEnd, severity, scope, message } = value;
  const end = numberOf(eventEnd) ?? 0;
  const start = numberOf(eventStart);
  return {
    eventStart: start === undefined ? null : Math.min(start, end),
    eventEnd: end,
    severity: SEVERITIES.find((each) => each === severity) ?? "info",
    scope: Array.isArray(scope) ? scope.map(String) : [],
    // The cast is sound: the type of the message was checked above.
    message: message as TraceEvent["message"],
  };
}

export interface TraceFile {
  readonly events: readonly TraceEvent[];
  /** Lines that are not events. */
  readonly unreadable: number;
}

/** A page that holds more events than this would no longer answer; a traced request has at most 256 waiting ones. */
export const MAX_EVENTS = 5000;

export function parseTraceFile(text: string): TraceFile {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const events = lines.slice(0, MAX_EVENTS).map((line) => parseTraceEvent(line));
  const readable = events.filter((event) => event !== undefined);
  return { events: readable, unreadable: lines.length - readable.length };
}

/** Returns the text of a file that holds the events. */
export function printTraceFile(events: readonly TraceEvent[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join("");
}

/**
 * Splits a stream of server-sent events (HTML Living Standard §9.2) into the data of its events. Comments, which the
 * server sends to keep the connection open, are passed on as comments.
 */
export class EventStreamParser {
  readonly #onData: (data: string) => void;
  readonly #onComment: (comment: string) => void;
  #rest = "";
  #data: string[] = [];

  constructor(onData: (data: string) => void, onComment: (comment: string) => void) {
    this.#onData = onData;
    this.#onComment = onComment;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#readLine(line.replace(/\r$/, ""));
  }

  #readLine(line: string): void {
    if (line.startsWith(":")) this.#onComment(line.slice(1).trim());
    else if (line.startsWith("data:")) this.#data.push(line.slice(5).replace(/^ /, ""));
    else if (line === "" && this.#data.length > 0) {
      this.#onData(this.#data.join("\n"));
      this.#data = [];
    }
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}
