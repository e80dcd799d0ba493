/**
 * `gwproxy explain`: the policies of the rules of a route in their order, or those about the connections of a Gateway,
 * from /explain of a data plane.
 */
import { FatalError } from "../../lib/errors.ts";
import { isRecord } from "../../lib/is-record.ts";
import type { Terminal } from "../../lib/terminal.ts";
import { printStructured, type StructuredForm } from "../output.ts";
import { currentNamespace } from "../../sources/kubernetes/port-forward.ts";
import { withAdmins, type PodOptions } from "./admin-client.ts";
import { plain } from "./table.ts";

export interface ExplainOptions extends PodOptions {
  readonly output: "text" | StructuredForm;
  readonly rule?: string | undefined;
  /** The data plane to ask. */
  readonly from?: string | undefined;
}

type Json = Readonly<Record<string, unknown>>;

const KINDS: Readonly<Record<string, string>> = {
  httproute: "HTTPRoute",
  httproutes: "HTTPRoute",
  grpcroute: "GRPCRoute",
  grpcroutes: "GRPCRoute",
  tcproute: "TCPRoute",
  tcproutes: "TCPRoute",
  tlsroute: "TLSRoute",
  tlsroutes: "TLSRoute",
};

const GATEWAYS: ReadonlySet<string> = new Set(["gateway", "gateways", "gtw"]);

interface ParsedObject {
  /** Undefined for a route of any kind. */
  readonly kind: string | undefined;
  /** "namespace/name". */
  readonly name: string;
}

/** @param text "httproute/shop", "gateway/edge", "httproute/shop.team" or "team/shop" */
function parseObject(text: string, namespace: string): ParsedObject {
  const [first = "", second, ...more] = text.split("/");
  if (second === undefined || second === "" || first === "" || more.length > 0)
    throw new FatalError(`"${text}" is not KIND/NAME, such as httproute/shop or httproute/shop.team`, 2);
  const kind = GATEWAYS.has(first.toLowerCase()) ? "Gateway" : KINDS[first.toLowerCase()];
  if (kind === undefined) return { kind, name: `${first}/${second}` };
  const dot = second.lastIndexOf(".");
  const [name, own] = dot < 0 ? [second, namespace] : [second.slice(0, dot), second.slice(dot + 1)];
  return { kind, name: `${own}/${name}` };
}

export async function explainObject(text: string, options: ExplainOptions, terminal: Terminal): Promise<void> {
  const { local, namespace, kubeconfig } = options;
  const own = namespace ?? (local === true ? "default" : await currentNamespace(kubeconfig));
  const { kind, name } = parseObject(text, own);
  const { rule, from, output } = options;
  if (kind === "Gateway" && rule !== undefined) throw new FatalError("--rule is about routes, and not Gateways", 2);
  const ask = async (query: Readonly<Record<string, string>>): Promise<Json[]> => {
    const path = `/explain?${new URLSearchParams(query)}`;
    const [answer = "[]"] = await withAdmins(from, options, "first", (client) => client.get(path));
    return JSON.parse(answer) as Json[];
  };
  if (kind === "Gateway") {
    const ports = await ask({ gateway: name });
    terminal.out(output === "text" ? ports.map(printPort).join("\n") : printStructured(ports, output));
    return;
  }
  const answer = await ask({ route: name, ...(rule === undefined ? {} : { rule }) });
  // The data plane lists the routes of all kinds that have this name.
  const routes = answer.filter(({ route }) => kind === undefined || String(route).startsWith(`${kind} `));
  if (routes.length === 0)
    throw new FatalError(
      `no ${kind} ${name} is bound to a listener, but ${answer.map(({ route }) => route).join(", ")}`,
    );
  terminal.out(output === "text" ? printRoutes(routes) : printStructured(routes, output));
}

function printPort(explained: Json): string {
  const { gateway, port, refuses } = explained;
  const closed = refuses === undefined ? "" : `  every connection is refused: ${plain(String(refuses))}\n`;
  const settings = printFrontend(explained);
  return `Gateway ${plain(String(gateway))} on port ${plain(String(port))}\n${closed}${settings === "" ? "  no policies\n" : settings}`;
}

function printRoutes(routes: readonly Json[]): string {
  return routes
    .map(
      (route) =>
        `${plain(String(route["route"]))} on ${plain(String(route["listener"]))}\n${printFrontend(route)}${printRules(route)}`,
    )
    .join("\n");
}

function printFrontend({ frontend }: Json): string {
  const settings = listOf(frontend).map((setting) => printPolicy(setting, "-"));
  return settings.length === 0 ? "" : `  connections\n${settings.join("")}`;
}

function printRules({ rules }: Json): string {
  return listOf(rules)
    .map(({ rule, refuses, policies, backend, behind, provider, backends, mirrors }) => {
      const head = `  rule ${plain(String(rule))}${printPlace(backend, behind, provider)}\n`;
      const closed = refuses === undefined ? "" : `    every request is refused: ${plain(String(refuses))}\n`;
      const steps = listOf(policies).map((policy, at) => printPolicy(policy, `${at + 1}.`));
      const targets = [...listOf(backends).map(printBackend), ...listOf(mirrors).map(printMirror)];
      return `${head}${closed}${steps.length === 0 ? "    no policies\n" : steps.join("")}${targets.join("")}`;
    })
    .join("");
}

/** A rule has an entry for each backend with policies of its own. */
function printPlace(backend: unknown, behind: unknown, provider: unknown): string {
  if (typeof backend !== "string") return "";
  const name = typeof provider === "string" ? `${plain(provider)} of ` : "";
  const place = typeof behind === "string" ? ` behind ${name}${plain(behind)}, after the policies of the rule` : "";
  return `, to ${plain(backend)}${place}`;
}

function printBackend(calls: Json): string {
  return printCalls(`to ${backendText(calls)} (weight ${plain(String(calls["weight"]))})`, calls);
}

function printMirror(calls: Json): string {
  const whose = calls["of"] === undefined ? "" : ` of requests to ${plain(String(calls["of"]))}`;
  return printCalls(`copies${whose} to ${backendText(calls)} (share ${plain(String(calls["share"]))})`, calls);
}

function backendText({ backend }: Json): string {
  return backend === "" ? "no backend" : plain(String(backend));
}

/** Prints the settings of calls to a backend, and below them those of its providers or targets. */
function printCalls(head: string, calls: Json): string {
  const sections = listOf(calls["sections"]).map((section) =>
    printCalls(`to section ${plain(String(section["section"]))} of ${backendText(calls)}`, section),
  );
  const why = calls["refuses"] === undefined ? "" : `: refused, ${plain(String(calls["refuses"]))}`;
  const settings = listOf(calls["policies"]).map((setting) => printPolicy(setting, "-"));
  return `    ${head}${why}\n${settings.join("")}${sections.join("")}`;
}

function printPolicy({ policy, part, preRouting, from, lost }: Json, mark: string): string {
  const name = [policy, part].filter((text) => text !== undefined).join(" of the ");
  const phase = preRouting === true ? " (before routing)" : "";
  const sources = listOf(from).map((source) => `      from ${printSource(source)}\n`);
  const losers = listOf(lost).map(
    (loser) =>
      `      lost: ${printSource(loser)}, to ${printSource(recordOf(loser["to"]))}: ${REASONS[String(loser["reason"])] ?? ""}\n`,
  );
  return `    ${mark} ${plain(name)}${phase}\n${sources.join("")}${losers.join("")}`;
}

const REASONS: Readonly<Record<string, string>> = {
  older: "it is older",
  moreSpecific: "it is more specific",
  override: "it overrides more specific ones",
};

function printSource({ level, origin }: Json): string {
  return plain(`${String(origin)} (${String(level)})`);
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function recordOf(value: unknown): Json {
  return isRecord(value) ? value : {};
}
