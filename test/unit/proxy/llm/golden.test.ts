/** Golden conversions: each file holds what goes in and what has to come out, in both directions. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { completionsToMessages } from "../../../../src/proxy/llm/convert/completions-to-messages.ts";
import type { JsonObject } from "../../../../src/proxy/llm/json.ts";
import { readBody, streamFrom } from "../../../support/gateway/llm-harness.ts";
import { messages } from "../../../../src/proxy/llm/formats/messages.ts";
import { translateStream } from "../../../../src/proxy/llm/stream/bodies.ts";

interface Case {
  readonly request?: { readonly input: JsonObject; readonly output: JsonObject; readonly dropped?: readonly string[] };
  readonly refused?: { readonly input: JsonObject; readonly text: string };
  readonly response?: { readonly input: JsonObject; readonly output: JsonObject };
  readonly stream?: { readonly input: readonly JsonObject[]; readonly output: readonly unknown[] };
  readonly error?: { readonly status: number; readonly input: unknown; readonly output: JsonObject };
}

const FOLDER = join(import.meta.dirname, "../../../golden/llm/completions-to-messages");
const CREATED_AT = 1_700_000_000;

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

async function streamed(events: readonly JsonObject[]): Promise<unknown[]> {
  const text = events
    .map((event) => `event: ${String(event["type"])}\r\ndata: ${JSON.stringify(event)}\r\n\r\n`)
    .join("");
  const ledger = { flowing: () => undefined, record: () => undefined, settle: () => undefined };
  const context = { format: messages, ledger, maxEventBytes: 65_536 };
  const source = streamFrom([Buffer.from(text)]);
  const { text: output, error } = await readBody(
    translateStream(source, context, completionsToMessages.stream(CREATED_AT)),
  );
  assert.equal(error, undefined);
  return output
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => event.replace(/^data: /, ""))
    .map((data) => (data === "[DONE]" ? data : JSON.parse(data)));
}

for (const file of readdirSync(FOLDER).sort()) {
  const golden = JSON.parse(readFileSync(join(FOLDER, file), "utf8")) as Case;
  test(`completions to messages: ${file}`, async () => {
    const { request, refused, response, stream, error } = golden;
    assert.ok(request ?? refused ?? response ?? stream ?? error, "the case says something");
    if (request !== undefined) {
      const made = completionsToMessages.request(request.input);
      assert.deepEqual(plain(made.body), request.output);
      assert.deepEqual(made.dropped, request.dropped ?? []);
    }
    if (refused !== undefined)
      assert.throws(() => completionsToMessages.request(refused.input), {
        code: "llm_request_invalid",
        text: refused.text,
      });
    if (response !== undefined)
      assert.deepEqual(plain(completionsToMessages.response(response.input, CREATED_AT)), response.output);
    if (stream !== undefined) assert.deepEqual(await streamed(stream.input), stream.output);
    if (error !== undefined) {
      const body = typeof error.input === "string" ? error.input : JSON.stringify(error.input);
      assert.deepEqual(plain(completionsToMessages.error(Buffer.from(body), error.status)), error.output);
    }
  });
}
