/**
 * A strict Bedrock on a real socket: the Converse operations, embeddings, token count and rerank of Runtime. It
 * verifies signature or API key, path, headers and body, and answers what a test has set, as JSON or as event stream.
 */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../../proofs/prove.ts";
import { findSignatureFault, type ExpectedKeys } from "./aws-signature.ts";
import { findConverseFault } from "./bedrock-checks.ts";
import { streamOf, USAGE, type BedrockAnswer } from "./bedrock-stream.ts";
import { findInvokeFault, printEmbedding } from "./bedrock-embeddings.ts";

export const AWS_KEYS: ExpectedKeys = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  region: "eu-west-1",
  service: "bedrock",
};
export const BEDROCK_API_KEY = "bedrock-api-key-of-the-test";

interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

export interface BedrockServer {
  readonly port: number;
  /** Requests that were in order, oldest first. */
  readonly seen: readonly SeenRequest[];
  /** Sets the answer to the next requests. */
  answer: BedrockAnswer;
}

export interface BedrockOptions {
  /** Keys of the accepted signatures. */
  readonly keys?: ExpectedKeys;
  /** Certificate of the server; without it the server has no TLS. */
  readonly pair?: { readonly certificate: string; readonly key: string };
}

export async function startBedrock(
  context: Pick<ProofContext, "after">,
  { keys = AWS_KEYS, pair }: BedrockOptions = {},
): Promise<BedrockServer> {
  const seen: SeenRequest[] = [];
  const bedrock = { port: 0, seen, answer: {} as BedrockAnswer };
  const serve: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const { method = "", url = "", headers } = request;
      const fault = findCredentialFault(request, body, keys);
      if (fault !== undefined) return refuse(response, 403, "AccessDeniedException", fault);
      const operation = OPERATIONS.find(({ path }) => path.test(url.split("?", 1)[0] ?? ""));
      if (operation === undefined || method !== "POST")
        return refuse(response, 404, "UnknownOperationException", `${method} ${url} is not an operation`);
      const parsed = parse(body);
      const wrong = parsed === undefined ? "the body is not a JSON object" : operation.fault(parsed, url);
      if (parsed === undefined || wrong !== undefined)
        return refuse(response, 400, "ValidationException", wrong ?? "unreadable");
      seen.push({ method, url, headers, body: parsed });
      const { error } = bedrock.answer;
      if (error !== undefined) return refuse(response, error.status, error.type, error.message);
      operation.reply(response, bedrock.answer, parsed, url);
    });
  };
  const server =
    pair === undefined ? createServer(serve) : createSecureServer({ cert: pair.certificate, key: pair.key }, serve);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  // A server that listens on a port has an address of this form.
  bedrock.port = (server.address() as AddressInfo).port;
  return bedrock;
}

function findCredentialFault(request: IncomingMessage, body: Buffer, keys: ExpectedKeys): string | undefined {
  const { method = "", url = "", rawHeaders, headers } = request;
  if (headers["content-type"] !== "application/json") return `content type ${headers["content-type"]}`;
  for (const name of ["x-bedrock-metadata", "anthropic-beta", "anthropic-version", "x-api-key"])
    if (headers[name] !== undefined) return `${name} is not a header of this service`;
  if (headers.authorization === `Bearer ${BEDROCK_API_KEY}`) return undefined;
  return findSignatureFault({ method, url, rawHeaders, body }, keys);
}

function parse(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

interface Operation {
  readonly path: RegExp;
  /** @returns what is wrong with a request */
  fault(body: Record<string, unknown>, url: string): string | undefined;
  reply(response: ServerResponse, answer: BedrockAnswer, body: Record<string, unknown>, url: string): void;
}

/** One segment, percent-encoded: a name of a model or an ARN. */
const MODEL = "/model/(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+";

const OPERATIONS: readonly Operation[] = [
  { path: new RegExp(`^${MODEL}/converse$`), fault: findConverseFault, reply: replyMessage },
  { path: new RegExp(`^${MODEL}/converse-stream$`), fault: findConverseFault, reply: replyStream },
  {
    path: new RegExp(`^${MODEL}/invoke$`),
    fault: (body, url) => findInvokeFault(body, decodeURIComponent(url)),
    reply(response, _answer, body, url) {
      const { headers, output } = printEmbedding(body, decodeURIComponent(url));
      send(response, 200, output, headers);
    },
  },
  {
    path: new RegExp(`^${MODEL}/count-tokens$`),
    fault: findCountFault,
    reply: (response) => send(response, 200, { inputTokens: 42 }),
  },
  { path: /^\/rerank$/, fault: findRerankFault, reply: replyRanking },
];

function replyMessage(response: ServerResponse, { content, stopReason, usage }: BedrockAnswer): void {
  send(response, 200, {
    metrics: { latencyMs: 12 },
    output: { message: { role: "assistant", content: content ?? [{ text: "Hello." }] } },
    stopReason: stopReason ?? "end_turn",
    usage: usage ?? USAGE,
  });
}

function replyStream(response: ServerResponse, answer: BedrockAnswer): void {
  response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream", "x-amzn-requestid": "r-1" });
  for (const frame of streamOf(answer)) response.write(frame);
  response.end();
}

function findCountFault({ input }: Record<string, unknown>): string | undefined {
  const { invokeModel } = (input ?? {}) as { invokeModel?: { body?: unknown } };
  const body = parse(Buffer.from(String(invokeModel?.body), "base64"));
  if (body === undefined) return "input.invokeModel.body must be the base64 of a JSON object";
  if (body["anthropic_version"] !== "bedrock-2023-05-31") return "anthropic_version is missing";
  if (!Array.isArray(body["messages"])) return "messages is missing";
  return body["model"] === undefined && Number.isInteger(body["max_tokens"]) ? undefined : "the body is not native";
}

interface Ranking {
  readonly queries?: readonly { readonly type: string; readonly textQuery: { readonly text: string } }[];
  readonly sources?: readonly unknown[];
  readonly rerankingConfiguration?: {
    readonly bedrockRerankingConfiguration: {
      readonly numberOfResults: number;
      readonly modelConfiguration: { readonly modelArn: string };
    };
  };
}

function findRerankFault(body: Record<string, unknown>): string | undefined {
  const { queries = [], sources = [], rerankingConfiguration } = body as Ranking;
  const { numberOfResults = 0, modelConfiguration } = rerankingConfiguration?.bedrockRerankingConfiguration ?? {};
  if (queries.length !== 1 || queries[0]?.type !== "TEXT") return "exactly one query of text is required";
  if (sources.length === 0 || numberOfResults < 1 || numberOfResults > sources.length) return "numberOfResults";
  const arn = /^arn:aws[a-z-]*:bedrock:[a-z0-9-]+::foundation-model\/.+$/;
  return arn.test(modelConfiguration?.modelArn ?? "") ? undefined : "modelArn";
}

/** Ranks the sources from the last to the first. */
function replyRanking(response: ServerResponse, _answer: BedrockAnswer, body: Record<string, unknown>): void {
  const { sources = [], rerankingConfiguration } = body as Ranking;
  const count = rerankingConfiguration?.bedrockRerankingConfiguration.numberOfResults ?? 0;
  const results = sources.map((_, at) => ({ index: sources.length - 1 - at, relevanceScore: 1 / (at + 1) }));
  send(response, 200, { results: results.slice(0, count) });
}

function refuse(response: ServerResponse, status: number, type: string, message: string): void {
  send(response, status, { message }, { "x-amzn-errortype": `${type}:http://internal.amazon.com/coral/` });
}

function send(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", "x-amzn-requestid": "r-1", ...headers });
  response.end(JSON.stringify(body));
}
