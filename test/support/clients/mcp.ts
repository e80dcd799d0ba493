/** The official MCP client (SDK 1.x) and raw requests, both against a URL of a gateway. */
import assert from "node:assert/strict";
import { request, type IncomingMessage } from "node:http";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { call, parseJson, type Answer } from "./http.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface McpClient {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

/** Headers of a posted message. */
export const MCP_HEADERS: Readonly<Record<string, string>> = {
  accept: "application/json, text/event-stream",
  "content-type": "application/json",
};

export const INITIALIZE: string = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
});

/** Posts one message as it stands. */
export function post(url: string, message: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const body = typeof message === "string" ? message : JSON.stringify(message);
  return call(url, { method: "POST", headers: { ...MCP_HEADERS, ...headers }, body });
}

/** @param setUp registers handlers before the client connects */
export async function connectMcp(
  context: Pick<ProofContext, "after">,
  url: string,
  setUp: (client: Client) => void = () => undefined,
  options: StreamableHTTPClientTransportOptions = {},
): Promise<McpClient> {
  const client = new Client({ name: "test-client", version: "1.0.0" }, { capabilities: { roots: {} } });
  const transport = new StreamableHTTPClientTransport(new URL(url), options);
  setUp(client);
  try {
    await client.connect(transport as Parameters<Client["connect"]>[0]);
  } catch (error) {
    assert.fail(`the client cannot connect: ${String(error)}`);
  }
  context.after(() => client.close());
  return { client, transport };
}

/** The answer to one posted request. */
export interface McpResponse {
  readonly status: number;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
  /** The body as received. */
  readonly body: string;
}

/** Posts one request without a session, and reads the response to it from JSON or from the last event. */
export async function askMcp(
  url: string,
  method: string,
  params: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<McpResponse> {
  const version = { "mcp-protocol-version": "2025-11-25" };
  const {
    status,
    headers: fields,
    body,
  } = await call(url, {
    method: "POST",
    headers: { ...MCP_HEADERS, ...version, ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const isEvents = String(fields["content-type"]).startsWith("text/event-stream");
  const text = isEvents ? (body.split("\n").findLast((line) => line.startsWith("data:")) ?? "").slice(5) : body;
  const parsed = text.trim().startsWith("{") ? (parseJson(text) as Pick<McpResponse, "result" | "error">) : {};
  return { status, body, ...parsed };
}

export interface OpenedSse {
  /** Path and query to post to. */
  readonly address: string;
  /** Data of the next message. */
  next(): Promise<unknown>;
  close(): void;
  readonly response: IncomingMessage;
}

/** Opens a stream of HTTP+SSE by hand. */
export async function openSse(
  t: Pick<ProofContext, "after">,
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<OpenedSse> {
  const outgoing = request(url, { headers: { accept: "text/event-stream", ...headers }, agent: false });
  outgoing.on("error", () => undefined);
  t.after(() => void outgoing.destroy());
  const response = await new Promise<IncomingMessage>((resolve) => {
    outgoing.on("response", resolve);
    outgoing.end();
  });
  assert.equal(response.statusCode, 200);
  response.on("error", () => undefined);
  const chunks = response.setEncoding("utf8")[Symbol.asyncIterator]();
  let text = "";
  const nextEvent = async (): Promise<string> => {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end !== -1) {
        const event = text.slice(0, end);
        text = text.slice(end + 2);
        if (event.startsWith(":")) continue;
        return event;
      }
      const { done, value } = (await chunks.next()) as IteratorResult<string>;
      if (done === true) assert.fail("the stream has ended");
      text += value;
    }
  };
  const [, address] = /^event: endpoint\ndata: (.*)$/.exec(await nextEvent()) ?? [];
  return {
    address: address ?? assert.fail("the first event is another one"),
    next: async () => JSON.parse((await nextEvent()).replace("event: message\ndata: ", "")) as unknown,
    close: () => outgoing.destroy(),
    response,
  };
}
