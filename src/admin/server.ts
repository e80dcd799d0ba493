/**
 * The admin server of a data plane, for people on loopback: routes the table of paths. Paths receive everything that
 * they show through the options, so this module does not depend on the data plane.
 */
import { H3, type H3Event } from "h3";
import type { LogFilter } from "../lib/log.ts";
import { refuseForeign, requireToken } from "./access.ts";
import { refuseOtherMethods, serveOn, text, type RunningServer, type ServerAddress } from "./http.ts";
import type { AdminContext } from "./paths/admin-path.ts";
import { consolePage } from "./paths/console.ts";
import { ADMIN_PATHS, methodsOf } from "./paths/index.ts";

export interface AdminOptions extends Omit<AdminContext, "initialFilter" | "onFilter"> {
  readonly address: ServerAddress;
  readonly onFilter?: () => void;
  /**
   * Returns the token that requests must send as `Authorization: Bearer`, read for each request; undefined when no
   * token is needed.
   */
  readonly token?: (() => Promise<string>) | undefined;
}

/** The page at the root and its files. */
const PUBLIC_PATHS: ReadonlySet<string> = new Set([
  "/",
  ...Object.entries(ADMIN_PATHS).flatMap(([path, { isPublic }]) => (isPublic === true ? [path] : [])),
]);

export async function startAdminServer(options: AdminOptions): Promise<RunningServer> {
  const { address, filter, token, onFilter = () => undefined } = options;
  const initialFilter: LogFilter = { level: filter.level, modules: new Map(filter.modules) };
  const context: AdminContext = { ...options, initialFilter, onFilter };
  const app = new H3({ silent: true });
  app.use((event) => refuseForeign(event));
  if (token !== undefined) app.use(requireToken(token, PUBLIC_PATHS));
  app.get("/", rootPage);
  for (const [path, { get, post }] of Object.entries(ADMIN_PATHS)) {
    if (get !== undefined) app.get(path, (event) => get(event, context));
    if (post !== undefined) app.post(path, (event) => post(event, context));
  }
  refuseOtherMethods(
    app,
    Object.entries(ADMIN_PATHS).map(([path, entry]): [string, string] => [path, methodsOf(entry)]),
  );
  return serveOn(app, address);
}

/** Returns the console, or the list of paths to a client that asks for plain text (RFC 9110 §12.5.1). */
function rootPage({ req }: H3Event): Response {
  const rows = Object.entries(ADMIN_PATHS).map(([path, entry]) => [path, methodsOf(entry), entry.help] as const);
  const accept = req.headers.get("accept") ?? "";
  if (!accept.includes("text/plain") || accept.includes("text/html")) return consolePage(rows);
  return text(rows.map(([path, methods, help]) => `${path} (${methods}): ${help}\n`).join(""));
}
