/** A thousand streams that stay open: an event more leaves nothing behind. */
import assert from "node:assert/strict";
import { Agent, request, type ServerResponse } from "node:http";
import { Session } from "node:inspector/promises";
import { test } from "node:test";
import { documents, GATEWAY, route, startGateway } from "../support/gateway/gateway.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { startUpstream } from "../support/servers/upstream.ts";

const STREAMS = 1_000;
const ROUNDS = 60;
/** By then buffers have their size and all code has run. */
const WARM = 10;
const AT_ONCE = 50;
/** Events hold more text than a guard waits for, so that each is passed on at once, the head with the first one. */
const FILL = "All work and no play makes the gateway a dull one. ".repeat(26);
const MAX_MIB = 8;

/** Provider, more policies and event of a round. Streams are of the kinds in turn. */
const KINDS = [
  { name: "same", provider: "llma", more: "", event: chunkOf },
  { name: "translated", provider: "llme", more: "", event: deltaOf },
  {
    name: "guarded",
    provider: "llma",
    more: ", ai: {promptGuard: {streaming: Enabled, response: [{regex: {builtins: [Ssn, CreditCard], action: Reject}}]}}",
    event: chunkOf,
  },
] as const;

function chunkOf(text: string): string {
  return `data: ${JSON.stringify({ model: "m", choices: [{ index: 0, delta: { content: text } }] })}\n\n`;
}

function deltaOf(text: string): string {
  return `data: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })}\n\n`;
}

const MESSAGE_START = [
  { type: "message_start", message: { id: "1", model: "m", content: [], usage: { input_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
].map((event) => `data: ${JSON.stringify(event)}\n\n`);

function backend({ name, provider, more }: (typeof KINDS)[number], port: number): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: {provider: {${provider}: {}, host: 127.0.0.1, port: ${port}}}
  policies: {auth: {key: k}${more}}
`;
}

const markOf = (round: number): string => `<<${round}>>`;

/** A client that reads its stream and keeps nothing but the last few characters. */
class Reader {
  readonly opened: Promise<void>;
  #tail = "";
  #mark: string | undefined;
  #found = Promise.withResolvers<void>();

  constructor(url: string, agent: Agent) {
    const opened = Promise.withResolvers<void>();
    this.opened = opened.promise;
    const sent = request(url, { method: "POST", agent }, (response) => {
      const status = response.statusCode;
      if (status === 200) opened.resolve();
      else opened.reject(new Error(`${url} answers ${status}`));
      response.setEncoding("latin1").on("data", (text: string) => this.#read(text));
      response.on("error", (error) => this.#found.reject(error));
    });
    sent.on("error", opened.reject);
    sent.end(JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "hi" }] }));
  }

  /** Resolves when the mark has come. Call it before it is sent. */
  expect(mark: string): Promise<void> {
    this.#mark = mark;
    this.#found = Promise.withResolvers<void>();
    // The end of the test aborts streams, which then fail unseen.
    this.#found.promise.catch(() => undefined);
    return this.#found.promise;
  }

  #read(text: string): void {
    const seen = this.#tail + text;
    if (this.#mark !== undefined && seen.includes(this.#mark)) this.#found.resolve();
    this.#tail = seen.slice(-16);
  }
}

/** MiB that are still reachable, with buffers, after a full collection. */
async function reachableMib(session: Session): Promise<number> {
  // Finalizers of the first collection free what the second one finds.
  await session.post("HeapProfiler.collectGarbage");
  await session.post("HeapProfiler.collectGarbage");
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1024 / 1024;
}

test(`${STREAMS} open streams take no more memory with each event`, async (t) => {
  const responses = new Map<ServerResponse, (typeof KINDS)[number]>();
  const upstream = await startUpstream((asked, response) => {
    asked.resume();
    const kind = KINDS.find(({ name }) => asked.url?.includes(name)) ?? KINDS[0];
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of kind.name === "translated" ? MESSAGE_START : [chunkOf(FILL)]) response.write(event);
    responses.set(response, kind);
  });
  t.after(() => upstream.close());
  const manifests = KINDS.flatMap((kind) => [
    backend(kind, upstream.port),
    route(kind.name, kind.name, `/${kind.name}`),
  ]);
  const gateway = await startGateway(contextOf(t), documents(GATEWAY, ...manifests));
  const agent = new Agent({ maxSockets: Infinity });
  t.after(() => agent.destroy());
  const readers: Reader[] = [];
  for (let at = 0; at < STREAMS; at += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, (_, each) => {
      const name = KINDS[(at + each) % KINDS.length]?.name ?? "same";
      return new Reader(`${gateway.url()}/${name}/v1/chat/completions?${name}`, agent);
    });
    readers.push(...some);
    await Promise.all(some.map(({ opened }) => opened));
  }
  assert.equal(responses.size, STREAMS);
  const session = new Session();
  session.connect();
  t.after(() => session.disconnect());
  const rounds = async (from: number, to: number): Promise<void> => {
    for (let round = from; round < to; round++) {
      const seen = readers.map((reader) => reader.expect(markOf(round)));
      for (const [response, { event }] of responses) response.write(event(markOf(round) + FILL));
      await Promise.all(seen);
    }
  };
  await rounds(0, WARM);
  const before = await reachableMib(session);
  await rounds(WARM, ROUNDS);
  const grown = (await reachableMib(session)) - before;
  const sent = ((ROUNDS - WARM) * STREAMS * FILL.length) / 1024 / 1024;
  t.diagnostic(`${sent.toFixed(0)} MiB of events: ${before.toFixed(1)} MiB and ${grown.toFixed(2)} more`);
  assert.ok(grown < MAX_MIB, `${grown.toFixed(1)} MiB more after ${ROUNDS - WARM} events of each stream`);
});
