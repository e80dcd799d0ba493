/** The text view of a trace: a list of steps with time, kind and severity, and a summary. `gwproxy trace` prints it. */
import { isRecord } from "../../lib/is-record.ts";
import type { Terminal } from "../../lib/terminal.ts";
import { styled, type Style } from "../output.ts";
import { plain } from "../pods/table.ts";
import type { TraceEvent } from "../../console/model/trace.ts";

type Json = Readonly<Record<string, unknown>>;

const STYLES: Readonly<Record<string, Style>> = { error: "red", warn: "yellow", success: "cyan" };
const TIME_WIDTH = 12;
const KIND_WIDTH = 26;
const MAX_DETAIL = 300;

/** Prints steps one after the other, and what changed between two snapshots. */
export class TraceView {
  readonly #terminal: Terminal;
  #snapshot: ReadonlyMap<string, string> | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  step({ eventStart, eventEnd, severity, scope, message }: TraceEvent): void {
    const time = `${(eventEnd / 1_000).toFixed(3)} ms`.padStart(TIME_WIDTH);
    const took = eventStart === null ? "" : ` (${((eventEnd - eventStart) / 1_000).toFixed(3)} ms)`;
    const kind = plain(message.type).padEnd(KIND_WIDTH);
    const style = STYLES[severity];
    const shown = style === undefined ? kind : styled(this.#terminal, style, kind);
    const place = scope.length === 0 ? "" : `  [${plain(scope.join(" › "))}]`;
    this.#terminal.out(`${time}  ${shown}  ${detailOf(message)}${took}${place}\n`);
    if (isRecord(message["requestState"]) && "stage" in message) this.#compare(message["requestState"]);
  }

  /** Prints how the request differs from the snapshot before. */
  #compare(state: Json): void {
    const now = flatten(state);
    const before = this.#snapshot;
    this.#snapshot = now;
    if (before === undefined) return;
    const indent = " ".repeat(TIME_WIDTH + 2);
    for (const [name, value] of now) {
      const old = before.get(name);
      if (old === undefined) this.#terminal.out(`${indent}+ ${plain(name)}: ${cut(value)}\n`);
      else if (old !== value) this.#terminal.out(`${indent}~ ${plain(name)}: ${cut(old)} → ${cut(value)}\n`);
    }
    for (const [name, value] of before)
      if (!now.has(name)) this.#terminal.out(`${indent}- ${plain(name)}: ${cut(value)}\n`);
  }
}

/** Returns the route, the policies, the backend and the status, for the end of the view. */
export function summarize(events: readonly TraceEvent[]): string {
  const messages = events.map(({ message }) => message);
  const last = (type: string): Json | undefined => messages.findLast((message) => message.type === type);
  const route = last("routeSelection")?.["selectedRoute"];
  const applied = messages.flatMap((message) => {
    const { kind, result } = message as Json;
    return message.type === "policy" && isRecord(result) && result["type"] === "apply" ? [String(kind)] : [];
  });
  const finished = last("requestFinished");
  const error = finished?.["error"];
  const rows = [
    ["route", isRecord(route) ? `${String(route["route"])} rule ${String(route["rule"])}` : "none"],
    ["policies", applied.length === 0 ? "none" : applied.join(", ")],
    ["backend", String(last("backendCallStart")?.["target"] ?? "none")],
    ["status", `${String(finished?.["status"] ?? "unknown")}${typeof error === "string" ? ` (${error})` : ""}`],
  ];
  const dropped = finished?.["dropped"];
  if (dropped !== undefined) rows.push(["lost", `${String(dropped)} events`]);
  return rows.map(([name = "", value = ""]) => `${name.padEnd(10)}${plain(value)}\n`).join("");
}

/** What one line says of an event besides its type. */
function detailOf(message: TraceEvent["message"]): string {
  const { type: _type, requestState: _state, body, result, effectivePolicy, ...rest } = message;
  const parts = Object.entries(rest).map(([name, value]) => `${name}=${textOf(value)}`);
  if (isRecord(result) && "snapshot" in result) parts.push(`details=${textOf(result["details"])}`);
  else if (result !== undefined) parts.push(`result=${textOf(result)}`);
  if (Array.isArray(effectivePolicy))
    parts.push(
      `effectivePolicy=${effectivePolicy.map((each) => (isRecord(each) ? String(each["policy"]) : "")).join(",") || "none"}`,
    );
  if (typeof body === "string") parts.push(`bytes=${Buffer.from(body, "base64").length}`);
  return cut(parts.join(" "));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function flatten(value: Json, path = "", into = new Map<string, string>()): ReadonlyMap<string, string> {
  for (const [name, member] of Object.entries(value)) {
    const full = path === "" ? name : `${path}.${name}`;
    if (isRecord(member)) flatten(member, full, into);
    else into.set(full, textOf(member));
  }
  return into;
}

function cut(text: string): string {
  const shown = plain(text);
  return shown.length <= MAX_DETAIL ? shown : `${shown.slice(0, MAX_DETAIL)}…`;
}
