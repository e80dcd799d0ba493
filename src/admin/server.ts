/**
 * The servers beside the data plane: admin (loopback, for people), metrics and readiness (for machines), all on h3.
 * Everything they show comes in through the options; nothing here knows the data plane. Follows admin-cli.md 1 and 2.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type Server } from "node:http";
import { isIP } from "node:net";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import { H3, HTTPError, getQuery, type H3Event } from "h3";
import { toNodeHandler } from "h3/node";
import { FatalError, messageOf } from "../lib/errors.ts";
import type { BoundAddress } from "../lib/own-listeners.ts";
import { formatOf, MEDIA_TYPES, type MetricFormat } from "./metric-format.ts";
import { parseLogFilter, printLogFilter, type LogFilter, type Logger } from "../lib/log.ts";

/** Port 0 lets the system choose; host "" is every address. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

export interface RunningServer {
  /** "host:port" as bound. */
  readonly address: string;
  /** The address of the socket. */
  readonly bound: BoundAddress;
  close(): Promise<void>;
}

export interface AdminOptions {
  readonly address: ServerAddress;
  /** The content of /config_dump, secrets masked already. */
  readonly state: () => Promise<unknown>;
  /** Changed by /logging. */
  readonly filter: LogFilter;
  /** Told of each such change. */
  readonly onFilter?: () => void;
  readonly log: Logger;
  /** Starts a graceful shutdown; resolves when it is over. */
  readonly drain: () => Promise<void>;
  /** Called after the drain. */
  readonly quit: () => void;
  /** What requests must show as `Authorization: Bearer`, read for each of them; unset: nothing. */
  readonly token?: (() => Promise<string>) | undefined;
}

const INDEX = [
  ["/config_dump", "GET", "the configuration in force, as JSON"],
  ["/logging", "GET, POST", "the log filter; POST ?level=info,proxy=debug changes it, ?reset returns to the first"],
  ["/memory", "GET", "memory of this process, as JSON"],
  ["/quitquitquit", "POST", "drains and stops"],
] as const;
const USAGE = "usage: ?level=<off|error|warn|info|debug|trace>[,<module>=<level>...] or ?reset";

export async function startAdminServer(options: AdminOptions): Promise<RunningServer> {
  const app = new H3({ silent: true });
  const initial: LogFilter = { level: options.filter.level, modules: new Map(options.filter.modules) };
  app.use((event) => refuseForeign(event));
  if (options.token !== undefined) app.use(requireToken(options.token));
  app.get("/", () => page(options.token !== undefined));
  app.get("/config_dump", async () => json(await options.state()));
  app.get("/logging", () => filterLine(options.filter));
  app.post("/logging", (event) => {
    const answer = setFilter(event, options.filter, initial);
    options.onFilter?.();
    return answer;
  });
  app.get("/memory", () => json(memory()));
  app.post("/quitquitquit", async () => {
    options.log.info("shutdown asked for by the admin server");
    await options.drain();
    setImmediate(options.quit);
    return text("shutdown now\n");
  });
  refuseOtherMethods(
    app,
    INDEX.map(([path, methods]): [string, string] => [path, methods]),
  );
  return serveOn(app, options.address);
}

export async function startMetricsServer(options: {
  readonly address: ServerAddress;
  readonly render: (format: MetricFormat) => Promise<string>;
}): Promise<RunningServer> {
  const app = new H3({ silent: true });
  const metrics = async ({ req }: H3Event): Promise<Response> => {
    const format = formatOf(req.headers.get("accept") ?? "");
    return new Response(await options.render(format), {
      headers: { "content-type": MEDIA_TYPES[format], vary: "accept" },
    });
  };
  app.get("/metrics", metrics);
  app.get("/stats/prometheus", metrics);
  refuseOtherMethods(app, [
    ["/metrics", "GET"],
    ["/stats/prometheus", "GET"],
  ]);
  return serveOn(app, options.address);
}

/** @param options.pending what is still waited for; nothing means ready */
export async function startReadinessServer(options: {
  readonly address: ServerAddress;
  readonly pending: () => readonly string[];
}): Promise<RunningServer> {
  const app = new H3({ silent: true });
  app.get("/healthz/ready", () => {
    const pending = options.pending();
    return pending.length === 0 ? text("ready\n") : text(`not ready, pending: ${pending.join(", ")}\n`, 500);
  });
  refuseOtherMethods(app, [["/healthz/ready", "GET"]]);
  return serveOn(app, options.address);
}

/** Serves the probes of the controller, under the paths that Kubernetes' own components have. */
export async function startHealthServer(options: {
  readonly address: ServerAddress;
  /** Returns whether the controller has read the cluster; until then /readyz is 503. */
  readonly isReady: () => boolean;
}): Promise<RunningServer> {
  const app = new H3({ silent: true });
  app.get("/healthz", () => text("ok\n"));
  app.get("/readyz", () => (options.isReady() ? text("ok\n") : text("not ready\n", 503)));
  refuseOtherMethods(app, [
    ["/healthz", "GET"],
    ["/readyz", "GET"],
  ]);
  return serveOn(app, options.address);
}

/** A page in someone's browser must not reach this server: by a name of its own (rebinding) or by a form. */
function refuseForeign(event: H3Event): void {
  for (const [name] of event.req.headers)
    if (isForwarding(name)) throw new HTTPError({ status: 403, message: "forwarded requests are refused" });
  const host = event.req.headers.get("host") ?? "";
  if (!isOwnHost(host)) throw new HTTPError({ status: 403, message: "foreign host" });
  if (event.req.method !== "GET" && event.req.headers.get("origin") !== null)
    throw new HTTPError({ status: 403, message: "requests of web pages are refused" });
}

const FORWARDING: ReadonlySet<string> = new Set(["forwarded", "via", "cdn-loop", "x-real-ip"]);

/** Operators ask this server directly: what a proxy or gateway has passed on was sent by its client. */
function isForwarding(name: string): boolean {
  return FORWARDING.has(name) || name.startsWith("x-forwarded-");
}

/** The page says nothing about this process, and has to be there to ask for the token. */
function requireToken(token: () => Promise<string>): (event: H3Event) => Promise<void> {
  return async ({ req, url }) => {
    if (url.pathname === "/" && req.method === "GET") return;
    const [, shown = ""] = /^Bearer +([^ ]+) *$/i.exec(req.headers.get("authorization") ?? "") ?? [];
    if (shown !== "" && isEqual(shown, await token())) return;
    const headers = { "www-authenticate": "Bearer" };
    throw new HTTPError({ status: 401, message: "the token of --admin-token-file is needed", headers });
  };
}

/** Takes the same time wherever the texts differ, and however long they are. */
function isEqual(shown: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return expected !== "" && timingSafeEqual(digest(shown), digest(expected));
}

/** An address or localhost: a rebinding page has a name. */
function isOwnHost(host: string): boolean {
  const name = host.replace(/:[0-9]+$/, "").replace(/^\[(.*)\]$/, "$1");
  return name.toLowerCase() === "localhost" || isIP(name) !== 0;
}

function setFilter(event: H3Event, filter: LogFilter, initial: LogFilter): Response {
  const { level, reset } = getQuery(event);
  const next = level === undefined ? undefined : parseLogFilter(String(level));
  if ((level !== undefined && next === undefined) || (level === undefined && reset === undefined))
    return text(`${USAGE}\n`, 400);
  const chosen = next ?? initial;
  filter.level = chosen.level;
  filter.modules = new Map(chosen.modules);
  return filterLine(filter);
}

function filterLine(filter: LogFilter): Response {
  return text(`current log level is ${printLogFilter(filter)}\n`);
}

function memory(): unknown {
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
  const heapSpaces = getHeapSpaceStatistics().map((space) => ({
    name: space.space_name,
    size: space.space_size,
    used: space.space_used_size,
    available: space.space_available_size,
  }));
  const limits = { cgroupBytes: process.constrainedMemory(), heapBytes: getHeapStatistics().heap_size_limit };
  return { process: { rss, heapTotal, heapUsed, external, arrayBuffers }, heapSpaces, limits };
}

/** Shows answers with the token, which stays in the memory of the page. */
const ASKING = `<p><input type="password" placeholder="token" autocomplete="off"><pre></pre><script>
document.addEventListener("click", async (event) => {
  const path = event.target.getAttribute("href");
  if (path === null) return;
  event.preventDefault();
  const authorization = "Bearer " + document.querySelector("input").value;
  document.querySelector("pre").textContent = await (await fetch(path, { headers: { authorization } })).text();
});
</script>`;

function page(needsToken: boolean): Response {
  const rows = INDEX.map(([path, methods, what]) => `<li><a href="${path}">${path}</a> (${methods}): ${what}</li>`);
  const html = `<!doctype html><meta charset="utf-8"><title>gwproxy</title><h1>gwproxy</h1><ul>${rows.join("")}</ul>${needsToken ? ASKING : ""}\n`;
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; script-src 'unsafe-inline'; connect-src 'self'",
  };
  return new Response(html, { headers });
}

function json(value: unknown): Response {
  return new Response(`${JSON.stringify(value, undefined, 2)}\n`, { headers: { "content-type": "application/json" } });
}

function text(body: string, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(body, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}

/** Comes after the real routes: the first that fits answers. */
function refuseOtherMethods(app: H3, paths: readonly (readonly [path: string, methods: string])[]): void {
  const allowed = new Map(paths);
  app.all("/**", (event) => {
    const allow = allowed.get(event.url.pathname);
    return allow === undefined ? text("not found\n", 404) : text("method not allowed\n", 405, { allow });
  });
}

/** @throws FatalError when the address is taken */
async function serveOn(app: H3, { host, port }: ServerAddress): Promise<RunningServer> {
  const server: Server = createServer(toNodeHandler(app));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new FatalError(`cannot listen on ${host}:${port}: ${messageOf(error)}`, 1, error)),
    );
    server.listen({ port, ...(host === "" ? {} : { host }) }, resolve);
  });
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("a server that listens on a port has none");
  return {
    address: `${host.includes(":") ? `[${host}]` : host}:${bound.port}`,
    bound,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
