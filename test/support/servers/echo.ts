/**
 * An upstream that answers with the request that it received, as JSON. A path such as /status/503 or /slow/200 changes
 * its answer.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseJson } from "../clients/http.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface Echoed {
  readonly method: string;
  readonly url: string;
  /** Header names are lower-case; repeated ones are joined as node:http does. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Echo {
  readonly port: number;
  /** Requests that it received, oldest first. */
  readonly seen: Echoed[];
}

export async function startEcho(
  context: ProofContext,
  options: { readonly unixPath?: string; readonly tag?: string } = {},
): Promise<Echo> {
  const seen: Echoed[] = [];
  const server = createServer((request, response) => {
    // A request that breaks off has no client to answer.
    answer(request, response, seen, options.tag).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => {
    if (options.unixPath === undefined) server.listen(0, "127.0.0.1", resolve);
    else server.listen(options.unixPath, resolve);
  });
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const port = options.unixPath === undefined ? (server.address() as AddressInfo).port : 0;
  return { port, seen };
}

async function answer(request: IncomingMessage, response: ServerResponse, seen: Echoed[], tag = "echo"): Promise<void> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk as string;
  const echoed = {
    method: request.method ?? "",
    url: request.url ?? "",
    headers: request.headers as Record<string, string>,
    body,
  };
  seen.push(echoed);
  response.setHeader("x-upstream", tag);
  response.setHeader("content-type", "application/json");
  const [, verb, value] = (request.url ?? "").split("/");
  if (verb === "status") response.statusCode = Number(value);
  if (verb === "slow") return;
  response.end(JSON.stringify(echoed));
}

export function echoed(body: string): Echoed {
  return parseJson(body) as Echoed;
}
