/**
 * Providers that break their answers, in front of clients of every chat format: what is broken before the first byte is 502
 * and asked again where a retry is configured, what is broken later is an error event and no clean end.
 */
import assert from "node:assert/strict";
import { request as sendRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { documents, GATEWAY, gatewayPolicy, route, startGateway } from "../../support/gateway/gateway.ts";
import { prove } from "../../support/proofs/prove.ts";
import { encodeEvent } from "../../support/servers/llm/event-stream-frames.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

interface Client {
  readonly path: string;
  readonly body: object;
  /** Matches the end of a complete stream. */
  readonly end: RegExp;
  /** Matches an error event. */
  readonly error: RegExp;
}

const ASKED = [{ role: "user", content: "hi" }];
const CLIENTS: Readonly<Record<string, Client>> = {
  Completions: {
    path: "/v1/chat/completions",
    body: { messages: ASKED },
    end: /\[DONE\]/,
    error: /^data: \{"error":\{"message":/m,
  },
  Messages: {
    path: "/v1/messages",
    body: { messages: ASKED, max_tokens: 9 },
    end: /message_stop/,
    error: /^event: error\ndata: \{"type":"error","error":\{"type":"api_error"/m,
  },
  Responses: {
    path: "/v1/responses",
    body: { input: "hi" },
    end: /response\.completed/,
    error: /^event: (?:error|response\.failed)\n/m,
  },
  Gemini: {
    path: "/v1beta/models/m:streamGenerateContent?alt=sse",
    body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    end: /"finishReason"/,
    error: /^data: \{"error":\{"code":\d+,/m,
  },
};

const sse = (event: object, type?: string): Buffer =>
  Buffer.from(`${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`);

interface Provider {
  /** Members of the provider as YAML flow. */
  readonly key: string;
  readonly type: string;
  /** The beginning of an answer, which says "Half". */
  readonly begin: readonly Buffer[];
  /** One event of the size. */
  long(bytes: number): Buffer;
}

const chunk = (content: string): object => ({
  id: "c",
  model: "m",
  choices: [{ index: 0, delta: { role: "assistant", content } }],
});
const delta = (text: string): object => ({
  type: "content_block_delta",
  index: 0,
  delta: { type: "text_delta", text },
});
const candidate = (text: string): object => ({ candidates: [{ content: { role: "model", parts: [{ text }] } }] });
const block = (text: string): object => ({ contentBlockIndex: 0, delta: { text } });
const SSE = "text/event-stream";

const PROVIDERS: Readonly<Record<string, Provider>> = {
  completions: {
    key: "custom: {formats: [{type: Completions}]}",
    type: SSE,
    begin: [sse(chunk("Half"))],
    long: (bytes) => sse(chunk("x".repeat(bytes))),
  },
  messages: {
    key: "llme: {}",
    type: SSE,
    begin: [
      sse(
        {
          type: "message_start",
          message: {
            id: "m",
            model: "m",
            role: "assistant",
            content: [],
            usage: { input_tokens: 1, output_tokens: 1 },
          },
        },
        "message_start",
      ),
      sse({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }, "content_block_start"),
      sse(delta("Half"), "content_block_delta"),
    ],
    long: (bytes) => sse(delta("x".repeat(bytes)), "content_block_delta"),
  },
  gemini: {
    key: "llmf: {}",
    type: SSE,
    begin: [sse(candidate("Half"))],
    long: (bytes) => sse(candidate("x".repeat(bytes))),
  },
  converse: {
    key: "llmh: {region: eu-west-1}",
    type: "application/vnd.amazon.eventstream",
    begin: [encodeEvent("messageStart", { role: "assistant" }), encodeEvent("contentBlockDelta", block("Half"))],
    long: (bytes) => encodeEvent("contentBlockDelta", block("x".repeat(bytes))),
  },
};

/** Where client and provider speak one format, bytes pass as they are; Gemini takes no other client's list of turns. */
const CELLS: readonly (readonly [client: string, provider: string])[] = [
  ["Completions", "messages"],
  ["Completions", "gemini"],
  ["Completions", "converse"],
  ["Messages", "completions"],
  ["Messages", "converse"],
  ["Responses", "completions"],
  ["Responses", "messages"],
  ["Responses", "converse"],
  ["Gemini", "completions"],
  ["Gemini", "messages"],
  ["Gemini", "converse"],
];

const TEN_MB = 10 * 1024 * 1024;

/** The bytes that a provider sends, and whether the connection dies behind them. */
const FAULTS: Readonly<Record<string, (provider: Provider) => { readonly bytes: Buffer; readonly dies?: true }>> = {
  "an empty stream": () => ({ bytes: Buffer.alloc(0) }),
  "a connection that dies": () => ({ bytes: Buffer.alloc(0), dies: true }),
  garbage: ({ type }) => ({ bytes: type === SSE ? Buffer.from("data: {nonsense\n\n") : Buffer.from("{}".repeat(40)) }),
  "an event of 10 MB": (provider) => ({ bytes: provider.long(TEN_MB) }),
  "a bad checksum": ({ type, begin }) => {
    const [first = Buffer.alloc(0)] = begin;
    const damaged = Buffer.from(first);
    damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1;
    return { bytes: type === SSE ? Buffer.from("data: [1]\n\n") : damaged };
  },
};

interface Seen {
  readonly status: number | undefined;
  readonly text: string;
  /** Whether the body came to its end. */
  readonly isComplete: boolean;
}

/** @param begun called when the beginning of the answer has come */
async function ask(url: string, body: object, fault: string, begun: () => void): Promise<Seen> {
  const headers = { "content-type": "application/json", "x-fault": fault };
  const outgoing = sendRequest(url, { method: "POST", headers, agent: false });
  outgoing.on("error", () => undefined);
  outgoing.end(JSON.stringify({ model: "anthropic.claude-m", stream: true, ...body }));
  const answered = await once(outgoing, "response").catch(() => undefined);
  if (answered === undefined) return { status: undefined, text: "", isComplete: false };
  const [response] = answered as [IncomingMessage];
  let text = "";
  let hasBegun = false;
  response.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
    if (text.includes("Half") && !hasBegun) {
      hasBegun = true;
      begun();
    }
  });
  response.on("error", () => undefined);
  await new Promise<void>((resolve) => response.once("close", resolve));
  return { status: response.statusCode, text, isComplete: response.complete };
}

prove(
  [],
  "an answer that a provider breaks is an error of the client's format, and is asked again while nothing has gone out",
  async (context) => {
    let hits = 0;
    let begun = (): void => undefined;
    const upstream = await startUpstream((request, response) => {
      request.resume();
      request.on("end", () => {
        hits++;
        const [moment = "", fault = "", name = ""] = String(request.headers["x-fault"]).split("/");
        const provider = PROVIDERS[name] ?? assert.fail(name);
        const { bytes, dies } = FAULTS[fault]?.(provider) ?? assert.fail(fault);
        response.writeHead(200, { "content-type": provider.type });
        response.flushHeaders();
        const finish = (): void =>
          void response.write(bytes, () => (dies === true ? response.destroy() : response.end()));
        if (moment !== "later") return finish();
        begun = finish;
        for (const piece of provider.begin) response.write(piece);
      });
    });
    context.after(() => upstream.close());
    const backends = Object.entries(PROVIDERS).map(([name, { key }]) =>
      documents(
        `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: {provider: {${key}, host: 127.0.0.1, port: ${upstream.port}}}
  policies: {auth: {key: k}}
`,
        route(name, name, `/${name}`),
      ),
    );
    const gateway = await startGateway(
      context,
      documents(GATEWAY, ...backends, gatewayPolicy("again", "  traffic: {retry: {attempts: 1, codes: [502, 503]}}")),
    );
    const failures: string[] = [];
    for (const [name, provider] of CELLS)
      for (const fault of Object.keys(FAULTS))
        for (const moment of ["at first", "later"]) {
          const client = CLIENTS[name] ?? assert.fail(name);
          const before = hits;
          const seen = await ask(
            `${gateway.url()}/${provider}${client.path}`,
            client.body,
            `${moment}/${fault}/${provider}`,
            () => begun(),
          );
          const tried = hits - before;
          const isRight =
            moment === "at first"
              ? (seen.status === 502 || fault.includes("dies")) && tried === 2 && /"error":\{/.test(seen.text)
              : seen.status === 200 &&
                tried === 1 &&
                seen.text.includes("Half") &&
                !client.end.test(seen.text) &&
                client.error.test(seen.text) &&
                !seen.isComplete;
          if (!isRight)
            failures.push(
              `${name} ${provider}: ${fault} ${moment}: ${JSON.stringify({ ...seen, text: seen.text.slice(-300), tried })}`,
            );
        }
    assert.deepEqual(failures, []);
  },
);
