/** Compares the performance goals with the figures of this run. A goal without figures is listed as not measured. */
import { median, percentile, printTable } from "./report.ts";
import { valueOf, type Results } from "./results.ts";
import { ROWS, type RowName } from "./rows.ts";
import { SCALE_FIGURES, type Figure } from "./scale.ts";
import type { StreamKind } from "./streams.ts";

interface Goal {
  readonly title: string;
  readonly limit: number;
  readonly unit: "×" | "µs" | "ms" | "KiB" | "MiB" | "";
  readonly of: (figures: Figures) => number | undefined;
}

const GOALS: readonly Goal[] = [
  ratio("GET against Envoy", "get", "envoy", 0.9),
  ratio("GET against nginx", "get", "nginx", 2.5),
  ratio("1 MiB answer against nginx", "mib", "nginx", 1.5),
  between("10,000 routes against 10", "many-routes", "few-routes", 1.05),
  ratio("chat JSON against Portkey", "chat", "portkey", 0.1),
  ratio("translated JSON against Portkey", "translate", "portkey", 0.2),
  ratio("translated stream against Portkey", "translate-stream", "portkey", 0.2),
  between("Completions → Messages, JSON, against untranslated", "translate", "chat", 1.25),
  between("Completions → Messages, stream", "translate-stream", "chat-stream", 1.2),
  between("Completions → Gemini, JSON", "gemini", "chat", 1.4),
  between("Completions → Gemini, stream", "gemini-stream", "chat-stream", 1.4),
  between("Completions → Converse, JSON", "converse", "chat", 1.4),
  between("Completions → Converse, stream", "converse-stream", "chat-stream", 1.4),
  between("Messages → Completions, stream", "messages-stream", "chat-stream", 1.4),
  between("Responses → Converse, stream", "responses-stream", "chat-stream", 1.4),
  ratio("Completions → Gemini, JSON, against Portkey", "gemini", "portkey", 0.35),
  ratio("Completions → Gemini, stream, against Portkey", "gemini-stream", "portkey", 0.35),
  ratio("Completions → Converse, JSON, against Portkey", "converse", "portkey", 0.35),
  ratio("Completions → Converse, stream, against Portkey", "converse-stream", "portkey", 0.35),
  ratio("Messages of 200 KiB with 40 tools against Portkey", "tools", "portkey", 0.3),
  {
    title: "five built-in guards, for each KiB of a prompt",
    limit: 15,
    unit: "µs",
    of: (figures) => divided(minus(figures.row("prompt-guards"), figures.row("prompt")), 64),
  },
  between("stream with a guard against the stream without", "stream-guard", "chat-stream", 1.5),
  between("A2A call against chat JSON", "agent", "chat", 1.2),
  { title: "MCP tools/call, one target", limit: 175, unit: "µs", of: (figures) => figures.row("tool") },
  between("MCP tools/call, one target, against GET", "tool", "get", 6),
  between("MCP tools/call, two targets and authorization, against one target", "tool-policies", "tool", 1.15),
  {
    title: "MCP tools/list, 1,000 tools of 10 targets",
    limit: 4_500,
    unit: "µs",
    of: (figures) => figures.row("tool-list"),
  },
  ratio("MCP tools/call against npm mcp-proxy", "tool", "mcp-proxy", 1),
  ratio("MCP tools/call against LiteLLM", "tool", "litellm", 1),
  inSessions("failed requests of 10,000 MCP sessions, one call each", "failed", 0, ""),
  inSessions("memory of 10,000 MCP sessions", "grownMiB", 60, "MiB"),
  inSessions("memory of an MCP session with an open stream", "streamKib", 40, "KiB"),
  streamed("memory of an open stream, same format", "same format", 32),
  streamed("memory of an open stream, translated", "translated", 48),
  streamed("memory of an open stream, guarded", "guarded", 64),
  {
    title: "policies on a GET: key, authorization, two limits",
    limit: 10,
    unit: "µs",
    of: (figures) => minus(figures.row("get-policies"), figures.row("get")),
  },
  {
    title: "chat to a picked endpoint against the external processor",
    limit: 10,
    unit: "µs",
    of: (figures) => minus(figures.row("chat-picked"), figures.row("chat-processed")),
  },
  { title: "first event of a stream, added", limit: 1, unit: "ms", of: (figures) => figures.row("first-chunk") },
  { title: "start to first answer", limit: 400, unit: "ms", of: ({ results }) => middle(results.startMs) },
  { title: "memory idle", limit: 90, unit: "MiB", of: ({ results }) => middle(results.idleMiB) },
  churned("change to traffic in the file form, worst 99th percentile", "file", 100),
  churned("change to traffic through an API server, the same", "cluster", 250),
  ...scaledGoals("5000 routes", { edit: 250, start: 8_000, controller: 220, plane: 3_000 }),
  ...scaledGoals("40000 routes", { edit: 400, start: 45_000, controller: 900, plane: 15_000 }),
  scaled("200 Gateways", "deployedMs", 60_000, "ms"),
  scaled("200 Gateways", "editWrites", 1, ""),
  {
    title: "failed requests while routes and endpoints change",
    limit: 0,
    unit: "",
    of: ({ results }) =>
      results.churned.length === 0
        ? undefined
        : results.churned.flatMap(({ loads }) => loads).reduce((sum, { bad, ioerr }) => sum + bad + ioerr, 0),
  },
];

class Figures {
  readonly results: Results;

  constructor(results: Results) {
    this.results = results;
  }

  row(name: RowName, column = "gwproxy"): number | undefined {
    const row = ROWS.find((each) => each.name === name);
    const value = row && valueOf(this.results, row, column);
    return value === "failed" ? undefined : value;
  }
}

export function goalTable(results: Results): string {
  const figures = new Figures(results);
  const rows = GOALS.map(({ title, limit, unit, of }) => {
    const found = of(figures);
    const text = found === undefined ? "not measured" : `${found.toFixed(unit === "×" ? 2 : 0)} ${unit}`.trim();
    const met = found === undefined ? "–" : found <= limit ? "yes" : "no";
    return [title, `≤ ${limit} ${unit}`.trim(), text, met];
  });
  return printTable(["goal", "at most", "this run", "met"], rows);
}

function ratio(title: string, row: RowName, peer: string, limit: number): Goal {
  return { title, limit, unit: "×", of: (figures) => divided(figures.row(row), figures.row(row, peer)) };
}

/** Compares two rows of gwproxy. */
function between(title: string, row: RowName, other: RowName, limit: number): Goal {
  return { title, limit, unit: "×", of: (figures) => divided(figures.row(row), figures.row(other)) };
}

function streamed(title: string, kind: StreamKind, limit: number): Goal {
  return {
    title,
    limit,
    unit: "KiB",
    of: ({ results }) => results.streams.find((each) => each.kind === kind)?.kibEach,
  };
}

function inSessions(title: string, name: "failed" | "grownMiB" | "streamKib", limit: number, unit: Goal["unit"]): Goal {
  return { title, limit, unit, of: ({ results }) => results.sessions[0]?.[name] };
}

/** Limits the worst p99 of the phases. The flood is left out, because it yields one figure or a few. */
function churned(title: string, form: string, limit: number): Goal {
  return {
    title,
    limit,
    unit: "ms",
    of({ results }) {
      const phases = results.churned.find((each) => each.form === form)?.phases.filter(({ isFlood }) => !isFlood);
      return phases && Math.max(...phases.map(({ milliseconds }) => percentile(milliseconds, 0.99) ?? Infinity));
    },
  };
}

interface ScaleLimits {
  readonly edit: number;
  readonly start: number;
  readonly controller: number;
  readonly plane: number;
}

function scaledGoals(run: string, limits: ScaleLimits): Goal[] {
  return [
    scaled(run, "editMs", limits.edit, "ms"),
    scaled(run, "controllerStartMs", limits.start, "ms"),
    scaled(run, "controllerMiB", limits.controller, "MiB"),
    scaled(run, "planeStartMs", limits.plane, "ms"),
    scaled(run, "writesPerRoute", 1, ""),
    scaled(run, "restartWrites", 0, ""),
    scaled(run, "churnWrites", 0, ""),
  ];
}

function scaled(run: string, name: Figure, limit: number, unit: Goal["unit"]): Goal {
  const of: Goal["of"] = ({ results }) => results.scaled.find(({ title }) => title === run)?.figures[name];
  return { title: `${run}: ${SCALE_FIGURES[name]}`, limit, unit, of };
}

function middle(byColumn: ReadonlyMap<string, readonly number[]>): number | undefined {
  return median(byColumn.get("gwproxy") ?? []);
}

function divided(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a / b;
}

function minus(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a - b;
}
