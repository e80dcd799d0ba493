/** Responses that an MCP server must not send: each call fails, at little cost for the gateway. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";

/** A value that is nested too deeply. */
export const DEEP: string = `${"[".repeat(70)}${"]".repeat(70)}`;

const SAID = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "said" } };
/** Misbehaviours that are none in 2025-03-26, where servers may send batches. */
export const BATCHES: ReadonlySet<string> = new Set(["answers with a list", "answers with a list as an event"]);

/** Answers of a server to `tools/call`, by the name of the tool. */
export const MISBEHAVIOURS: Readonly<Record<string, (response: ServerResponse, id: number) => void>> = {
  redirects: (response) => void response.writeHead(307, { location: "/elsewhere" }).end(),
  "answers another id": (response) => sendJson(response, { jsonrpc: "2.0", id: "other", result: {} }),
  "answers with nothing": (response) => void response.writeHead(202).end(),
  "sends HTML": (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<p>hello</p>"),
  "sends no JSON": (response) => void response.writeHead(200, { "content-type": "application/json" }).end("{"),
  "sends no message": (response) => sendJson(response, { id: 7, result: {} }),
  "sends too much": (response, id) => sendJson(response, { jsonrpc: "2.0", id, result: { text: "x".repeat(70_000) } }),
  "sends too large an event": (response) => sendEvents(response, `data: ${"x".repeat(70_000)}\n\n`),
  "sends an event that is no message": (response) => sendEvents(response, "data: hello\n\n"),
  "ends its stream": (response) => sendEvents(response, ": nothing\n\n"),
  "cuts its stream": (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": nothing\n\n", () => response.destroy());
  },
  "cuts its connection": (response) => void response.destroy(),
  "answers another id on its stream": (response) =>
    sendEvents(response, 'data: {"jsonrpc":"2.0","id":"other","result":{}}\n\n'),
  "answers with both": (response, id) => sendJson(response, { jsonrpc: "2.0", id, result: {}, error: { code: 1 } }),
  "answers with a list": (response, id) => sendJson(response, [SAID, { jsonrpc: "2.0", id, result: {} }]),
  "answers with a list as an event": (response, id) =>
    sendEvents(response, `data: ${JSON.stringify([SAID, { jsonrpc: "2.0", id, result: {} }])}\n\n`),
  "answers a fraction of the id": (response, id) => sendJson(response, { jsonrpc: "2.0", id: id + 0.5, result: {} }),
  "answers with a request": (response, id) => sendJson(response, { jsonrpc: "2.0", id, method: "ping" }),
  "answers with no id": (response) => sendJson(response, { jsonrpc: "2.0", error: { code: 1, message: "hello" } }),
  "answers too deeply": (response, id) => sendText(response, `{"jsonrpc":"2.0","id":${id},"result":{"a":${DEEP}}}`),
  "redirects with an answer": (response, id) =>
    void response
      .writeHead(302, { location: `http://127.0.0.1:1/`, "content-type": "application/json" })
      .end(`{"jsonrpc":"2.0","id":${id},"result":{}}`),
  "changes the protocol": (response) =>
    void response.writeHead(101, { connection: "upgrade", upgrade: "websocket" }).end(),
  "sends an unknown coding": (response, id) => {
    response.setHeader("content-encoding", "hello");
    sendJson(response, { jsonrpc: "2.0", id, result: {} });
  },
  "sends too much, compressed": (response, id) => {
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
    response.end(gzipSync(`{"jsonrpc":"2.0","id":${id},"result":{"text":"${"x".repeat(10_000_000)}"}}`));
  },
  "sends what is not compressed": (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end("hello");
  },
  "ends before its length": (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
    response.write("{", () => response.destroy());
  },
  "sends ten megabytes": (response, id) =>
    sendJson(response, { jsonrpc: "2.0", id, result: { text: "x".repeat(10_000_000) } }),
  "sends JSON without end": (response) =>
    sendForEver(response, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{", " "),
  "sends an event without end": (response) => sendForEver(response, `${EVENT_HEAD}data: `, "x"),
  "sends an event of endless lines": (response) => sendForEver(response, EVENT_HEAD, "data: x\n"),
  "sends a field without end": (response) => sendForEver(response, `${EVENT_HEAD}id: `, "x"),
  "sends headers without end": (response) => sendForEver(response, "HTTP/1.1 200 OK\r\n", "x-hello: hello\r\n"),
  "sends a header without end": (response) => sendForEver(response, "HTTP/1.1 200 OK\r\nx-hello: ", "x"),
  "gives an id that no header can carry": (response) => sendEvents(response, "retry: 1\nid: \u0001\ndata:\n\n"),
};

const EVENT_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

function sendJson(response: ServerResponse, message: unknown): void {
  sendText(response, JSON.stringify(message));
}

export function sendText(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(text);
}

/** Connections on which servers write for ever. */
const endless = new Set<Socket>();

/** Writes to the connection itself until the reader closes it. */
function sendForEver({ socket }: ServerResponse, head: string, more: string): void {
  assert.ok(socket !== null);
  endless.add(socket);
  const chunk = more.repeat(10_000);
  const write = (): void => {
    while (socket.write(chunk));
  };
  // The reader resets the connection, which is an error for the writer.
  socket.on("error", () => undefined);
  socket.on("close", () => endless.delete(socket));
  socket.on("drain", write);
  socket.write(head);
  write();
}

/** Resolves when the readers of all endless responses have closed their connections. */
export async function untilClosed(): Promise<void> {
  while (endless.size > 0) await new Promise(setImmediate);
}

function sendEvents(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(text);
}
