/**
 * Measures the LLM handler: microseconds of processor time of one request, without a socket of the gateway. The first
 * request of each kind goes to the mock; its response is then replayed from memory, event by event.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AiPolicySchema,
  BuiltinPattern,
  GuardAction,
  GuardSchema,
  GuardScope,
  PromptGuardSchema,
  type AiBackend,
  type Guard,
} from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../src/lib/header-list.ts";
import type { Body } from "../../src/proxy/exchange/body.ts";
import { Catalog } from "../../src/proxy/llm/cost/catalog.ts";
import { parseCatalogSource } from "../../src/proxy/llm/cost/catalog-source.ts";
import { priceUsage } from "../../src/proxy/llm/cost/price.ts";
import { createLlmHandler } from "../../src/proxy/llm/handler.ts";
import type { UpstreamRequest } from "../../src/proxy/upstream/upstream.ts";
import { aiBackend, fakeUpstream, streamFrom, testDeps, type ProviderInit } from "../support/gateway/llm-harness.ts";
import { readBodyFile } from "./bodies.ts";
import { exchangeOf, microseconds } from "./in-process.ts";
import { buildTools } from "./load.ts";
import { start } from "./process.ts";
import { printTable } from "./report.ts";

type PromptGuardInit = MessageInitShape<typeof PromptGuardSchema>;

interface Work {
  readonly title: string;
  readonly provider: ProviderInit;
  readonly target?: string;
  readonly body: string;
  readonly guards?: PromptGuardInit;
}

const PORT = 18_110;
const CHAT = "/v1/chat/completions";
const OPENAI: ProviderInit = { key: "llma", identity: "openai" };
const ANTHROPIC: ProviderInit = { key: "llme", identity: "anthropic" };
const GEMINI: ProviderInit = { key: "llmf", identity: "gcp.gemini", model: "gemini-2.5-flash" };
const CONVERSE: ProviderInit = { key: "llmh", identity: "aws.bedrock", model: "amazon.nova-pro-v1:0" };

const { SSN, CREDIT_CARD, PHONE_NUMBER, EMAIL, CA_SIN } = BuiltinPattern;
const BUILTINS = [SSN, CREDIT_CARD, PHONE_NUMBER, EMAIL, CA_SIN];
const guardWith = (action: GuardAction): Guard =>
  create(GuardSchema, {
    action,
    scope: [GuardScope.SYSTEM_PROMPT, GuardScope.MESSAGES],
    response: { message: "withheld", status: 403 },
    kind: { case: "regex", value: { builtins: BUILTINS } },
  });

const WORKS: readonly Work[] = [
  { title: "chat JSON", provider: OPENAI, body: "gpt-4o-mini.json" },
  { title: "chat stream of 103 events", provider: OPENAI, body: "gpt-4o-mini.sse.json" },
  { title: "Completions → Messages, JSON", provider: ANTHROPIC, body: "claude-sonnet-4-5.json" },
  { title: "Completions → Messages, stream", provider: ANTHROPIC, body: "claude-sonnet-4-5.sse.json" },
  { title: "Completions → Gemini, JSON", provider: GEMINI, body: "gpt-4o-mini.json" },
  { title: "Completions → Gemini, stream", provider: GEMINI, body: "gpt-4o-mini.sse.json" },
  { title: "Completions → Converse, JSON", provider: CONVERSE, body: "gpt-4o-mini.json" },
  { title: "Completions → Converse, stream", provider: CONVERSE, body: "gpt-4o-mini.sse.json" },
  { title: "Messages → Completions, JSON", provider: OPENAI, target: "/v1/messages", body: "messages.json" },
  { title: "Messages → Completions, stream", provider: OPENAI, target: "/v1/messages", body: "messages.sse.json" },
  { title: "Responses → Converse, JSON", provider: CONVERSE, target: "/v1/responses", body: "responses.json" },
  { title: "Responses → Converse, stream", provider: CONVERSE, target: "/v1/responses", body: "responses.sse.json" },
  { title: "Messages → Messages, 200 KiB, 40 tools", provider: ANTHROPIC, target: "/v1/messages", body: "tools.json" },
  { title: "chat JSON, prompt of 64 KiB", provider: OPENAI, body: "prompt.json" },
  {
    title: "the same with five built-in guards",
    provider: OPENAI,
    body: "prompt.json",
    guards: { request: [guardWith(GuardAction.MASK)] },
  },
  {
    title: "chat stream with a guard of five built-ins",
    provider: OPENAI,
    body: "gpt-4o-mini.sse.json",
    guards: { streaming: true, response: [guardWith(GuardAction.REJECT)] },
  },
];
const MODELS = 5_000;

export async function llmTable(): Promise<string> {
  const { mock } = await buildTools();
  const address = `127.0.0.1:${PORT}`;
  const running = await start({ file: mock, args: ["-addr", address] }, new URL(`http://${address}/`), 5_000);
  try {
    const rows: string[][] = [];
    for (const work of WORKS) rows.push([work.title, (await costOf(work)).toFixed(1)]);
    rows.push([`price of a request, catalog of ${MODELS} models`, (await costOfPrice()).toFixed(2)]);
    return printTable(["LLM request in process", "µs"], rows);
  } finally {
    await running.stop();
  }
}

async function costOf(work: Work): Promise<number> {
  const backend = backendOf(work);
  const body = readBodyFile(work.body);
  let answer: RecordedAnswer | undefined;
  const upstream = fakeUpstream(() => {
    if (answer === undefined) throw new Error("an answer is replayed before it was recorded");
    return { status: 200, headers: new HeaderList(answer.headers.slice()), body: streamFrom(answer.pieces) };
  });
  // Do not keep the requests: garbage collection would measure them instead of the handler.
  const send: typeof upstream.send = async (target, request) => {
    answer ??= await record(request);
    const response = await upstream.send(target, request);
    upstream.sent.length = 0;
    return response;
  };
  const handler = createLlmHandler(backend, testDeps({ ...upstream, send }));
  const headers = ["host", "api.example.com", "user-agent", "bench", "content-type", "application/json"];
  const request = async (): Promise<void> => {
    const exchange = exchangeOf(headers, "POST", { target: work.target ?? CHAT, body });
    const reply = await handler(exchange);
    if (reply.status !== 200) throw new Error(`${work.title}: ${reply.status}`);
    await drain(reply.body);
    exchange.finish(ENDED);
  };
  await request();
  return microseconds(request);
}

const ENDED = {
  status: 200,
  clientGone: false,
  error: undefined,
  durationMs: 1.5,
  requestBytes: 0,
  responseBytes: 0,
} as const;

function backendOf({ provider, guards }: Work): AiBackend {
  const backend = aiBackend({ ...provider, host: "127.0.0.1", port: PORT, credential: "sk-upstream" });
  const settings = backend.groups[0]?.providers[0]?.settings;
  if (settings !== undefined && guards !== undefined)
    settings.ai = create(AiPolicySchema, { promptGuard: create(PromptGuardSchema, guards) });
  return backend;
}

interface RecordedAnswer {
  readonly headers: readonly string[];
  /** One piece for each event of a stream. */
  readonly pieces: readonly Buffer[];
}

async function record({ path, headers, body }: UpstreamRequest): Promise<RecordedAnswer> {
  const sent: [string, string][] = [];
  for (let at = 0; at < headers.raw.length; at += 2) {
    const name = headers.raw[at] as string; // names and values alternate
    if (!/^(?:host|content-length)$/i.test(name)) sent.push([name, headers.raw[at + 1] as string]);
  }
  const bytes = Buffer.isBuffer(body) ? new Uint8Array(body) : null;
  const response = await fetch(`http://127.0.0.1:${PORT}${path}`, { method: "POST", headers: sent, body: bytes });
  const type = response.headers.get("content-type") ?? "";
  const answer = Buffer.from(await response.arrayBuffer());
  if (!response.ok) throw new Error(`${path}: ${response.status} ${answer.toString("utf8", 0, 200)}`);
  return { headers: ["content-type", type], pieces: splitEvents(answer, type) };
}

function splitEvents(answer: Buffer, type: string): Buffer[] {
  if (type.startsWith("text/event-stream"))
    return (answer.toString().match(/[^]+?(?:\r?\n){2}/g) ?? []).map((text) => Buffer.from(text));
  if (!type.includes("eventstream")) return [answer];
  const frames: Buffer[] = [];
  // Each frame begins with its length.
  for (let at = 0; at < answer.length; at += frames.at(-1)?.length ?? 0)
    frames.push(answer.subarray(at, at + answer.readUInt32BE(at)));
  return frames;
}

function drain(body: Body): Promise<void> | undefined {
  if (body === null || Buffer.isBuffer(body)) return undefined;
  return new Promise((resolve, reject) => {
    body.read({ data: () => true, end: () => resolve(), error: reject });
  });
}

function costOfPrice(): Promise<number> {
  const rates = { input: "2", output: "8", cacheRead: "0.5" };
  const models = Object.fromEntries(Array.from({ length: MODELS }, (_, at) => [`model-${at}`, { rates }]));
  const catalog = new Catalog([parseCatalogSource(JSON.stringify({ providers: { openai: { models } } }))]);
  const usage = { inputTokens: 1_200, outputTokens: 345, cachedInputTokens: 1_000 };
  const responseModel = `model-${MODELS - 1}-20250101`;
  const call = { provider: "openai", requestModel: "model-1", responseModel, usage };
  return microseconds(() => void priceUsage(catalog, call));
}
