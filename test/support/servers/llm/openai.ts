/**
 * A strict OpenAI platform on a real socket: chat completions, responses, embeddings and models. It verifies method,
 * path, credential and body, and answers what a test has set, as JSON or as server-sent events.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../../proofs/prove.ts";
import {
  printCompletion,
  printError,
  printResponse,
  streamCompletion,
  streamResponse,
  type OpenAiAnswer,
} from "./openai-answers.ts";
import { findCompletionsFault, findEmbeddingsFault, findResponsesFault } from "./openai-checks.ts";

type Fields = Record<string, unknown>;

export const OPENAI_KEY = "sk-of-the-test";

export interface OpenAiServer {
  readonly port: number;
  /** Requests that were in order, oldest first. */
  readonly seen: {
    readonly path: string;
    readonly query: string;
    readonly headers: IncomingMessage["headers"];
    readonly body: Fields;
  }[];
  /** Sets the answer to the next requests. */
  answer: OpenAiAnswer;
}

/** @param bases of the paths, in front of `/chat/completions` and the other operations; Azure has a prefix of its own */
export async function startOpenAi(
  context: Pick<ProofContext, "after">,
  bases: readonly string[] = ["/v1", "/openai/v1"],
): Promise<OpenAiServer> {
  const openai: OpenAiServer & { port: number } = { port: 0, seen: [], answer: {} };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => serve(openai, bases, { request, bytes: Buffer.concat(chunks) }, response));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  // A server that listens on a port has an address of this form.
  openai.port = (server.address() as AddressInfo).port;
  return openai;
}

function serve(
  openai: OpenAiServer,
  bases: readonly string[],
  { request, bytes }: { readonly request: IncomingMessage; readonly bytes: Buffer },
  response: ServerResponse,
): void {
  const { method, url = "", headers } = request;
  const [path = "", query = ""] = url.split("?", 2);
  if (headers.authorization !== `Bearer ${OPENAI_KEY}`)
    return refuse(response, 401, "invalid_request_error", "Incorrect API key provided");
  const base = bases.find((each) => OPERATIONS[`${method} ${path.slice(each.length)}`] && path.startsWith(each));
  const operation = base === undefined ? undefined : OPERATIONS[`${method} ${path.slice(base.length)}`];
  if (operation === undefined) return refuse(response, 404, "invalid_request_error", `Invalid URL (${method} ${path})`);
  const body = method === "GET" ? {} : parse(bytes);
  const fault = body === undefined ? "the body is not a JSON object" : operation.fault(body);
  if (body === undefined || fault !== undefined)
    return refuse(response, 400, "invalid_request_error", fault ?? "unreadable");
  openai.seen.push({ path, query, headers, body });
  const { error } = openai.answer;
  for (const [name, value] of Object.entries(error?.headers ?? {})) response.setHeader(name, value);
  if (error !== undefined) return refuse(response, error.status, error.type, error.message);
  operation.reply(response, openai.answer, body);
}

interface Operation {
  /** @returns what is wrong with a request */
  fault(body: Fields): string | undefined;
  reply(response: ServerResponse, answer: OpenAiAnswer, body: Fields): void;
}

const OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /chat/completions": {
    fault: findCompletionsFault,
    reply(response, answer, body) {
      const { model, stream, stream_options: options } = body;
      const showsUsage = (options as { include_usage?: boolean } | undefined)?.include_usage === true;
      if (stream === true) flow(response, streamCompletion(answer, model, showsUsage));
      else send(response, 200, printCompletion(answer, model));
    },
  },
  "POST /responses": {
    fault: findResponsesFault,
    reply(response, answer, body) {
      if (body["stream"] === true) flow(response, streamResponse(answer, body));
      else send(response, 200, printResponse(answer, body));
    },
  },
  "POST /embeddings": {
    fault: findEmbeddingsFault,
    reply(response, _answer, { model, input, encoding_format: format }) {
      const vector = [0.25, -0.5];
      const packed = Buffer.from(Float32Array.from(vector).buffer).toString("base64");
      const embedding = format === "base64" ? packed : vector;
      const data = [input].flat().map((_text, index) => ({ object: "embedding", index, embedding }));
      send(response, 200, { object: "list", data, model, usage: { prompt_tokens: 8, total_tokens: 8 } });
    },
  },
  "GET /models/gpt-9": {
    fault: () => undefined,
    reply: (response) => send(response, 200, { id: "gpt-9", object: "model", created: 1, owned_by: "openai" }),
  },
  "POST /moderations": {
    fault: ({ input }) => (input === undefined ? "input is missing" : undefined),
    reply: (response) => send(response, 200, { id: "modr-1", model: "omni-moderation-latest", results: [] }),
  },
  "GET /models": {
    fault: () => undefined,
    reply: (response) =>
      send(response, 200, { object: "list", data: [{ id: "gpt-9", object: "model", created: 1, owned_by: "openai" }] }),
  },
};

function parse(bytes: Buffer): Fields | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

function refuse(response: ServerResponse, status: number, type: string, message: string): void {
  send(response, status, printError({ type, message }));
}

function send(response: ServerResponse, status: number, body: Fields): void {
  response.writeHead(status, { "content-type": "application/json", "x-request-id": "req_1" }).end(JSON.stringify(body));
}

function flow(response: ServerResponse, events: readonly string[]): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  for (const event of events) response.write(event);
  response.end();
}
