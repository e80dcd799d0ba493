/** Lines about requests of LLMs: their settings and usage, and what was said where an attribute asks for it. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { documents, GATEWAY, gatewayPolicy, route, startGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { keepLines, type KeptLines } from "../../support/gateway/log-lines.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const USAGE = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 };
const TOOL = { id: "call-1", type: "function", function: { name: "weather", arguments: '{"city":"Ulm"}' } };
const WHOLE = {
  object: "chat.completion",
  model: "m-1",
  choices: [
    { index: 0, message: { role: "assistant", content: "Hello there", tool_calls: [TOOL] }, finish_reason: "stop" },
  ],
  usage: USAGE,
};
const called = (part: object): object => ({ tool_calls: [{ index: 0, ...part }] });
const EVENTS = [
  { model: "m-1", choices: [{ index: 0, delta: { role: "assistant", content: "Hello" } }] },
  { choices: [{ index: 0, delta: { content: " thére" } }] },
  { choices: [{ index: 0, delta: called({ id: "call-1", function: { name: "weather", arguments: '{"city":' } }) }] },
  { choices: [{ index: 0, delta: called({ function: { arguments: '"Ulm"}' } }) }] },
  { choices: [], usage: USAGE },
];
const ADD = ["prompt", "completion", "toolCalls"].map((name) => `{name: ${name}, expression: llm.${name}}`).join(", ");

interface Chat extends KeptLines {
  ask(chat: object): Promise<string>;
}

async function serve(t: TestContext, accessLog: string): Promise<Chat> {
  const context = contextOf(t);
  const provider = await startUpstream((request, response) => {
    let asked = "";
    request.on("data", (chunk: Buffer) => (asked += chunk.toString()));
    request.on("end", () => {
      if (!asked.includes('"stream":true')) {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(WHOLE));
        return;
      }
      response.setHeader("content-type", "text/event-stream");
      for (const event of EVENTS) response.write(`data: ${JSON.stringify(event)}\n\n`);
      response.end("data: [DONE]\n\n");
    });
  });
  t.after(() => provider.close());
  const lines = keepLines(context);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec: {ai: {provider: {llma: {}, host: 127.0.0.1, port: ${provider.port}}}}
`;
  const objects = documents(
    GATEWAY,
    backend,
    route("ai", "ai"),
    gatewayPolicy("log", `  frontend: {accessLog: ${accessLog}}`),
  );
  const gateway = await startGateway(context, objects, { telemetry: { accessLog: lines.accessLog } });
  const headers = { "content-type": "application/json" };
  return {
    ...lines,
    async ask(chat) {
      const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], ...chat });
      const url = `${gateway.url()}/v1/chat/completions`;
      return (await call(url, { method: "POST", headers, body })).body;
    },
  };
}

test("a line about an LLM has the settings of the request, its models and its tokens", async (t) => {
  const { ask, nextFields } = await serve(t, "{attributes: {remove: [duration]}}");
  await ask({ temperature: 1, top_p: 0.5, seed: 7, max_tokens: 64, frequency_penalty: 0.25, presence_penalty: -1 });
  const fields = await nextFields();
  const ai = Object.entries(fields).filter(([name]) => name.startsWith("gen_ai.") || name.startsWith("gwp.ai."));
  assert.deepEqual(Object.fromEntries(ai), {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": fields["gen_ai.provider.name"],
    "gen_ai.request.model": "m",
    "gen_ai.response.model": "m-1",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 4,
    "gen_ai.request.temperature": 1,
    "gen_ai.request.top_p": 0.5,
    "gen_ai.request.max_tokens": 64,
    "gen_ai.request.frequency_penalty": 0.25,
    "gen_ai.request.presence_penalty": -1,
    "gen_ai.request.seed": 7,
  });
  assert.equal(fields["protocol"], "llm");
  assert.match(String(fields["endpoint"]), /^127\.0\.0\.1:\d+$/);
  await ask({ stream: true });
  const streamed = await nextFields();
  assert.ok(Number(streamed["gwp.ai.time_to_first_token"]) > 0);
  assert.ok(Number(streamed["gwp.ai.time_per_output_token"]) >= 0);
});

for (const stream of [false, true]) {
  test(`what was said stands in the line when an attribute asks for it (stream: ${stream})`, async (t) => {
    const { ask, nextFields } = await serve(t, `{attributes: {add: [${ADD}]}}`);
    const answer = await ask({ stream });
    assert.ok(answer.includes("Hello"));
    const { prompt, completion, toolCalls } = await nextFields();
    assert.deepEqual(prompt, [{ role: "user", content: "Hi" }]);
    assert.deepEqual(completion, [stream ? "Hello thére" : "Hello there"]);
    assert.deepEqual(toolCalls, [{ id: "call-1", name: "weather", arguments: '{"city":"Ulm"}' }]);
  });
}
