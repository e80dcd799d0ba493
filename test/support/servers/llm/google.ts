/**
 * Strict servers of Google on a real socket: the Gemini API and Vertex AI. They verify method, path, credential and body,
 * and answer what a test has set, as JSON or as server-sent events.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../../proofs/prove.ts";
import { findGeminiFault } from "./gemini-checks.ts";

/** API key as the Gemini API issues them. */
export const GEMINI_KEY = "AIzaSyTestKeyOfTheGateway";
/** Access token as Google Cloud issues them. */
export const GOOGLE_TOKEN = "ya29.token-of-the-gateway";
export const PROJECT = "test-project";

interface GoogleAnswer {
  /** Parts of the candidate; in a stream each is an event of its own. */
  readonly parts?: readonly object[];
  readonly finishReason?: string;
  readonly usage?: object;
  /** Refuses the prompt. */
  readonly blockReason?: string;
  readonly error?: { readonly status: number; readonly name: string; readonly message: string };
  /** Ends a stream with an error after the parts. */
  readonly breaks?: { readonly status: number; readonly name: string; readonly message: string };
  /** Body of the answers of endpoints that speak another format, and their events in a stream. */
  readonly body?: object;
  readonly events?: readonly object[];
}

interface SeenRequest {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

export interface GoogleServer {
  readonly port: number;
  /** Requests that were in order, oldest first. */
  readonly seen: readonly SeenRequest[];
  /** Sets the answer to the next requests. */
  answer: GoogleAnswer;
}

const USAGE = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };

/** Whom a server of Google serves. */
interface Customer {
  readonly project: string;
  /** The credential that is accepted instead of the usual ones. */
  readonly key?: string;
}

/** @param location of Vertex AI; undefined for the Gemini API */
export async function startGoogle(
  context: Pick<ProofContext, "after">,
  location?: string,
  customer: Customer = { project: PROJECT },
): Promise<GoogleServer> {
  const seen: SeenRequest[] = [];
  const google = { port: 0, seen, answer: {} as GoogleAnswer };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      if (`${method} ${url}` === "GET /v1beta/openai/models" && headers.authorization === `Bearer ${GEMINI_KEY}`)
        return sendJson(response, 200, { object: "list", data: [{ id: "models/gemini-2.5-pro", object: "model" }] });
      if (method === "GET" && location === undefined && /^\/v1beta\/models(?:\/[\w.-]+)?(?:\?.*)?$/.test(url))
        return listModels(url, headers, response);
      const endpoint = findEndpoint(url, location, customer.project);
      if (endpoint === undefined || method !== "POST")
        return refuse(response, { status: 404, name: "NOT_FOUND", message: `Method ${method} ${url} not found.` });
      const fault = findCredentialFault(headers, endpoint, location !== undefined, customer.key);
      if (fault !== undefined) return refuse(response, { status: 401, name: "UNAUTHENTICATED", message: fault });
      const body = parse(Buffer.concat(chunks));
      const wrong = body === undefined ? "the body is not a JSON object" : endpoint.fault(body);
      if (body === undefined || wrong !== undefined)
        return refuse(response, { status: 400, name: "INVALID_ARGUMENT", message: wrong ?? "" });
      seen.push({ url, headers, body });
      const { error } = google.answer;
      if (error !== undefined) return refuse(response, error);
      endpoint.reply(response, google.answer, body);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  google.port = (server.address() as AddressInfo).port; // it listens on a port
  return google;
}

/** The list of the native API, or an entry of it; keys travel in a header of their own. */
function listModels(url: string, headers: IncomingMessage["headers"], response: ServerResponse): void {
  if (headers["x-goog-api-key"] !== GEMINI_KEY || headers.authorization !== undefined)
    return refuse(response, { status: 401, name: "UNAUTHENTICATED", message: "API key not valid" });
  const model = { name: "models/gemini-2.5-pro", displayName: "Gemini 2.5 Pro" };
  return sendJson(response, 200, /\/models\//.test(url) ? model : { models: [model] });
}

interface Endpoint {
  /** Whether API keys go into x-goog-api-key. */
  readonly isNative: boolean;
  fault(body: Record<string, unknown>): string | undefined;
  reply(response: ServerResponse, answer: GoogleAnswer, body: Record<string, unknown>): void;
}

function findEndpoint(url: string, location: string | undefined, project: string): Endpoint | undefined {
  if (location === undefined && url === "/v1beta/openai/embeddings") return embeddings();
  if (location === undefined)
    return url === "/v1beta/openai/chat/completions" ? compatible() : native(url, "/v1beta/(?:models|tunedModels)/");
  if (url === `/v1/projects/${project}/locations/global/rankingConfigs/default_ranking_config:rank`) return ranking();
  const base = `/v1/projects/${project}/locations/${location}/`;
  if (!url.startsWith(base)) return undefined;
  if (url === `${base}endpoints/openapi/chat/completions`) return compatible();
  if (/\/publishers\/google\/models\/[\w.@-]+:predict$/.test(url)) return predictions();
  return native(url, `${base}publishers/google/models/`) ?? anthropic(url, `${base}publishers/anthropic/models/`);
}

function native(url: string, prefix: string): Endpoint | undefined {
  const embeds = new RegExp(`^${prefix}([A-Za-z0-9.@_-]+):(embedContent|batchEmbedContents)$`).exec(url);
  if (embeds !== null) return embedding(`models/${embeds[1]}`, embeds[2] === "batchEmbedContents");
  const form = new RegExp(`^${prefix}([A-Za-z0-9.@_-]+):(generateContent|streamGenerateContent\\?alt=sse)$`).exec(url);
  if (form === null) return undefined;
  return {
    isNative: true,
    fault: (body) => findGeminiFault(body, form[1] ?? ""),
    reply: (response, answer) =>
      form[2] === "generateContent"
        ? sendJson(response, 200, printWhole(answer))
        : sendEvents(response, printEvents(answer)),
  };
}

function compatible(): Endpoint {
  return {
    isNative: false,
    fault({ model, messages }) {
      if (typeof model !== "string" || model === "") return "model is missing";
      if (!Array.isArray(messages) || messages.length === 0) return "messages is missing";
      return /gemini-[3-9]/.test(model) && messages.some(lacksSignature)
        ? "a call is missing a thought_signature"
        : undefined;
    },
    reply(response, { body = {}, events = [] }, { stream }) {
      if (stream !== true) return sendJson(response, 200, body);
      sendEvents(response, [...events.map((event) => JSON.stringify(event)), "[DONE]"]);
    },
  };
}

/** Whether the first call of a message has no signature. */
function lacksSignature({ tool_calls: calls }: { readonly tool_calls?: readonly object[] }): boolean {
  const [first] = calls ?? [];
  return first !== undefined && !/"extra_content":{"google":{"thought_signature":"[^"]+"}}/.test(JSON.stringify(first));
}

/** Embeddings in the form of the Gemini API, whose bodies name the model again. */
function embedding(model: string, isBatch: boolean): Endpoint {
  const one = ({ model: named, content, ...more }: Record<string, unknown>): string | undefined => {
    const unknown = Object.keys(more).find((name) => !["taskType", "title", "outputDimensionality"].includes(name));
    if (unknown !== undefined) return `Unknown name "${unknown}"`;
    if (named !== model) return `The model ${String(named)} is not the one of the path.`;
    const { parts } = (content ?? {}) as { parts?: unknown[] };
    return Array.isArray(parts) && parts.length > 0 ? undefined : "content.parts is required";
  };
  return {
    isNative: true,
    fault(body) {
      if (!isBatch) return one(body);
      const { requests } = body;
      return Array.isArray(requests) ? requests.map(one).find((each) => each !== undefined) : "requests is required";
    },
    reply(response, _answer, { requests }) {
      const vectors = ((requests ?? [1]) as unknown[]).map((_one, at) => ({ values: [0.5, at] }));
      const usageMetadata = { promptTokenCount: 6 };
      sendJson(
        response,
        200,
        isBatch ? { embeddings: vectors, usageMetadata } : { embedding: vectors[0], usageMetadata },
      );
    },
  };
}

/** Embeddings in the form of OpenAI, packed as the client asks for them. */
function embeddings(): Endpoint {
  return {
    isNative: false,
    fault: ({ model, input }) => (typeof model === "string" && input !== undefined ? undefined : "input is missing"),
    reply(response, _answer, { model, encoding_format: encoding }) {
      const embedding =
        encoding === "base64" ? Buffer.from(Float32Array.of(0.25, -0.5).buffer).toString("base64") : [0.25, -0.5];
      const usage = { prompt_tokens: 3, total_tokens: 3 };
      sendJson(response, 200, { object: "list", data: [{ object: "embedding", index: 0, embedding }], model, usage });
    },
  };
}

function predictions(): Endpoint {
  return {
    isNative: false,
    fault({ instances, parameters, ...rest }) {
      if (Object.keys(rest).length > 0) return `Unknown name "${Object.keys(rest)[0]}"`;
      const allowed = new Set(["autoTruncate", "outputDimensionality"]);
      if (Object.keys(parameters ?? {}).some((name) => !allowed.has(name))) return "unknown parameter";
      const texts = Array.isArray(instances) ? (instances as { content?: unknown; task_type?: unknown }[]) : [];
      const isGood = texts.every(
        ({ content, task_type }) => typeof content === "string" && typeof task_type === "string",
      );
      return texts.length > 0 && isGood ? undefined : "instances must have a content";
    },
    reply(response, _answer, { instances }) {
      const predicted = (instances as object[]).map(() => ({
        embeddings: { values: [0.25, -0.5], statistics: { token_count: 4, truncated: false } },
      }));
      sendJson(response, 200, { predictions: predicted, metadata: { billableCharacterCount: 6 } });
    },
  };
}

/** Ranks records by their length, and leaves out the score of the first one, as the service does for the highest. */
function ranking(): Endpoint {
  return {
    isNative: false,
    fault({ query, records, model: _model, topN: _most, ignoreRecordDetailsInResponse, ...rest }) {
      if (Object.keys(rest).length > 0) return `Unknown name "${Object.keys(rest)[0]}"`;
      return typeof query === "string" && Array.isArray(records) && ignoreRecordDetailsInResponse === true
        ? undefined
        : "query and records are required";
    },
    reply(response, _answer, { records, topN }) {
      const texts = records as readonly { id: string; content: string }[]; // fault has checked it
      const ranked = texts
        .toSorted((a, b) => b.content.length - a.content.length)
        .slice(0, Number(topN ?? texts.length));
      const scored = ranked.map(({ id }, at) => (at === 0 ? { id } : { id, score: 1 / (at + 1) }));
      sendJson(response, 200, { records: scored });
    },
  };
}

/** Claude models: the request of the Messages API with its model in the path. */
function anthropic(url: string, prefix: string): Endpoint | undefined {
  const form = new RegExp(`^${prefix}(claude-[a-z0-9-]+(?:@\\d{8})?):(rawPredict|streamRawPredict)$`).exec(url);
  if (form === null) return undefined;
  return {
    isNative: false,
    fault(body) {
      if (body["anthropic_version"] !== "vertex-2023-10-16") return "anthropic_version: Field required";
      for (const name of ["model", "output_format"])
        if (body[name] !== undefined) return `${name}: Extra inputs are not permitted`;
      if (JSON.stringify(body).includes('"scope"')) return "cache_control.scope: Extra inputs are not permitted";
      if ((body["stream"] === true) !== (form[2] === "streamRawPredict")) return "stream does not match the method";
      return Array.isArray(body["messages"]) && Number.isInteger(body["max_tokens"])
        ? undefined
        : "messages: Field required";
    },
    reply(response, { body = {}, events = [] }, { stream }) {
      if (stream !== true) return sendJson(response, 200, body);
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of events)
        response.write(`event: ${(event as { type?: string }).type}\ndata: ${JSON.stringify(event)}\n\n`);
      response.end();
    },
  };
}

function findCredentialFault(
  headers: IncomingMessage["headers"],
  { isNative }: Endpoint,
  isCloud: boolean,
  accepted: string | undefined,
): string | undefined {
  const key = headers["x-goog-api-key"];
  const bearer = headers["authorization"];
  if (key !== undefined && bearer !== undefined) return "Multiple authentication credentials received.";
  const apiKey = accepted ?? GEMINI_KEY;
  if (isNative && !isCloud && key === apiKey) return undefined;
  if (!isNative && !isCloud && bearer === `Bearer ${apiKey}`) return undefined;
  return bearer === `Bearer ${accepted ?? GOOGLE_TOKEN}`
    ? undefined
    : "Request had invalid authentication credentials.";
}

function printWhole({ parts = [], finishReason = "STOP", usage = USAGE, blockReason }: GoogleAnswer): object {
  const rest = { usageMetadata: usage, modelVersion: "gemini-of-the-test", responseId: "answer-1" };
  if (blockReason !== undefined) return { promptFeedback: { blockReason }, ...rest };
  return { candidates: [{ content: { parts, role: "model" }, finishReason, index: 0 }], ...rest };
}

function printEvents(answer: GoogleAnswer): string[] {
  const { parts = [], breaks } = answer;
  const start = { ...answer, usage: { promptTokenCount: 11, totalTokenCount: 11 } };
  const events = parts.map((part) => {
    const event = printWhole({ ...start, parts: [part] }) as { candidates?: { finishReason?: string }[] };
    for (const candidate of event.candidates ?? []) delete candidate.finishReason;
    return event as object;
  });
  if (breaks !== undefined) events.push(errorOf(breaks));
  else events.push(printWhole({ ...answer, parts: [{ text: "" }] }));
  return events.map((event) => JSON.stringify(event));
}

function errorOf({ status, name, message }: NonNullable<GoogleAnswer["error"]>): object {
  return { error: { code: status, message, status: name } };
}

function refuse(response: ServerResponse, error: NonNullable<GoogleAnswer["error"]>): void {
  sendJson(response, error.status, errorOf(error));
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json; charset=UTF-8" });
  response.end(JSON.stringify(body));
}

/** Names the events that have a type, as the servers of Anthropic do. */
function sendEvents(response: ServerResponse, events: readonly string[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) {
    const type = /^\{"type":"(\w+)"/.exec(event)?.[1];
    response.write(`${type === undefined ? "" : `event: ${type}\r\n`}data: ${event}\r\n\r\n`);
  }
  response.end();
}

function parse(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
