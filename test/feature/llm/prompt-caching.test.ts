/** `promptCaching` of the `ai` block through real sockets: where cache points stand in what Bedrock gets. */
import assert from "node:assert/strict";
import { call } from "../../support/clients/http.ts";
import { documents, GATEWAY, pemObject, route, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { BLOCK_PLACES } from "../../support/proofs/block-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { AWS_KEYS, startBedrock, type BedrockServer } from "../../support/servers/llm/bedrock.ts";

const MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0";
const AUTH = "auth: {cloudA: {secretRef: {name: aws}}}";
const KEYS = pemObject("Secret", "aws", { accessKey: AWS_KEYS.accessKeyId, secretKey: AWS_KEYS.secretAccessKey });

interface Place {
  readonly name: string;
  field(name: string): string;
  /** An AI backend `ai` of the provider with the block. */
  objects(provider: string, block: string): string;
}

const PLACES: readonly Place[] = [
  ...BLOCK_PLACES.map(({ kind, field, objects }) => ({
    name: kind,
    field: (name: string) => field(`ai.promptCaching.${name}`),
    objects: (provider: string, block: string) =>
      objects("ai", `ai: {provider: {${provider}}}`, `${AUTH}, ai: {promptCaching: {${block}}}`),
  })),
  {
    name: "member of a group",
    field: (name) => `GwBackend spec.ai.groups[].providers[].policies.ai.promptCaching.${name}`,
    objects: (provider, block) => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {groups: [{providers: [{name: one, ${provider}, policies: {${AUTH}, ai: {promptCaching: {${block}}}}}]}]}
`,
  },
];

/** Ten words, which count as thirteen tokens. */
const SYSTEM = "one two three four five six seven eight nine ten";
const turn = (role: string, content: string): object => ({ role, content });
const TURNS = [turn("user", "a"), turn("assistant", "b"), turn("user", "c"), turn("assistant", "d"), turn("user", "e")];
const TOOLS = [{ type: "function", function: { name: "get", parameters: { type: "object" } } }];
const CHAT = { model: MODEL, messages: [turn("system", SYSTEM), ...TURNS], tools: TOOLS };

async function serve(context: ProofContext, { objects }: Place, block: string): Promise<[TestGateway, BedrockServer]> {
  const bedrock = await startBedrock(context);
  const provider = `llmh: {region: ${AWS_KEYS.region}}, host: 127.0.0.1, port: ${bedrock.port}`;
  return [await startGateway(context, documents(GATEWAY, KEYS, route("ai", "ai"), objects(provider, block))), bedrock];
}

/** Returns where the cache points of a request stand. */
async function marksOf([gateway, bedrock]: [TestGateway, BedrockServer], body: object = CHAT): Promise<string[]> {
  const headers = { "content-type": "application/json" };
  const answer = await call(`${gateway.url()}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, answer.body);
  const marks: string[] = [];
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, child] of Object.entries(value)) {
      if (name === "cachePoint") marks.push(path);
      else walk(child, path === "" ? name : `${path}.${name}`);
    }
  };
  walk(bedrock.seen.at(-1)?.body, "");
  return marks.sort();
}

for (const place of PLACES) {
  prove(
    ["cacheSystem", "cacheMessages", "cacheTools"].map((name) => place.field(name)),
    `only the tools are marked where the block says so (${place.name})`,
    async (context) => {
      const gateway = await serve(
        context,
        place,
        "cacheSystem: false, cacheMessages: false, cacheTools: true, minTokens: 0",
      );
      assert.deepEqual(await marksOf(gateway), ["toolConfig.tools.1"]);
    },
  );

  prove(
    [place.field("minTokens"), place.field("cacheMessageOffset")],
    `a system text of enough tokens and an earlier message are marked (${place.name})`,
    async (context) => {
      const gateway = await serve(context, place, "minTokens: 13, cacheMessageOffset: 1");
      assert.deepEqual(await marksOf(gateway), ["messages.2.content.1", "system.1"]);
    },
  );
}

prove([], "an empty block marks a long system text and the last message but one", async (context) => {
  const [place] = PLACES;
  assert.ok(place);
  const gateway = await serve(context, place, "");
  assert.deepEqual(await marksOf(gateway), ["messages.3.content.1"]);
  const long = { ...CHAT, messages: [turn("system", "word ".repeat(788)), turn("user", "a"), turn("user", "b")] };
  assert.deepEqual(await marksOf(gateway, long), ["system.1"], "neighbours are one message");
  const shorter = { ...long, messages: [turn("system", "word ".repeat(787)), ...TURNS] };
  assert.deepEqual(await marksOf(gateway, shorter), ["messages.3.content.1"]);
  assert.deepEqual(await marksOf(gateway, { ...CHAT, model: "anthropic.claude-v2:1" }), []);
  assert.deepEqual(await marksOf(gateway, { ...CHAT, model: "meta.llama3-70b-instruct-v1:0" }), []);
  assert.equal((await marksOf(gateway, { ...CHAT, model: "us.amazon.nova-pro-v1:0" })).length, 1);
});
