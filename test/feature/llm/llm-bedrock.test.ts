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
import { call, type Answer } from "../../support/clients/http.ts";
import {
  bedrockBackend as backend,
  keySecret,
  newest,
  REGION,
  serveBedrock as serve,
  SIGNED,
} from "../../support/gateway/bedrock.ts";
import { pemObject, type TestGateway } from "../../support/gateway/gateway.ts";
import { BLOCK_PLACES } from "../../support/proofs/block-places.ts";
import { prove } from "../../support/proofs/prove.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startForwardProxy } from "../../support/servers/forward-proxy.ts";
import { AWS_KEYS, BEDROCK_API_KEY, startBedrock } from "../../support/servers/llm/bedrock.ts";
import { createSelfSigned } from "../../support/servers/tls-upstream.ts";

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

interface Asked {
  readonly path?: string;
  readonly model?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function chat(
  gateway: TestGateway,
  { path = "/v1/chat/completions", model = MODEL, headers }: Asked = {},
): Promise<Answer> {
  const body = { model, max_tokens: 100, messages: [{ role: "user", content: "hi" }], input: "hi" };
  return call(`${gateway.url()}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer of-the-client", ...headers },
    body: JSON.stringify(body),
  });
}

const MEMBER = "GwBackend spec.ai.groups[].providers[]";
const PLACES = [
  { prefix: "GwBackend spec.ai.provider", ai: (provider: string) => `{provider: {${provider}}}` },
  { prefix: MEMBER, ai: (provider: string) => `{groups: [{providers: [{name: one, ${provider}}]}]}` },
] as const;

for (const { prefix, ai } of PLACES) {
  const on = prefix === MEMBER ? "(member of a group)" : "(single provider)";
  const at = (port: number): string => `host: 127.0.0.1, port: ${port}`;

  prove(
    ["region", "model", "guardrail.identifier", "guardrail.version"].map((name) => `${prefix}.llmh.${name}`),
    `a Converse call is signed for the region, names the model and applies the guardrail ${on}`,
    async (context) => {
      const bedrock = await startBedrock(context);
      const settings = `region: ${REGION}, model: "${MODEL}", guardrail: {identifier: gr1, version: "2"}`;
      const gateway = await serve(context, backend(ai(`llmh: {${settings}}, ${at(bedrock.port)}`)));
      const answer = await chat(gateway, { model: "of-the-client" });
      assert.equal(answer.status, 200, answer.body);
      const { url, body } = newest(bedrock);
      assert.equal(url, `/model/${encodeURIComponent(MODEL)}/converse`);
      assert.deepEqual(body, {
        messages: [{ role: "user", content: [{ text: "hi" }] }],
        inferenceConfig: { maxTokens: 100 },
        guardrailConfig: { guardrailIdentifier: "gr1", guardrailVersion: "2", trace: "enabled" },
      });
    },
  );

  prove(
    `${prefix}.llmh.endpointPreference`,
    `a preference sends models to the other surface ${on}`,
    async (context) => {
      const echo = await startEcho(context);
      const settings = `region: ${REGION}, endpointPreference: AltOnly`;
      const gateway = await serve(context, backend(ai(`llmh: {${settings}}, ${at(echo.port)}`)));
      const open = await chat(gateway, { model: "openai.gpt-oss-120b" });
      assert.equal(open.status, 200, open.body);
      const { url, headers } = echoed(open.body);
      assert.equal(url, "/v1/chat/completions");
      assert.match(headers["authorization"] ?? "", new RegExp(`/${REGION}/bedrock-mantle/aws4_request`));
      await chat(gateway, { model: "anthropic.claude-opus-4-7" });
      const claude = echo.seen.at(-1);
      assert.equal(claude?.url, "/anthropic/v1/messages");
      assert.equal(claude.headers["anthropic-version"], "2023-06-01");
    },
  );
}

for (const place of BLOCK_PLACES)
  prove(
    ["secretRef.name", "region", "serviceName"].map((name) => place.field(`auth.cloudA.${name}`)),
    `keys, region and service of the signature are those of the credential (${place.kind})`,
    async (context) => {
      const bedrock = await startBedrock(context, { keys: { ...AWS_KEYS, service: "own", sessionToken: "session" } });
      const cloudA = `{secretRef: {name: own}, region: ${REGION}, serviceName: own}`;
      const provider = `ai: {provider: {llmh: {}, host: 127.0.0.1, port: ${bedrock.port}}}`;
      const objects = place.objects("ai", provider, `auth: {cloudA: ${cloudA}}`);
      const gateway = await serve(context, keySecret("own", { ...AWS_KEYS, sessionToken: "session" }), objects);
      const answer = await chat(gateway);
      assert.equal(answer.status, 200, answer.body);
      assert.equal(newest(bedrock).headers["x-amz-security-token"], "session");
    },
  );

prove(
  ["secretRef.name", "region", "serviceName"].map((name) => `${MEMBER}.policies.auth.cloudA.${name}`),
  "a member of a group has keys of its own",
  async (context) => {
    const bedrock = await startBedrock(context, { keys: { ...AWS_KEYS, service: "own" } });
    const auth = `auth: {cloudA: {secretRef: {name: aws}, region: ${REGION}, serviceName: own}}`;
    const member = `{name: one, llmh: {}, host: 127.0.0.1, port: ${bedrock.port}, policies: {${auth}}}`;
    const gateway = await serve(context, backend(`{groups: [{providers: [${member}]}]}`, "auth: {key: other}"));
    const answer = await chat(gateway);
    assert.equal(answer.status, 200, answer.body);
  },
);

prove([], "an API key travels as bearer token, and nothing is signed", async (context) => {
  const bedrock = await startBedrock(context);
  const provider = `{provider: {llmh: {}, host: 127.0.0.1, port: ${bedrock.port}}}`;
  const gateway = await serve(context, backend(provider, `auth: {key: ${BEDROCK_API_KEY}}`));
  assert.equal((await chat(gateway)).status, 200);
  assert.equal(newest(bedrock).headers["x-amz-date"], undefined);
});

prove(
  [],
  "headers of the client become metadata and features in beta, and do not leave as headers",
  async (context) => {
    const bedrock = await startBedrock(context);
    const provider = `{provider: {llmh: {region: ${REGION}}, host: 127.0.0.1, port: ${bedrock.port}}}`;
    const gateway = await serve(context, backend(provider));
    const headers = {
      "x-bedrock-metadata": '{"team":"blue"}',
      "anthropic-beta": "context-1m-2025-08-07, files-api-2025-04-14",
      "anthropic-version": "2023-06-01",
      "x-api-key": "of-the-client",
      "x-amz-date": "20200101T000000Z",
      "x-amz-content-sha256": "0",
      "x-amzn-trace-id": "Root=1",
    };
    const answer = await chat(gateway, { path: "/v1/chat/completions?beta=true&a=%2F", headers });
    assert.equal(answer.status, 200, answer.body);
    const { body, url } = newest(bedrock);
    assert.deepEqual(body["requestMetadata"], { team: "blue" });
    assert.deepEqual(body["additionalModelRequestFields"], { anthropic_beta: ["context-1m-2025-08-07"] });
    assert.ok(url.endsWith("/converse?beta=true&a=%2F"));
    const wrong = await chat(gateway, { headers: { "x-bedrock-metadata": '{"team":1}' } });
    assert.equal(wrong.status, 400);
    assert.match(wrong.body, /x-bedrock-metadata must be a JSON object of strings/);
  },
);

prove([], "without keys, with foreign keys and with a role nothing is sent", async (context) => {
  const bedrock = await startBedrock(context);
  const unavailable = /backend authentication failed/;
  const denied = async (auth: string, text: RegExp): Promise<void> => {
    const provider = `{provider: {llmh: {region: ${REGION}}, host: 127.0.0.1, port: ${bedrock.port}}}`;
    const answer = await chat(await serve(context, backend(provider, `auth: {cloudA: ${auth}}`)));
    assert.equal(answer.status, 500, answer.body);
    assert.match(answer.body, text);
  };
  // A reference that does not resolve closes the whole backend.
  await denied("{secretRef: {name: missing}}", /no valid backends/);
  await denied("{assumeRole: {roleArn: 'arn:aws:iam::123456789012:role/r'}}", unavailable);
  await denied("{}", unavailable);
  const lost = "policies: {auth: {cloudA: {secretRef: {name: missing}}}}";
  const member = `{name: one, llmh: {region: ${REGION}}, host: 127.0.0.1, port: ${bedrock.port}, ${lost}}`;
  const closed = await chat(await serve(context, backend(`{groups: [{providers: [${member}]}]}`)));
  assert.equal(closed.status, 500, "a member is sent without its keys, and not with those of the backend");
  assert.equal(bedrock.seen.length, 0);
});

prove([], "keys of the environment are used where the operator allows it", async (context) => {
  const bedrock = await startBedrock(context);
  const environment = {
    AWS_ACCESS_KEY_ID: AWS_KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: AWS_KEYS.secretAccessKey,
    GWPROXY_AMBIENT_IDENTITY_HOSTS: "*.example.com, 127.0.0.1",
  };
  const before = { ...process.env };
  context.after(() => {
    for (const name of Object.keys(environment)) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  });
  Object.assign(process.env, environment);
  const provider = `{provider: {llmh: {region: ${REGION}}, host: 127.0.0.1, port: ${bedrock.port}}}`;
  const gateway = await serve(context, backend(provider, "auth: {cloudA: {}}"));
  const answer = await chat(gateway);
  assert.equal(answer.status, 200, answer.body);
  process.env["GWPROXY_AMBIENT_IDENTITY_HOSTS"] = "*.amazonaws.com";
  assert.equal((await chat(gateway)).status, 500);
});

const ADDRESSES = [
  { preference: "RuntimeOnly", host: `bedrock-runtime.${REGION}.amazonaws.com` },
  { preference: "AltOnly", host: `bedrock-mantle.${REGION}.api.aws` },
];

for (const { preference, host } of ADDRESSES)
  prove([], `${preference} dials ${host} with TLS`, async (context) => {
    const pair = createSelfSigned(host, `DNS:${host}`);
    const bedrock = await startBedrock(context, { pair });
    const proxy = await startForwardProxy(context, { places: { [`${host}:443`]: `127.0.0.1:${bedrock.port}` } });
    const tunnel = `tunnel: {url: "http://127.0.0.1:${proxy.port}", mode: Connect}`;
    const tls = "tls: {caCertificateRefs: [{name: trusted}]}";
    const settings = `llmh: {region: ${REGION}, endpointPreference: ${preference}}`;
    const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": pair.certificate });
    const objects = backend(`{provider: {${settings}}}`, `${SIGNED}, ${tunnel}, ${tls}`);
    const gateway = await serve(context, trusted, objects);
    const answer = await chat(gateway, { model: "openai.gpt-oss-120b-1:0" });
    assert.deepEqual(proxy.asked, [`CONNECT ${host}:443`]);
    if (preference === "AltOnly") return assert.match(answer.body, /signed for bedrock-mantle/);
    assert.equal(answer.status, 200, answer.body);
    assert.equal(newest(bedrock).headers.host, host);
  });
