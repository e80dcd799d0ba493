/**
 * The admin servers, for people on loopback: that of a data plane and that of a controller. Each routes its table of
 * paths. Paths receive everything that they show through the options, so this module depends on neither process.
 */
import { H3, type H3Event } from "h3";
import type { LogFilter } from "../lib/log.ts";
import { refuseForeign, requireToken } from "./access.ts";
import { refuseOtherMethods, serveOn, text, type RunningServer, type ServerAddress } from "./http.ts";
import type { AdminContext, ControllerAdminContext, LoggingContext } from "./paths/admin-path.ts";
import { consolePage } from "./paths/console.ts";
import { ADMIN_PATHS, CONTROLLER_ADMIN_PATHS, methodsOf, type AdminPaths } from "./paths/index.ts";

interface ServerOptions {
  readonly address: ServerAddress;
  /**
   * Returns the token that requests must send as `Authorization: Bearer`, read for each request; undefined when no
   * token is needed.
   */
  readonly token?: (() => Promise<string>) | undefined;
  readonly onFilter?: () => void;
}

export interface AdminOptions extends Omit<AdminContext, "initialFilter" | "onFilter">, ServerOptions {}

export interface ControllerAdminOptions
  extends Omit<ControllerAdminContext, "initialFilter" | "onFilter">, ServerOptions {}

export function startAdminServer(options: AdminOptions): Promise<RunningServer> {
  return serveAdmin(ADMIN_PATHS, { ...options, ...loggingOf(options) }, options, (rows, { req }) => {
    const accept = req.headers.get("accept") ?? "";
    // The console, or the list of paths to a client that asks for plain text (RFC 9110 §12.5.1).
    return !accept.includes("text/plain") || accept.includes("text/html") ? consolePage(rows) : pathList(rows);
  });
}

export function startControllerAdminServer(options: ControllerAdminOptions): Promise<RunningServer> {
  return serveAdmin(CONTROLLER_ADMIN_PATHS, { ...options, ...loggingOf(options) }, options, pathList);
}

/** Paths of a server with their methods and help. */
type PathRows = readonly (readonly [path: string, methods: string, help: string])[];

async function serveAdmin<Context>(
  paths: AdminPaths<Context>,
  context: Context,
  { address, token }: ServerOptions,
  rootPage: (rows: PathRows, event: H3Event) => Response,
): Promise<RunningServer> {
  const entries = Object.entries(paths);
  const rows = entries.map(([path, entry]) => [path, methodsOf(entry), entry.help] as const);
  const publicPaths = new Set(["/", ...entries.flatMap(([path, { isPublic }]) => (isPublic === true ? [path] : []))]);
  const app = new H3({ silent: true });
  app.use((event) => refuseForeign(event));
  if (token !== undefined) app.use(requireToken(token, publicPaths));
  app.get("/", (event) => rootPage(rows, event));
  for (const [path, { get, post, put }] of entries) {
    if (get !== undefined) app.get(path, (event) => get(event, context));
    if (post !== undefined) app.post(path, (event) => post(event, context));
    if (put !== undefined) app.put(path, (event) => put(event, context));
  }
  refuseOtherMethods(app, [["/", "GET"], ...rows.map(([path, methods]): [string, string] => [path, methods])]);
  return serveOn(app, address);
}

function loggingOf({ filter, onFilter = () => undefined }: ServerOptions & Pick<LoggingContext, "filter">): {
  readonly initialFilter: LogFilter;
  readonly onFilter: () => void;
} {
  return { initialFilter: { level: filter.level, modules: new Map(filter.modules) }, onFilter };
}

function pathList(rows: PathRows): Response {
  return text(rows.map(([path, methods, help]) => `${path} (${methods}): ${help}\n`).join(""));
}
