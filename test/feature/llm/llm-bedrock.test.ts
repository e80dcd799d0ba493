/** Bedrock: the strict server takes what the official client sends, and the gateway sends what the strict server takes. */
import assert from "node:assert/strict";
import {
  ConverseCommand,
  ConverseStreamCommand,
  InvokeModelCommand,
  type ContentBlock,
  type ConverseCommandInput,
} from "@aws-sdk/client-bedrock-runtime";
import { bedrockClient } from "../../support/clients/bedrock.ts";
import { prove } from "../../support/proofs/prove.ts";
import { AWS_KEYS, startBedrock } from "../../support/servers/llm/bedrock.ts";

const MODEL = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
const PIXEL = Buffer.from("iVBORw0KGgo=", "base64");

const REFERENCE: ConverseCommandInput = {
  modelId: MODEL,
  system: [{ text: "Be short." }, { cachePoint: { type: "default" } }],
  messages: [
    { role: "user", content: [{ text: "Weather?" }, { image: { format: "png", source: { bytes: PIXEL } } }] },
    {
      role: "assistant",
      content: [
        { reasoningContent: { reasoningText: { text: "Hm.", signature: "sig" } } },
        { toolUse: { toolUseId: "t1", name: "weather", input: { city: "Rome" } } },
      ],
    },
    { role: "user", content: [{ toolResult: { toolUseId: "t1", content: [{ text: "sunny" }] } }] },
  ],
  toolConfig: { tools: [{ toolSpec: { name: "weather", inputSchema: { json: { type: "object" } } } }] },
  inferenceConfig: { maxTokens: 100, temperature: 0.5 },
  requestMetadata: { team: "blue" },
};

const BLOCKS = [
  { reasoningContent: { reasoningText: { text: "I think so.", signature: "c2ln" } } },
  { text: "It is sunny in Rome." },
  { toolUse: { toolUseId: "tooluse_1", name: "weather", input: { city: "Oslo" } } },
];

prove([], "the strict server takes what the official client sends and answers what it reads", async (context) => {
  const bedrock = await startBedrock(context);
  bedrock.answer = { content: BLOCKS, stopReason: "tool_use" };
  const client = bedrockClient(bedrock.port);
  const answer = await client.send(new ConverseCommand(REFERENCE));
  assert.deepEqual(answer.output?.message?.content, BLOCKS);
  assert.equal(answer.stopReason, "tool_use");
  assert.equal(answer.usage?.totalTokens, 18);

  const { stream = [] } = await client.send(new ConverseStreamCommand(REFERENCE));
  const text: string[] = [];
  const calls: string[] = [];
  for await (const { contentBlockDelta, contentBlockStart, messageStop, metadata } of stream) {
    text.push(contentBlockDelta?.delta?.text ?? "");
    calls.push(contentBlockStart?.start?.toolUse?.name ?? "", contentBlockDelta?.delta?.toolUse?.input ?? "");
    if (messageStop !== undefined) assert.equal(messageStop.stopReason, "tool_use");
    if (metadata !== undefined) assert.equal(metadata.usage?.inputTokens, 11);
  }
  assert.equal(text.join(""), "It is sunny in Rome.");
  assert.equal(calls.join(""), 'weather{"city":"Oslo"}');

  bedrock.answer = { exception: { type: "throttlingException", message: "slow down" } };
  const broken = await client.send(new ConverseStreamCommand(REFERENCE));
  const readAll = async (): Promise<void> => {
    for await (const { messageStop } of broken.stream ?? []) assert.equal(messageStop, undefined);
  };
  await assert.rejects(readAll(), { name: "ThrottlingException", message: "slow down" });

  const invoked = await client.send(
    new InvokeModelCommand({
      modelId: "amazon.titan-embed-text-v2:0",
      contentType: "application/json",
      body: JSON.stringify({ inputText: "hi", dimensions: 256 }),
    }),
  );
  assert.deepEqual(JSON.parse(Buffer.from(invoked.body).toString()).embedding, [0.25, -0.5]);
});

prove([], "the strict server refuses what the service refuses", async (context) => {
  const bedrock = await startBedrock(context);
  const refused = async (change: Partial<ConverseCommandInput>, message: RegExp, keys = AWS_KEYS): Promise<void> => {
    const sent = bedrockClient(bedrock.port, keys).send(new ConverseCommand({ ...REFERENCE, ...change }));
    await assert.rejects(sent, { message });
  };
  const asked = (content: ContentBlock[]): Partial<ConverseCommandInput> => ({ messages: [{ role: "user", content }] });
  await refused({}, /signature does not match/, { ...AWS_KEYS, secretAccessKey: "other" });
  await refused({}, /session token/, { ...AWS_KEYS, sessionToken: "unknown" });
  await refused({}, /unknown key/, { ...AWS_KEYS, accessKeyId: "other" });
  await refused({ toolConfig: undefined }, /toolConfig field must be defined/);
  await refused(asked([{ text: " " }]), /blank/);
  await refused(asked([{ cachePoint: { type: "default" } }, { text: "x" }]), /nothing available to cache/);
  await refused({ messages: (REFERENCE.messages ?? []).slice(0, 2) }, /Expected toolResult/);
  await refused({ messages: (REFERENCE.messages ?? []).slice(1) }, /must start with a user/);
});
