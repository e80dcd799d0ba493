/**
 * The servers that operators talk to: admin on loopback, metrics, readiness. In: functions that say what there is.
 * Out: answers. Not here: how any of it comes about. A foreign Host is refused, so that a web page in an operator's
 * browser cannot reach the admin server through a name that it controls (DNS rebinding).
 */
import { createServer, type Server } from "node:http";
import { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import { FatalError, messageOf } from "../lib/errors.ts";
import { type LogFilter, type Logger, parseLogFilter, printLogFilter } from "../lib/log.ts";
import { memoryReport } from "./memory.ts";

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

export interface RunningServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface AdminOptions {
  readonly address: ServerAddress;
  /** The dump, with secrets masked by its maker. */
  readonly state: () => object;
  readonly filter: LogFilter;
  readonly log: Logger;
  /** Resolves when requests in flight have ended. */
  readonly drain: () => Promise<void>;
  /** Ends the process. */
  readonly quit: () => void;
}

const PAGES: readonly (readonly [string, string])[] = [
  ["GET /config_dump", "what this data plane serves, secrets masked"],
  ["GET /logging", "the log filter; POST ?level=info,proxy=debug changes it, ?reset=1 restores the one of the start"],
  ["GET /memory", "heap and process figures"],
  ["POST /quitquitquit", "drains and stops"],
];

export async function startAdminServer(options: AdminOptions): Promise<RunningServer> {
  const initial = printLogFilter(options.filter);
  const app = new H3();
  app.use((event) => {
    if (!isLoopbackHost(event.req.headers.get("host") ?? "")) return text("foreign host\n", 403);
    return undefined;
  });
  app.get("/", () => {
    const rows = PAGES.map(([page, what]) => `<li><code>${page}</code> ${what}</li>`).join("");
    return new Response(`<!doctype html><title>gwproxy</title><h1>gwproxy</h1><ul>${rows}</ul>`, { headers: { "content-type": "text/html" } });
  });
  app.get("/config_dump", () => json(options.state()));
  app.get("/memory", () => json(memoryReport()));
  app.get("/logging", () => text(`current log level is ${printLogFilter(options.filter)}\n`));
  app.post("/logging", (event) => setLevel(options.filter, initial, new URL(event.req.url).searchParams));
  app.post("/quitquitquit", async () => {
    await options.drain();
    options.quit();
    return text("shutdown now\n");
  });
  refuseOtherMethods(app, ["/", "/config_dump", "/memory", "/logging", "/quitquitquit"]);
  const server = await listen(app, options.address);
  options.log.debug("admin server", { port: server.port });
  return server;
}

export async function startMetricsServer(options: { readonly address: ServerAddress; readonly render: () => string }): Promise<RunningServer> {
  const app = new H3();
  app.get("/metrics", () => new Response(options.render(), { headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" } }));
  refuseOtherMethods(app, ["/metrics"]);
  return listen(app, options.address);
}

export async function startReadinessServer(options: { readonly address: ServerAddress; readonly pending: () => readonly string[] }): Promise<RunningServer> {
  const app = new H3();
  app.get("/healthz/ready", () => {
    const pending = options.pending();
    return pending.length === 0 ? text("ready\n") : text(`not ready, pending: ${pending.join(", ")}\n`, 500);
  });
  refuseOtherMethods(app, ["/healthz/ready"]);
  return listen(app, options.address);
}

function setLevel(filter: LogFilter & { level: string }, initial: string, query: URLSearchParams): Response {
  const wanted = query.get("level");
  const parsed = wanted === null ? undefined : parseLogFilter(wanted);
  if (wanted !== null && parsed === undefined) {
    return text("usage: POST /logging?level=info or ?level=info,proxy=debug (off, error, warn, info, debug, trace)\n", 400);
  }
  // The text came from a filter, so it parses.
  if (query.has("reset")) Object.assign(filter, parseLogFilter(initial));
  if (parsed !== undefined) Object.assign(filter, parsed);
  return text(`current log level is ${printLogFilter(filter)}\n`);
}

/** A known path with another method is 405, as a plain line. */
function refuseOtherMethods(app: H3, paths: readonly string[]): void {
  for (const path of paths) app.all(path, () => text("method not allowed\n", 405));
  app.all("/**", () => text("not found\n", 404));
}

function isLoopbackHost(host: string): boolean {
  const name = host.replace(/:\d+$/, "").toLowerCase();
  return name === "localhost" || name === "[::1]" || /^127(\.\d{1,3}){3}$/.test(name);
}

function text(body: string, status = 200): Response {
  return new Response(body, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
}

function json(value: object): Response {
  return new Response(`${JSON.stringify(value, null, 2)}\n`, { headers: { "content-type": "application/json" } });
}

async function listen(app: H3, { host, port }: ServerAddress): Promise<RunningServer> {
  const server: Server = createServer(toNodeHandler(app));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => reject(new FatalError(`cannot listen on ${host}:${port}: ${messageOf(cause)}`, 1, cause)));
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
