/** Every example of docs/llm.md is served as it stands, by strict servers in place of the vendors. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { parseAllDocuments, stringify } from "yaml";
import { documents, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { ANTHROPIC_KEY, startAnthropic } from "../../support/servers/llm/anthropic.ts";
import { startBedrock } from "../../support/servers/llm/bedrock.ts";
import { GEMINI_KEY, GOOGLE_TOKEN, startGoogle } from "../../support/servers/llm/google.ts";
import { OPENAI_KEY, startOpenAi } from "../../support/servers/llm/openai.ts";

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: { ai: { provider: Record<string, object>; groups: { providers: Record<string, object>[] }[] } };
  readonly stringData: Record<string, string>;
}

const PAGE = readFileSync(join(import.meta.dirname, "../../../docs/llm.md"), "utf8");
/** Examples by the heading above them. */
const EXAMPLES = new Map(
  [...PAGE.matchAll(/^##+ (.*)\n(?:(?!^##).*\n)*?```yaml\n((?:.*\n)*?)```$/gm)].map(([, heading = "", yaml = ""]) => [
    heading.replaceAll("`", ""),
    yaml,
  ]),
);

function readExample(heading: string): Manifest[] {
  const yaml = EXAMPLES.get(heading);
  assert.ok(yaml !== undefined, heading);
  return parseAllDocuments(yaml).map((document) => document.toJS() as Manifest);
}

/** Serves the first example, with the objects of another one added or in place of those of the same name. */
async function serve(
  context: ProofContext,
  heading: string,
  change: (manifests: readonly Manifest[]) => void,
): Promise<TestGateway> {
  const own = readExample(heading);
  const names = new Set(own.map(({ kind, metadata: { name } }) => `${kind}/${name}`));
  const base = readExample("A first chat").filter(({ kind, metadata: { name } }) => !names.has(`${kind}/${name}`));
  const manifests = [...base, ...own];
  change(manifests);
  return startGateway(context, documents(...manifests.map((manifest) => stringify(manifest))));
}

function find(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  assert.ok(found, `${kind} ${name}`);
  return found;
}

/** Leads the provider of the example to a server that takes the key. */
function leadTo(port: number, key: string): (manifests: readonly Manifest[]) => void {
  return (manifests) => {
    Object.assign(find(manifests, "GwBackend", "ai").spec.ai.provider, { host: "127.0.0.1", port });
    find(manifests, "Secret", "provider").stringData["Authorization"] = key;
  };
}

function openai(gateway: TestGateway, apiKey = "of-the-client"): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${gateway.url()}/v1`, maxRetries: 0 });
}

async function chat(client: OpenAI, content = "hi"): Promise<string | null | undefined> {
  const { choices } = await client.chat.completions.create({ model: "any", messages: [{ role: "user", content }] });
  return choices[0]?.message.content;
}

interface Vendor {
  readonly port: number;
  readonly key: string;
  readonly seen: readonly object[];
}

async function openaiAt(context: ProofContext, base?: string): Promise<Vendor> {
  const server = await startOpenAi(context, base === undefined ? undefined : [base]);
  server.answer = { text: "Hello" };
  return { port: server.port, key: OPENAI_KEY, seen: server.seen };
}

async function googleAt(context: ProofContext, location: string | undefined, key: string): Promise<Vendor> {
  const server = await startGoogle(context, location, { project: "my-project", key });
  server.answer = { parts: [{ text: "Hello" }] };
  return { port: server.port, key, seen: server.seen };
}

const PROVIDERS: Readonly<Record<string, (context: ProofContext) => Promise<Vendor>>> = {
  "A first chat": (context) => openaiAt(context),
  "llma: OpenAI": (context) => openaiAt(context),
  "llmb: GitHub Copilot": (context) => openaiAt(context, ""),
  "llmc: Azure OpenAI by endpoint": (context) => openaiAt(context, "/openai/v1"),
  "llmd: Azure by resource": (context) => openaiAt(context, "/openai/v1"),
  "custom: any other": (context) => openaiAt(context),
  "llmf: Gemini API": (context) => googleAt(context, undefined, GEMINI_KEY),
  "llmg: Vertex AI": (context) => googleAt(context, "europe-west4", GOOGLE_TOKEN),
  async "llme: Anthropic"(context) {
    const server = await startAnthropic(context);
    server.answer = { text: "Hello" };
    return { port: server.port, key: ANTHROPIC_KEY, seen: server.seen };
  },
  async "llmh: Amazon Bedrock"(context) {
    const server = await startBedrock(context);
    server.answer = { content: [{ text: "Hello" }] };
    return { port: server.port, key: "", seen: server.seen };
  },
};

for (const [heading, start] of Object.entries(PROVIDERS))
  prove([], `the page about providers shows a chat: ${heading}`, async (context) => {
    const { port, key, seen } = await start(context);
    const gateway = await serve(context, heading, leadTo(port, key));
    assert.equal(await chat(openai(gateway)), "Hello");
    assert.equal(seen.length, 1);
  });

const BUDGET = "A budget of tokens for a team";
const MASK = "A masked prompt";
const FAILOVER = "A failover";
const AGENTS = "Coding agents";

prove([], "no example of the page about providers is left out", async () => {
  const served = [...Object.keys(PROVIDERS), BUDGET, MASK, FAILOVER, AGENTS];
  assert.deepEqual([...EXAMPLES.keys()].sort(), served.sort());
  assert.equal(PAGE.match(/^```yaml$/gm)?.length, served.length);
});

prove([], "the page about providers shows a budget of tokens for a team", async (context) => {
  const { port, key } = await openaiAt(context);
  const gateway = await serve(context, BUDGET, leadTo(port, key));
  assert.equal(await chat(openai(gateway, "alice-key")), "Hello");
  await assert.rejects(chat(openai(gateway, "alice-key")), OpenAI.RateLimitError);
  assert.equal(await chat(openai(gateway, "bob-key")), "Hello");
  await assert.rejects(chat(openai(gateway, "other-key")), OpenAI.AuthenticationError);
});

prove([], "the page about providers shows a masked prompt", async (context) => {
  const { port, key, seen } = await openaiAt(context);
  const gateway = await serve(context, MASK, leadTo(port, key));
  await chat(openai(gateway), "mail bob@example.com");
  assert.match(JSON.stringify(seen[0]), /mail <EMAIL_ADDRESS>/);
});

prove([], "the page about providers shows a failover", async (context) => {
  const [first, second] = await Promise.all([startOpenAi(context), startAnthropic(context)]);
  first.answer = { error: { status: 429, type: "rate_limit_error", message: "later" } };
  second.answer = { text: "Hello" };
  const gateway = await serve(context, FAILOVER, (manifests) => {
    const members = find(manifests, "GwBackend", "ai").spec.ai.groups.flatMap(({ providers }) => providers);
    [first, second].forEach(({ port }, at) => Object.assign(members[at] ?? {}, { host: "127.0.0.1", port }));
    find(manifests, "Secret", "provider").stringData["Authorization"] = OPENAI_KEY;
    find(manifests, "Secret", "second-provider").stringData["Authorization"] = ANTHROPIC_KEY;
  });
  assert.equal(await chat(openai(gateway)), "Hello");
  assert.deepEqual([first.seen.length, second.seen.length], [1, 1]);
});

prove([], "the page about providers shows aliases for coding agents", async (context) => {
  const { port, key, seen } = await openaiAt(context);
  const gateway = await serve(context, AGENTS, leadTo(port, key));
  const client = new Anthropic({ apiKey: "of-the-client", baseURL: gateway.url(), maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "hi" }];
  const { content } = await client.messages.create({ model: "claude-sonnet-4-5", max_tokens: 10, messages });
  assert.deepEqual(
    content.map((block) => block.type === "text" && block.text),
    ["Hello"],
  );
  assert.match(JSON.stringify(seen[0]), /"model":"gpt-5-mini"/);
});
