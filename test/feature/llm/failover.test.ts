/** Failover from one LLM provider to another that speaks a foreign format, and clients that leave a stream. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { LLM_CLIENTS, type LlmClient, type Reply } from "../../support/clients/llm-clients.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { ANTHROPIC_KEY, startAnthropic } from "../../support/servers/llm/anthropic.ts";
import { OPENAI_KEY, startOpenAi } from "../../support/servers/llm/openai.ts";

/** @param ports of a provider of each format; the second one serves when the first one is evicted */
function startGroups(
  context: ProofContext,
  { openai, anthropic }: { readonly openai: number; readonly anthropic: number },
  nowMs: () => number = Date.now,
): Promise<TestGateway> {
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai:
    groups:
      - providers: [{name: main, llma: {}, host: 127.0.0.1, port: ${openai}, policies: {auth: {key: ${OPENAI_KEY}}}}]
      - providers:
          - {name: spare, llme: {}, host: 127.0.0.1, port: ${anthropic}, policies: {auth: {key: ${ANTHROPIC_KEY}}}}
  policies: {health: {unhealthyCondition: 'response.code == 429 || response.code == 503'}}
`;
  const retry = routePolicy("again", "ai", "  traffic: {retry: {attempts: 1, codes: [429, 502, 503]}}");
  return startGateway(context, documents(GATEWAY, backend, route("ai", "ai"), retry), { nowMs });
}

const PROMPT = "lorem ipsum dolor ".repeat(17_000);

const LIMITED = {
  error: { status: 429, type: "rate_limit_error", message: "slow down", headers: { "retry-after": "100" } },
};

for (const client of LLM_CLIENTS)
  for (const isStreamed of [false, true])
    prove(
      [],
      `a long prompt moves to a provider of another format, and the first one rests as long as it asked (${client.name}, ${isStreamed ? "streamed" : "whole"})`,
      async (context) => {
        const clock = { now: Date.now() };
        const openai = await startOpenAi(context);
        const anthropic = await startAnthropic(context);
        const gateway = await startGroups(context, { openai: openai.port, anthropic: anthropic.port }, () => clock.now);
        openai.answer = LIMITED;
        anthropic.answer = { text: "From the spare." };
        const asked = async (text: string): Promise<readonly [string, number, number]> => {
          const said = await ask(client, { gateway, isStreamed }, text);
          return [said.text, openai.seen.length, anthropic.seen.length];
        };
        assert.ok(PROMPT.length > 300_000);
        assert.deepEqual(await asked(PROMPT), ["From the spare.", 1, 1]);
        assert.ok(JSON.stringify(anthropic.seen[0]?.body).includes(PROMPT.trim()));
        openai.answer = { text: "From the first." };
        clock.now += 99_999;
        assert.deepEqual(await asked("hi"), ["From the spare.", 1, 2]);
        clock.now += 1;
        assert.deepEqual(await asked("hi"), ["From the first.", 2, 2]);
        // When all are out, the first group serves nevertheless.
        openai.answer = anthropic.answer = LIMITED;
        await assert.rejects(asked("hi"), (error) => client.errorOf(error).status === 429);
        openai.answer = { text: "Still here." };
        assert.deepEqual(await asked("hi"), ["Still here.", 4, 3]);
      },
    );

function ask(
  client: LlmClient,
  { gateway, isStreamed }: { readonly gateway: TestGateway; readonly isStreamed: boolean },
  text: string,
): Promise<Reply> {
  return client.open(gateway.url(), "claude-gpt", isStreamed).ask({ text });
}

async function startScripted(context: ProofContext, listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port; // it listens on a port
}

const CHUNK = `data: ${JSON.stringify({ id: "c-1", model: "m", choices: [{ index: 0, delta: { role: "assistant", content: "Half" } }] })}\n\n`;

const BODIES = [
  { path: "/v1/chat/completions", body: { messages: [{ role: "user", content: "hi" }] } },
  { path: "/v1/messages", body: { max_tokens: 50, messages: [{ role: "user", content: "hi" }] } },
] as const;

/** Sends a streamed request and returns the answer once it has begun. */
async function open(gateway: TestGateway, { path, body }: (typeof BODIES)[number]): Promise<IncomingMessage> {
  const outgoing = request(`${gateway.url()}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    agent: false,
  });
  outgoing.on("error", () => undefined);
  outgoing.end(JSON.stringify({ model: "m", stream: true, ...body }));
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  response.on("error", () => undefined);
  return response;
}

for (const asked of BODIES) {
  prove([], `nothing is asked again once the first byte of an answer has gone out (${asked.path})`, async (context) => {
    const anthropic = await startAnthropic(context);
    const hits = { count: 0 };
    const openai = await startScripted(context, (_request, response) => {
      hits.count++;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(CHUNK, () => response.destroy());
    });
    const gateway = await startGroups(context, { openai, anthropic: anthropic.port });
    const response = await open(gateway, asked);
    assert.equal(response.statusCode, 200);
    let text = "";
    response.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await new Promise<void>((resolve) => response.once("close", resolve));
    assert.match(text, /Half/);
    assert.doesNotMatch(text, /\[DONE\]|message_stop/, "no clean end");
    assert.deepEqual([hits.count, anthropic.seen.length], [1, 0]);
  });

  prove([], `a client that leaves a stream stops the provider (${asked.path})`, async (context) => {
    const { promise: left, resolve } = Promise.withResolvers<undefined>();
    const openai = await startScripted(context, (_request, response) => {
      response.on("close", () => resolve(undefined));
      response.writeHead(200, { "content-type": "text/event-stream" }).write(CHUNK);
    });
    const gateway = await startGroups(context, { openai, anthropic: openai });
    const response = await open(gateway, asked);
    await once(response, "data");
    response.destroy();
    await left;
  });
}
