/**
 * Shared by all servers for operators: the addresses they listen on, the shape of their responses, and the answer to
 * unknown paths.
 */
import { createServer, type Server } from "node:http";
import { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import { FatalError, messageOf } from "../lib/errors.ts";
import type { BoundAddress } from "../lib/network/own-listeners.ts";

/** Port 0 lets the system choose a port; an empty host listens on every address. */
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

/** Maps a path to its methods, in the form of the Allow header. */
export type AllowedMethods = readonly (readonly [path: string, methods: string])[];

export function json(value: unknown, indent = 2): Response {
  return new Response(`${JSON.stringify(value, undefined, indent)}\n`, {
    headers: { "content-type": "application/json" },
  });
}

export function text(body: string, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(body, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}

/**
 * Answers 404, or 405 with Allow (RFC 9110 §15.5.6). Must be called after the real routes are registered, because h3
 * takes the first match.
 */
export function refuseOtherMethods(app: H3, paths: AllowedMethods): void {
  const allowed = new Map(paths);
  app.all("/**", (event) => {
    const allow = allowed.get(event.url.pathname);
    return allow === undefined ? text("not found\n", 404) : text("method not allowed\n", 405, { allow });
  });
}

/** @throws FatalError when the address is in use */
export async function serveOn(app: H3, { host, port }: ServerAddress): Promise<RunningServer> {
  const handle = toNodeHandler(app);
  const server: Server = createServer((request, response) => {
    // No answer is ever taken for a page or a script because of what it contains.
    response.setHeader("x-content-type-options", "nosniff");
    return handle(request, response);
  });
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
