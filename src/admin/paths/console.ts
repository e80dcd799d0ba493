/**
 * The console: the page at the root of the admin server, its script and style (src/console, bundled into
 * generated/console), and `/console/data`, which the page asks for every few seconds.
 */
import { getQuery } from "h3";
import type { AdminPath } from "./admin-path.ts";

/**
 * Lets the browser load nothing but the files below, run no text of the page as code or style, and show the page in no
 * frame (CSP Level 3). Downloads of recorded traces are links to `blob:` URLs, which no directive governs.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' " +
  "rx='4' fill='%230f766e'/%3E%3Cpath d='M3 8h4l2-3h4M7 8l2 3h4' fill='none' stroke='white' stroke-width='1.5'/%3E%3C/svg%3E";

const SCRIPT = "/console/app.js";
const STYLE = "/console/app.css";

export const consoleScript: AdminPath = {
  help: "the script of the page at the root",
  isPublic: true,
  async get() {
    const { CONSOLE_SCRIPT } = await import("../../../generated/console/assets.ts");
    return file(CONSOLE_SCRIPT, "text/javascript; charset=utf-8");
  },
};

export const consoleStyle: AdminPath = {
  help: "the style of the page at the root",
  isPublic: true,
  async get() {
    const { CONSOLE_STYLE } = await import("../../../generated/console/assets.ts");
    return file(CONSOLE_STYLE, "text/css; charset=utf-8");
  },
};

/** Bounds a text of the query, which is compared with every name. */
const MAX_TEXT = 200;

export const consoleData: AdminPath = {
  help: "what the page at the root shows, as JSON; for the page alone, so it may change with every version",
  async get(event, { console: data }) {
    const query = getQuery(event);
    const textOf = (name: string): string | undefined => {
      const value = query[name];
      return typeof value === "string" && value !== "" ? value.slice(0, MAX_TEXT) : undefined;
    };
    const content = await data({ known: textOf("known"), backends: textOf("backends"), usage: textOf("usage") });
    // Without line breaks: 5,000 routes are half as long, and only the page reads them.
    return file(JSON.stringify(content), "application/json", { "cache-control": "no-store" });
  },
};

/**
 * Returns the page at the root. It holds nothing about the process, and lists the paths for readers without a script.
 * @param paths of the server, with their methods and help
 */
export function consolePage(paths: readonly (readonly [path: string, methods: string, help: string])[]): Response {
  const rows = paths.map(
    ([path, methods, help]) => `<li><code>${escapeHtml(path)}</code> (${methods}): ${escapeHtml(help)}</li>`,
  );
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>gwproxy</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${STYLE}">
<script type="module" src="${SCRIPT}"></script>
</head>
<body>
<div id="console"><noscript><p class="notice">This page needs JavaScript. The paths below work without it.</p></noscript></div>
<footer><details><summary>Paths of this server</summary><ul>
${rows.join("\n")}
</ul></details></footer>
</body>
</html>
`;
  return file(html, "text/html; charset=utf-8", { "content-security-policy": CONTENT_SECURITY_POLICY });
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

/** The files change with the process, so that a browser asks for them again each time. */
function file(body: string, type: string, headers: Record<string, string> = {}): Response {
  return new Response(body, {
    headers: { "content-type": type, "cache-control": "no-cache", ...headers },
  });
}
