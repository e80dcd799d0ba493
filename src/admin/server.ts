/**
 * The admin server of a data plane, for people on loopback: routes the table of paths. Paths receive everything that
 * they show through the options, so this module does not depend on the data plane.
 */
import { createHash } from "node:crypto";
import { H3 } from "h3";
import type { LogFilter } from "../lib/log.ts";
import { refuseForeign, requireToken } from "./access.ts";
import { refuseOtherMethods, serveOn, type RunningServer, type ServerAddress } from "./http.ts";
import type { AdminContext } from "./paths/admin-path.ts";
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

export async function startAdminServer(options: AdminOptions): Promise<RunningServer> {
  const { address, filter, token, onFilter = () => undefined } = options;
  const initialFilter: LogFilter = { level: filter.level, modules: new Map(filter.modules) };
  const context: AdminContext = { ...options, initialFilter, onFilter };
  const app = new H3({ silent: true });
  app.use((event) => refuseForeign(event));
  if (token !== undefined) app.use(requireToken(token));
  app.get("/", () => adminPage(token !== undefined));
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

/** Fetches paths with the token, which stays in the memory of the page. */
const SCRIPT = `
document.addEventListener("click", async (event) => {
  const path = event.target.getAttribute("href");
  if (path === null) return;
  event.preventDefault();
  const authorization = "Bearer " + document.querySelector("input").value;
  document.querySelector("pre").textContent = await (await fetch(path, { headers: { authorization } })).text();
});
`;
const ASKING = `<p><input type="password" placeholder="token" autocomplete="off"><pre></pre><script>${SCRIPT}</script>`;

/** Lets browsers run that script alone, by its digest (CSP Level 3 §2.3.1), and show the page in no other one. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `script-src 'sha256-${createHash("sha256").update(SCRIPT).digest("base64")}'`,
  "connect-src 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** Returns the page at the root, which lists the paths. */
function adminPage(needsToken: boolean): Response {
  const rows = Object.entries(ADMIN_PATHS).map(
    ([path, entry]) => `<li><a href="${path}">${path}</a> (${methodsOf(entry)}): ${entry.help}</li>`,
  );
  const html = `<!doctype html><meta charset="utf-8"><title>gwproxy</title><h1>gwproxy</h1><ul>${rows.join("")}</ul>${needsToken ? ASKING : ""}\n`;
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
  };
  return new Response(html, { headers });
}
