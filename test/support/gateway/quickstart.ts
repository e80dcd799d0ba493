/** The manifests of examples/quickstart on ports of the test's own, and HTTP checks of what the README promises. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { call } from "../clients/http.ts";

const FOLDER = join(import.meta.dirname, "../../../examples/quickstart");

export interface QuickstartPorts {
  readonly gateway: number;
  readonly hello: number;
  readonly provider: number;
}

/** Returns the texts of the manifests by file name. */
export function quickstartManifests({ gateway, hello, provider }: QuickstartPorts): ReadonlyMap<string, string> {
  const replaced = (text: string): string =>
    text
      .replaceAll("port: 8080", `port: ${gateway}`)
      .replaceAll("port: 9001", `port: ${hello}`)
      .replaceAll("port: 9002", `port: ${provider}`);
  return new Map(
    globSync("*.yaml", { cwd: FOLDER })
      .sort()
      .map((file) => [file, replaced(readFileSync(join(FOLDER, file), "utf8"))]),
  );
}

function client(url: string, path: string, apiKey: string): OpenAI {
  return new OpenAI({ baseURL: `${url}${path}`, apiKey, maxRetries: 0 });
}

/**
 * Checks what the README promises about the quickstart.
 * @param url http://127.0.0.1:port
 */
export async function checkQuickstart(url: string): Promise<void> {
  const hello = await call(`${url}/hello`);
  assert.equal(hello.status, 200);
  assert.equal((JSON.parse(hello.body) as { hello: string }).hello, "world");

  for (const [path, model] of [
    ["/v1", "mock-small"],
    ["/anthropic/v1", "mock-large"],
  ] as const) {
    await checkChat(client(url, path, "alice-key"), model);
    await assert.rejects(() => ask(client(url, path, "unknown-key"), model), { status: 401 });
    await assert.rejects(() => ask(client(url, path, "mallory-key"), model), { status: 403 });
  }
  await checkBudget(client(url, "/v1", "bob-key"));
}

async function ask(openai: OpenAI, model: string, content = "Hi"): Promise<OpenAI.ChatCompletion> {
  return openai.chat.completions.create({ model, messages: [{ role: "user", content }] });
}

async function checkChat(openai: OpenAI, model: string): Promise<void> {
  const plain = await ask(openai, model);
  assert.ok((plain.choices[0]?.message.content ?? "").length > 0);
  assert.ok((plain.usage?.total_tokens ?? 0) > 0);

  let streamed = "";
  const stream = await openai.chat.completions.create({
    model,
    stream: true,
    messages: [{ role: "user", content: "Hi" }],
  });
  for await (const chunk of stream) streamed += chunk.choices[0]?.delta.content ?? "";
  assert.ok(streamed.length > 0);

  const tools = await openai.chat.completions.create({
    model,
    messages: [{ role: "user", content: "What is the weather in Paris?" }],
    tools: [
      {
        type: "function",
        function: {
          name: "weather",
          description: "Tells the weather",
          parameters: { type: "object", properties: { city: { type: "string" } } },
        },
      },
    ],
  });
  assert.equal(tools.choices[0]?.finish_reason, "tool_calls");
  const [toolCall] = tools.choices[0]?.message.tool_calls ?? [];
  assert.equal(toolCall?.type === "function" ? toolCall.function.name : undefined, "weather");
}

/** Checks that the request that crosses the budget succeeds and that the next one gets 429 with the three headers. */
async function checkBudget(openai: OpenAI): Promise<void> {
  const long = "word ".repeat(1500);
  for (let turn = 0; turn < 10; turn++) {
    try {
      await ask(openai, "mock-small", long);
    } catch (error) {
      assert.ok(turn > 0, "the request that crosses the budget succeeds");
      assert.ok(error instanceof OpenAI.APIError);
      assert.equal(error.status, 429);
      for (const header of ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]) {
        assert.match(String((error.headers as Headers).get(header)), /^\d+$/);
      }
      return;
    }
  }
  assert.fail("the budget was never enforced");
}
