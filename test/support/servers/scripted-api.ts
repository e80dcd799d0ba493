/**
 * An HTTP server in place of an API server, whose every answer a test scripts by hand. It produces what a healthy API
 * server never does on demand: broken connections, expired resource versions, silence.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKubernetesClient, type KubernetesClient } from "../../../src/sources/kubernetes/client.ts";

interface ScriptedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** Answers with JSON. */
  reply(body: unknown, status?: number, headers?: Readonly<Record<string, string | readonly string[]>>): void;
  /** Begins an endless answer if necessary and sends lines of it in one piece. */
  send(...lines: readonly unknown[]): void;
  /** Sends bytes as they are, for instance half a line. */
  sendText(text: string | Uint8Array): void;
  end(): void;
  /** Cuts the connection. */
  cut(): void;
  /** Resolves when the connection of the request is closed. */
  readonly closed: Promise<unknown>;
}

export interface ScriptedApi {
  readonly client: KubernetesClient;
  /** Returns the next request that was not taken yet, whether or not it has arrived already. */
  next(): Promise<ScriptedRequest>;
  stop(): Promise<void>;
}

/** @param skip selects requests that the test ignores; they stay unanswered until the end */
export async function startScriptedApi(skip: (path: string) => boolean = () => false): Promise<ScriptedApi> {
  const arrived: ScriptedRequest[] = [];
  const waiting: ((request: ScriptedRequest) => void)[] = [];
  const server = createServer(async (incoming, response) => {
    const url = new URL(incoming.url ?? "/", "http://scripted");
    if (skip(url.pathname)) return;
    let body = "";
    // setEncoding makes every chunk a string
    for await (const chunk of incoming.setEncoding("utf8")) body += chunk as string;
    const request = scriptedRequest(url, { method: incoming.method ?? "", headers: incoming.headers, body }, response);
    const taker = waiting.shift();
    if (taker === undefined) arrived.push(request);
    else taker(request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // a TCP server has such an address
  const directory = await mkdtemp(join(tmpdir(), "gwproxy-scripted-"));
  const kubeconfig = join(directory, "kubeconfig");
  await writeFile(kubeconfig, JSON.stringify(configFor(`http://127.0.0.1:${port}`)));
  const client = await createKubernetesClient(kubeconfig);
  return {
    client,
    next: () => {
      const first = arrived.shift();
      return first === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(first);
    },
    stop: async () => {
      client.close();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      await rm(directory, { recursive: true });
    },
  };
}

function scriptedRequest(
  url: URL,
  { method, headers, body }: Pick<ScriptedRequest, "method" | "headers" | "body">,
  response: ServerResponse,
): ScriptedRequest {
  const closed = once(response, "close");
  const begin = (status: number): void => {
    if (!response.headersSent) response.writeHead(status, { "content-type": "application/json" }).flushHeaders();
  };
  return {
    method,
    path: url.pathname,
    query: url.searchParams,
    headers,
    body,
    closed,
    reply: (answer, status = 200, more = {}) => {
      for (const [name, value] of Object.entries(more)) response.setHeader(name, value);
      begin(status);
      response.end(JSON.stringify(answer));
    },
    send: (...lines) => {
      begin(200);
      response.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    },
    sendText: (text) => {
      begin(200);
      response.write(text);
    },
    end: () => response.end(),
    cut: () => response.destroy(),
  };
}

function configFor(server: string): unknown {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "scripted", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "tester", user: { token: "open-sesame" } }],
    contexts: [{ name: "scripted", context: { cluster: "scripted", user: "tester" } }],
    "current-context": "scripted",
  };
}
