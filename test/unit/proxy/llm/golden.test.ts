/** Golden conversions: each file holds what goes in and what has to come out, in both directions. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CHAT_FORMATS } from "../../../../src/proxy/llm/formats/index.ts";
import type { ChatFormat, ClientSide, ProviderSide } from "../../../../src/proxy/llm/formats/chat-format.ts";
import { Losses } from "../../../../src/proxy/llm/conversation/losses.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { stringOf, type JsonObject } from "../../../../src/proxy/llm/shared/json.ts";
import { NO_LEDGER, readBody, streamFrom } from "../../../support/gateway/llm-harness.ts";
import { translateStream } from "../../../../src/proxy/llm/stream/translated-stream.ts";

interface Case {
  /** The client's request where the form of the answer depends on it. */
  readonly asked?: JsonObject;
  readonly request?: { readonly input: JsonObject; readonly output: JsonObject; readonly dropped?: readonly string[] };
  readonly refused?: { readonly input: JsonObject; readonly text: string };
  readonly response?: { readonly input: JsonObject; readonly output: JsonObject };
  readonly stream?: { readonly input: readonly JsonObject[]; readonly output: readonly unknown[] };
  readonly error?: { readonly status: number; readonly input: unknown; readonly output: JsonObject };
}

const FOLDER = join(import.meta.dirname, "../../../golden/llm");
const CREATED_AT = 1_700_000_000;

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** Both sides of a translation, and what a request passes through. */
class Translation {
  readonly #client: ClientSide;
  readonly #provider: ProviderSide;

  /** @param name of a folder, such as "completions-to-messages" */
  constructor(name: string) {
    const [client, provider] = name.split("-to-").map(formatOf);
    assert.ok(client?.client !== undefined && provider?.provider !== undefined, `${name} has both sides`);
    this.#client = client.client;
    this.#provider = provider.provider;
  }

  request(body: JsonObject): { body: JsonObject; dropped: readonly string[] } {
    const losses = new Losses();
    const model = stringOf(body["model"]) ?? "m";
    const conversation = this.#client.readRequest(body, { model, streaming: body["stream"] === true, losses });
    const printed = this.#provider.printRequest(conversation, { losses, tags: new Set() });
    return { body: printed.body, dropped: losses.names };
  }

  response(body: JsonObject, request: JsonObject): JsonObject {
    const answer = this.#provider.readAnswer(body, { toolNames: undefined, model: "m" });
    return this.#client.printAnswer(answer, { request, createdAt: CREATED_AT });
  }

  error(body: Buffer, status: number): JsonObject {
    return this.#client.printError(this.#provider.readError(body, status), status);
  }

  async stream(events: readonly JsonObject[], request: JsonObject): Promise<unknown[]> {
    // Each event comes by itself: a stream whose first bytes are an error is no stream.
    const chunks = events.map((event) =>
      Buffer.from(`event: ${String(event["type"])}\r\ndata: ${JSON.stringify(event)}\r\n\r\n`),
    );
    const reader = this.#provider.readStream({ toolNames: undefined, model: "m" });
    const printer = this.#client.printStream({ request, createdAt: CREATED_AT });
    const source = streamFrom(chunks);
    const body = translateStream(source, { ledger: NO_LEDGER, maxEventBytes: 65_536 }, { reader, printer });
    const { text: output, error } = await readBody(body);
    assert.equal(error, undefined);
    return output
      .split("\n\n")
      .filter((event) => event !== "")
      .map((event) => event.replace(/^(?:event: .*\n)?data: /, ""))
      .map((data) => (data === "[DONE]" ? data : JSON.parse(data)));
  }
}

function formatOf(name: string): ChatFormat | undefined {
  return Object.values(CHAT_FORMATS).find((format) => format.name.toLowerCase() === name);
}

/** What a case has to come out as; `make golden` writes it. */
async function resultOf(translation: Translation, golden: Case): Promise<Case> {
  const { request, refused, response, stream, error, asked = {} } = golden;
  return {
    ...(golden.asked && { asked }),
    ...(request && { request: withDropped(request.input, translation.request(request.input)) }),
    ...(refused && { refused: { input: refused.input, text: refusalOf(() => translation.request(refused.input)) } }),
    ...(response && { response: { input: response.input, output: translation.response(response.input, asked) } }),
    ...(stream && { stream: { input: stream.input, output: await translation.stream(stream.input, asked) } }),
    ...(error && {
      error: { ...error, output: translation.error(Buffer.from(textOf(error.input)), error.status) },
    }),
  };
}

function withDropped(input: JsonObject, { body, dropped }: { body: JsonObject; dropped: readonly string[] }) {
  return { input, output: body, ...(dropped.length === 0 ? {} : { dropped }) };
}

function refusalOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof ProxyError && error.code === "llm_request_invalid", String(error));
    return error.text;
  }
  return assert.fail("the request is not refused");
}

function textOf(input: unknown): string {
  return typeof input === "string" ? input : JSON.stringify(input);
}

for (const folder of readdirSync(FOLDER).sort())
  for (const file of readdirSync(join(FOLDER, folder)).sort()) {
    const path = join(FOLDER, folder, file);
    test(`${folder}: ${file}`, async () => {
      const golden = JSON.parse(readFileSync(path, "utf8")) as Case;
      assert.ok(Object.keys(golden).length > 0, "the case says something");
      const result = plain(await resultOf(new Translation(folder), golden));
      if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(path, `${JSON.stringify(result, undefined, 2)}\n`);
      else assert.deepEqual(result, golden);
    });
  }
