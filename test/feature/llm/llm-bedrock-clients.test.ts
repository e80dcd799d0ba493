/** Each official client in front of Converse: every kind of question and answer, whole and streamed. */
import assert from "node:assert/strict";
import { LLM_CLIENTS, type Chat, type LlmClient } from "../../support/clients/llm-clients.ts";
import { documents, GATEWAY, pemObject, route, startGateway } from "../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { AWS_KEYS, startBedrock, type BedrockServer } from "../../support/servers/llm/bedrock.ts";

const MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0";
const PIXEL = "iVBORw0KGgo=";

const OBJECTS = documents(
  GATEWAY,
  pemObject("Secret", "aws", { accessKey: AWS_KEYS.accessKeyId, secretKey: AWS_KEYS.secretAccessKey }),
  route("ai", "ai"),
);

interface Setup {
  readonly bedrock: BedrockServer;
  /** Opens a new conversation. */
  readonly open: () => Chat;
}

async function connect(context: ProofContext, client: LlmClient, isStreamed: boolean): Promise<Setup> {
  const bedrock = await startBedrock(context);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {llmh: {region: ${AWS_KEYS.region}}, host: 127.0.0.1, port: ${bedrock.port}}}
  policies: {auth: {cloudA: {secretRef: {name: aws}}}}
`;
  const gateway = await startGateway(context, documents(OBJECTS, backend));
  return { bedrock, open: () => client.open(gateway.url(), MODEL, isStreamed) };
}

interface Sent {
  readonly messages: readonly { readonly role: string; readonly content: readonly Record<string, unknown>[] }[];
  readonly toolConfig?: { readonly tools: readonly { readonly toolSpec: { readonly name: string } }[] };
  readonly outputConfig?: object;
  readonly inferenceConfig?: { readonly maxTokens: number };
}

/** The newest request, which the strict server has checked. */
function sentTo({ seen }: BedrockServer): Sent {
  return seen.at(-1)?.body as unknown as Sent;
}

const REASONING = { reasoningContent: { reasoningText: { text: "I should look.", signature: "c2lnbmVk" } } };
const CALLS = [
  { toolUse: { toolUseId: "tooluse_1", name: "weather", input: { city: "Rome" } } },
  { toolUse: { toolUseId: "tooluse_2", name: "time", input: {} } },
];
const ERRORS = [
  [400, "ValidationException"],
  [401, "UnrecognizedClientException"],
  [404, "ResourceNotFoundException"],
  [429, "ThrottlingException"],
  [500, "InternalServerException"],
  [529, "ModelOverloaded"],
] as const;

for (const client of LLM_CLIENTS)
  for (const isStreamed of [false, true]) {
    const way = `${client.name}, ${isStreamed ? "streamed" : "whole"}`;

    prove([], `text, images, limits and refusals reach the client (${way})`, async (context) => {
      const { bedrock, open } = await connect(context, client, isStreamed);
      bedrock.answer = { content: [{ text: "You said: hällo ☂" }] };
      const said = await open().ask({ text: "hällo ☂" });
      assert.deepEqual([said.text, said.stop], ["You said: hällo ☂", client.stops.end]);
      assert.deepEqual([said.inputTokens, said.outputTokens], [11, 7]);

      const seen = await open().ask({ text: "What is this?", image: PIXEL, maxTokens: 50 });
      assert.equal(seen.stop, client.stops.end);
      const image = { image: { format: "png", source: { bytes: PIXEL } } };
      assert.deepEqual(sentTo(bedrock).messages[0]?.content, [{ text: "What is this?" }, image]);
      assert.equal(sentTo(bedrock).inferenceConfig?.maxTokens, 50);

      bedrock.answer = { content: [{ text: "Too" }], stopReason: "max_tokens" };
      const cut = await open().ask({ text: "long" });
      assert.deepEqual([cut.text, cut.stop], ["Too", client.stops.length]);
      bedrock.answer = { content: [{ text: "No." }], stopReason: "guardrail_intervened" };
      assert.equal((await open().ask({ text: "bad" })).stop, client.stops.refusal);
    });

    prove([], `structured output is asked for with its schema (${way})`, async (context) => {
      const { bedrock, open } = await connect(context, client, isStreamed);
      bedrock.answer = { content: [{ text: '{"city":"Rome"}' }] };
      const properties = { city: { type: "string" } };
      const schema = { type: "object", properties, required: ["city"], additionalProperties: false };
      const answer = await open().ask({ text: "Where?", schema });
      assert.equal(answer.text, '{"city":"Rome"}');
      assert.match(JSON.stringify(sentTo(bedrock).outputConfig), /json_schema.*city/);
    });

    prove([], `parallel calls are made and answered, with the reasoning before them (${way})`, async (context) => {
      const { bedrock, open } = await connect(context, client, isStreamed);
      const question = { text: "Weather and time?", tools: ["weather", "time"], isThinking: true, maxTokens: 3000 };
      bedrock.answer = { content: [REASONING, { text: "Looking." }, ...CALLS], stopReason: "tool_use" };
      const chat = open();
      const asked = await chat.ask(question);
      assert.equal(asked.stop, client.stops.calls);
      const calls = asked.calls.map(({ name, arguments: input }) => [name, input]);
      assert.deepEqual(calls, [
        ["weather", { city: "Rome" }],
        ["time", {}],
      ]);

      bedrock.answer = { content: [{ text: "Sunny, noon." }] };
      const told = await chat.answerCalls(question);
      assert.deepEqual([told.text, told.stop], ["Sunny, noon.", client.stops.end]);
      const { messages, toolConfig } = sentTo(bedrock);
      assert.deepEqual(
        toolConfig?.tools.map(({ toolSpec }) => toolSpec.name),
        ["weather", "time"],
      );
      assert.deepEqual(
        messages.map(({ role }) => role),
        ["user", "assistant", "user"],
      );
      assert.deepEqual(messages[1]?.content[0], REASONING);
      assert.deepEqual(
        messages[2]?.content.map((block) => Object.keys(block)[0]),
        ["toolResult", "toolResult"],
      );
    });

    prove([], `errors of the provider keep status and message (${way})`, async (context) => {
      const { bedrock, open } = await connect(context, client, isStreamed);
      for (const [status, type] of ERRORS) {
        bedrock.answer = { error: { status, type, message: `it is ${status}` } };
        const error = await open()
          .ask({ text: "hi" })
          .catch((reason: unknown) => reason);
        const told = client.errorOf(error);
        assert.equal(told.status, status);
        assert.match(told.message, new RegExp(`it is ${status}`));
      }
    });
  }
