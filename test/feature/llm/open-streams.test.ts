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

const BACKEND = (name: string, provider: string, port: number): string => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: {provider: {${provider}: {}, host: 127.0.0.1, port: ${port}}}
`;

const FIRST: Readonly<Record<string, object>> = {
  same: { model: "m", choices: [{ index: 0, delta: { content: "a" } }] },
  translated: { type: "message_start", message: { id: "1", model: "m", content: [], usage: { input_tokens: 1 } } },
};

/** Starts a gateway whose provider sends the first event of an answer and then waits until `finish` is called. */
async function serveOpenStreams(t: TestContext) {
  const finished = Promise.withResolvers<void>();
  const upstream = await startUpstream(async (asked, response) => {
    const name = asked.url?.includes("messages") === true ? "translated" : "same";
    // Only the length is needed, so that nothing of the prompt stays here.
    for await (const _ of asked);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify(FIRST[name])}\n\n`);
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

test("the request of an open stream is let go of once it was sent", async (t) => {
  const { url, finish } = await serveOpenStreams(t);
  const session = new Session();
  session.connect();
  t.after(() => session.disconnect());
  const measure = async (): Promise<number> => {
    // Finalizers of the first collection free what the second one finds.
    await session.post("HeapProfiler.collectGarbage");
    await session.post("HeapProfiler.collectGarbage");
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
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
