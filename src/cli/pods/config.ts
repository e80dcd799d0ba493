/**
 * `gwproxy config all` and `gwproxy config backends`: what a data plane has loaded, or a controller serves, from
 * /config_dump or from a file.
 */
import { readFile } from "node:fs/promises";
import { text as readStream } from "node:stream/consumers";
import { FatalError } from "../../lib/errors.ts";
import { isRecord } from "../../lib/is-record.ts";
import type { Terminal } from "../../lib/terminal.ts";
import { printStructured, type StructuredForm } from "../output.ts";
import { withAdmins, type PodOptions } from "./admin-client.ts";
import { printTable } from "./table.ts";

export interface ConfigOptions extends PodOptions {
  readonly output: "short" | StructuredForm;
  readonly file?: string | undefined;
  /** Shows endpoints without requests too. */
  readonly all?: boolean | undefined;
}

type Json = Readonly<Record<string, unknown>>;

export async function showConfig(
  resource: string | undefined,
  options: ConfigOptions,
  terminal: Terminal,
): Promise<void> {
  const dump = await readDump(resource, options);
  if (options.output !== "short") return terminal.out(printStructured(dump, options.output));
  terminal.out(isOfController(dump) ? controllerSummary(dump) : summaryOf(dump));
}

export async function showBackends(
  resource: string | undefined,
  options: ConfigOptions,
  terminal: Terminal,
): Promise<void> {
  const dump = await readDump(resource, options);
  if (isOfController(dump))
    throw new FatalError("a controller sends no requests to backends; ask a data plane, such as gateway/edge", 2);
  const rows = backendRows(dump).filter(({ requests }) => options.all === true || requests > 0);
  if (options.output === "short") terminal.out(printBackends(rows));
  else terminal.out(printStructured(rows, options.output));
}

async function readDump(resource: string | undefined, options: ConfigOptions): Promise<Json> {
  const { file } = options;
  if (file !== undefined && resource !== undefined)
    throw new FatalError("a file and a resource exclude each other; leave one of them out", 2);
  const texts =
    file === undefined
      ? await withAdmins(resource, options, "first", (client) => client.get("/config_dump"))
      : [file === "-" ? await readStream(process.stdin) : await readFile(file, "utf8")];
  return parseDump(texts[0] ?? "", file ?? "the answer");
}

/** @throws FatalError for a dump that was cut off, or something else */
function parseDump(text: string, from: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value;
  } catch {
    // Said below, as for JSON of another shape.
  }
  throw new FatalError(`what ${from} holds is no configuration dump, or it is cut off; take it anew`);
}

const SECTIONS = ["binds", "listeners", "routes", "policies", "backends", "models", "services", "workloads"] as const;

/** Counts what is loaded. */
function summaryOf(dump: Json): string {
  return printTable([["SECTION", "COUNT"], ...SECTIONS.map((name) => [name, countOf(dump, name)])]);
}

function countOf(dump: Json, section: (typeof SECTIONS)[number]): string {
  if (section !== "listeners") return String(sizeOf(dump[section]));
  const listeners = listOf(dump["binds"]).flatMap(({ listeners: map }) => Object.keys(isRecord(map) ? map : {}));
  return String(listeners.length);
}

function isOfController(dump: Json): boolean {
  return isRecord(dump["gateways"]) && Array.isArray(dump["dataPlanes"]);
}

/** Counts what is served to each Gateway, and how many of its data planes have acknowledged all of it. */
function controllerSummary(dump: Json): string {
  const columns = SECTIONS.filter((name) => name !== "workloads");
  const dataPlanes = Map.groupBy(listOf(dump["dataPlanes"]), ({ gateway }) => textOf(gateway));
  const rows = Object.entries(isRecord(dump["gateways"]) ? dump["gateways"] : {}).map(([gateway, resources]) => {
    const connected = dataPlanes.get(gateway) ?? [];
    const counts = columns.map((name) => countOf(isRecord(resources) ? resources : {}, name));
    return [gateway, ...counts, String(connected.length), String(connected.filter(isInSync).length)];
  });
  const head = ["GATEWAY", ...columns.map((name) => name.toUpperCase()), "DATA PLANES", "IN SYNC"];
  const replica = printTable([
    ["READY", "LEADER"],
    [String(dump["ready"]), String(dump["leader"])],
  ]);
  return `${replica}\n${printTable([head, ...rows])}`;
}

function isInSync({ sync }: Json): boolean {
  return Object.values(isRecord(sync) ? sync : {}).every(
    (type) => isRecord(type) && type["unanswered"] === 0 && sizeOf(type["refused"]) === 0,
  );
}

interface BackendRow {
  readonly type: "Service" | "Backend";
  readonly name: string;
  readonly namespace: string;
  readonly endpoint: string;
  readonly health: number;
  readonly requests: number;
  readonly latencyMs: number;
  readonly evictedUntil?: string;
}

/** Returns one row for each endpoint of Services and of AI backends, sorted. */
function backendRows(dump: Json): BackendRow[] {
  const services = listOf(dump["services"]).flatMap((service) => rowsOf("Service", service, service));
  const backends = listOf(dump["backends"])
    .filter(({ backend }) => isRecord(backend) && "ai" in backend)
    .flatMap((entry) => rowsOf("Backend", isRecord(entry["name"]) ? entry["name"] : {}, entry));
  const keyOf = ({ type, namespace, name, endpoint }: BackendRow): string =>
    [type, namespace, name, endpoint].join("\n");
  return [...services, ...backends].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function rowsOf(type: BackendRow["type"], named: Json, { endpoints }: Json): BackendRow[] {
  return listOf(endpoints).flatMap((set) =>
    [set["active"], set["rejected"]].flatMap((states) =>
      Object.entries(isRecord(states) ? states : {}).flatMap(([endpoint, state]) => {
        const info = isRecord(state) && isRecord(state["info"]) ? state["info"] : {};
        const { evictedUntil } = info;
        return [
          {
            type,
            name: textOf(named["name"]),
            namespace: textOf(named["namespace"]),
            endpoint,
            health: Number(info["health"] ?? 0),
            requests: Number(info["totalRequests"] ?? 0),
            latencyMs: Number(info["requestLatency"] ?? 0) * 1_000,
            ...(typeof evictedUntil === "string" ? { evictedUntil } : {}),
          },
        ];
      }),
    ),
  );
}

function printBackends(rows: readonly BackendRow[]): string {
  const head = ["TYPE", "NAME", "NAMESPACE", "ENDPOINT", "HEALTH", "REQUESTS", "LATENCY"];
  const printed = rows.map(({ type, name, namespace, endpoint, health, requests, latencyMs }) => {
    const latency = requests === 0 ? "" : `${latencyMs.toFixed(2)}ms`;
    return [type, name, namespace, endpoint, health.toFixed(2), String(requests), latency];
  });
  return printTable([head, ...printed]);
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function sizeOf(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return isRecord(value) ? Object.keys(value).length : 0;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
