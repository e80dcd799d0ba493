/** What an open stream of an answer keeps of its request: nothing, unless a report reads it at the end. */
import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { Session } from "node:inspector/promises";
import { text as readText } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const STREAMS = 24;
const PROMPT = "All work and no play makes the gateway a dull one. ".repeat(8_000);
const BODY = Buffer.from(JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: PROMPT }] }));
const MIB = 1024 * 1024;
/** About as much as one read of the gateway takes, so that events are slices of long texts. */
const TEXTS = Array.from({ length: 250 }, () => "No play and all work makes the gateway dull as well. ".repeat(3));

const BACKEND = (name: string, provider: string, port: number): string => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: {provider: {${provider}: {}, host: 127.0.0.1, port: ${port}}}
`;

/** First events of an answer, and the event of a text that follows them. */
const EVENTS = {
  same: {
    first: [{ model: "m", choices: [{ index: 0, delta: { content: "a" } }] }],
    next: (content: string): object => ({ model: "m", choices: [{ index: 0, delta: { content } }] }),
  },
  translated: {
    first: [
      { type: "message_start", message: { id: "1", model: "m", content: [], usage: { input_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ],
    next: (text: string): object => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
  },
} as const;

/** Starts a gateway whose provider sends the first events of an answer and then waits until `finish` is called. */
async function serveOpenStreams(t: TestContext, texts: readonly string[] = []) {
  const finished = Promise.withResolvers<void>();
  const upstream = await startUpstream(async (asked, response) => {
    const { first, next } = EVENTS[asked.url?.includes("messages") === true ? "translated" : "same"];
    // Only the length is needed, so that nothing of the prompt stays here.
    for await (const _ of asked);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write([...first, ...texts.map(next)].map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
    await finished.promise;
    response.end("data: [DONE]\n\n");
  });
  t.after(() => upstream.close());
  const manifests = [
    BACKEND("same", "llma", upstream.port),
    BACKEND("translated", "llme", upstream.port),
    route("same", "same", "/same"),
    route("translated", "translated", "/translated"),
  ];
  const gateway = await startGateway(contextOf(t), documents(GATEWAY, ...manifests));
  return { url: gateway.url(), finish: finished.resolve };
}

/** Resolves with the answer once its first bytes have come. */
function openStream(url: string, agent: Agent): Promise<AsyncIterable<Buffer>> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method: "POST", agent, headers: { "content-type": "application/json" } },
      (response) => {
        assert.equal(response.statusCode, 200);
        response.once("readable", () => resolve(response));
      },
    );
    sent.on("error", reject);
    sent.end(BODY);
  });
}

/** Returns a function that counts the bytes which can be reached, with buffers, after a full collection. */
function measureReachable(t: TestContext): () => Promise<number> {
  const session = new Session();
  session.connect();
  t.after(() => session.disconnect());
  return async () => {
    // Finalizers of the first collection free what the second one finds.
    await session.post("HeapProfiler.collectGarbage");
    await session.post("HeapProfiler.collectGarbage");
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
}

/**
 * Of all three ends of a stream, which are in this process: sockets and parsers take 36 KiB, and with one text of the
 * events in addition to them it would be 96.
 */
const MAX_HELD = 64 * 1024;

/** Ends the texts of a stream; so short that a part of it is no slice, which would keep the text that it is cut from. */
const END = "<<end>>";

/** Resolves when the stream has brought its texts. It stays open, and nothing of it is kept here. */
function readToEnd(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent }, (response) => {
      let tail = "";
      response.setEncoding("latin1").on("data", (text: string) => {
        const seen = tail + text;
        if (seen.includes(END)) resolve();
        tail = seen.slice(-END.length);
      });
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "hi" }] }));
  });
}

test("the request of an open stream is let go of once it was sent", async (t) => {
  const { url, finish } = await serveOpenStreams(t);
  const measure = measureReachable(t);
  const agent = new Agent({ maxSockets: Infinity });
  t.after(() => agent.destroy());
  const open = async (count: number): Promise<AsyncIterable<Buffer>[]> => {
    const streams: AsyncIterable<Buffer>[] = [];
    for (let at = 0; at < count; at++)
      streams.push(await openStream(`${url}/${at % 2 === 0 ? "same" : "translated"}/v1/chat/completions`, agent));
    return streams;
  };
  const warm = await open(4);
  const before = await measure();
  const streams = await open(STREAMS);
  const grown = (await measure()) - before;
  const prompts = (STREAMS * BODY.length) / MIB;
  assert.ok(
    grown < (prompts / 4) * MIB,
    `${(grown / MIB).toFixed(1)} MiB stay of prompts of ${prompts.toFixed(1)} MiB`,
  );
  finish();
  for (const stream of [...warm, ...streams]) assert.match(await readText(stream), /^data: \{/);
});

test("an open stream keeps nothing of the events that have been passed on", async (t) => {
  const { url, finish } = await serveOpenStreams(t, [...TEXTS, END]);
  const measure = measureReachable(t);
  const agent = new Agent({ maxSockets: Infinity });
  t.after(() => agent.destroy());
  const open = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at++) await readToEnd(`${url}/translated/v1/chat/completions`, agent);
  };
  await open(4);
  const before = await measure();
  await open(STREAMS);
  const grown = ((await measure()) - before) / STREAMS;
  const events = TEXTS.join("").length;
  assert.ok(grown < MAX_HELD, `each stream holds ${grown} bytes, and its events had ${events}`);
  finish();
});
