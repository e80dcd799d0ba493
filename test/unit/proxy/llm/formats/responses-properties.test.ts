/** The Responses format: bodies and streams of any shape, and requests that are read and printed again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ProxyError, type ProxyErrorCode } from "../../../../../src/proxy/exchange/errors.ts";
import { Losses } from "../../../../../src/proxy/llm/conversation/losses.ts";
import { responses } from "../../../../../src/proxy/llm/formats/responses/index.ts";
import type { JsonObject } from "../../../../../src/proxy/llm/shared/json.ts";
import { checkOrder, plain } from "../../../../support/fixtures/hub-events.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

const { client, provider } = responses;
assert.ok(client !== undefined && provider !== undefined);

const READ = { model: "m", toolNames: undefined };
const SEED = { seed: 20_261_122, numRuns: 500 };

function readRequest(body: JsonObject) {
  const { model = "m", streaming } = responses.parse(body);
  return client?.readRequest(body, { model, streaming, losses: new Losses() }) as never;
}

function printRequest(body: JsonObject, losses: Losses = new Losses()): JsonObject {
  return plain(provider?.printRequest(readRequest(body), { losses, tags: new Set() }).body);
}

/** Runs a step that may refuse its input in one way only. */
function orRefused<T>(code: ProxyErrorCode, step: () => T): T | undefined {
  try {
    return step();
  } catch (error) {
    assert.ok(error instanceof ProxyError && error.code === code, String(error));
    return undefined;
  }
}

const WORDS =
  "message function_call function_call_output custom_tool_call reasoning input_text output_text input_image input_file " +
  "refusal user assistant developer function custom namespace auto required allowed_tools json_schema completed " +
  "incomplete failed max_output_tokens response.created response.output_item.added response.output_text.delta " +
  "response.output_item.done response.content_part.added response.function_call_arguments.delta response.completed " +
  "response.reasoning_summary_text.delta error data:a/b;base64,AA== __proto__";
const MEMBERS =
  "type role content text input output call_id name arguments tools tool_choice mode parameters strict reasoning effort " +
  "summary encrypted_content image_url file_data filename format schema item item_id output_index content_index delta " +
  "response usage input_tokens status incomplete_details reason part annotations annotation id model instructions __proto__";

/** JSON whose members and texts are mostly words of the format, in places where they may not belong. */
const someJson = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(...WORDS.split(" ")),
    fc.constantFrom(null, true, false, 0, -1, 1e308, 3, "", "ü\u2028"),
    fc.array(tie("value"), { maxLength: 4 }),
    tie("object"),
  ),
  object: fc.dictionary(fc.constantFrom(...MEMBERS.split(" ")), tie("value"), { maxKeys: 8 }),
}));

const body = fc
  .record({ more: someJson.object, input: fc.oneof(someJson.value, fc.array(someJson.object, { maxLength: 4 })) })
  .map(({ more, input }) => JSON.parse(JSON.stringify({ ...more, input })) as JsonObject);

test("any request is read and printed, or refused with 400", () => {
  assertProperty(
    fc.property(body, (given) => {
      const read = orRefused("llm_request_invalid", () => {
        try {
          return printRequest(given);
        } catch (error) {
          if (error instanceof ProxyError && error.code === "llm_model_invalid") return undefined;
          throw error;
        }
      });
      if (read !== undefined) JSON.stringify(read);
    }),
    SEED,
  );
});

test("any answer is read and printed, or is no answer", () => {
  const answer = fc.oneof(
    someJson.object,
    fc
      .record({ output: fc.array(someJson.object, { maxLength: 5 }), more: someJson.object })
      .map(({ output, more }) => ({ ...more, output })),
  );
  assertProperty(
    fc.property(answer, (given) => {
      const read = orRefused("llm_response_invalid", () => provider.readAnswer(plain(given), READ));
      if (read !== undefined) plain(client.printAnswer(read, { request: {}, createdAt: 1 }));
    }),
    SEED,
  );
});

test("any events of a stream are read in the order of the hub and printed", () => {
  const event = fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .record({
          type: fc.constantFrom(...WORDS.split(" ").filter((word) => word.startsWith("response."))),
          more: someJson.object,
          output_index: fc.nat(2),
        })
        .map(({ more, ...rest }) => ({ ...more, ...rest })),
    },
    someJson.object,
  );
  assertProperty(
    fc.property(fc.array(event, { maxLength: 20 }), (given) => {
      const reader = provider.readStream(READ);
      const read = given.flatMap((each) => orRefused("llm_response_invalid", () => reader.read(plain(each), "")) ?? []);
      checkOrder(read);
      const printer = client.printStream({ request: {}, createdAt: 1 });
      const text = read.map((each) => printer.print(each)).join("") + printer.end();
      for (const block of text.split("\n\n").filter((each) => each !== "")) {
        const [name = "", data = ""] = block.split("\n");
        assert.equal(name, `event: ${String((JSON.parse(data.slice("data: ".length)) as JsonObject)["type"])}`);
      }
    }),
    SEED,
  );
});

const text = fc.string({ minLength: 1 }).filter((each) => each.trim() !== "");
const name = fc.stringMatching(/^[a-z_]{1,8}$/);
const userParts = fc.array(
  fc.oneof(
    text.map((value) => ({ type: "input_text", text: value })),
    fc.constant({ type: "input_image", image_url: "data:image/png;base64,iVBORw==", detail: "low" }),
    fc.constant({ type: "input_image", image_url: "https://example.com/a.png", detail: "auto" }),
    fc.constant({ type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBE" }),
  ),
  { minLength: 1, maxLength: 3 },
);
const items = fc.array(
  fc.oneof(
    userParts.map((content) => [{ type: "message", role: "user", content }]),
    text.map((value) => [
      { type: "message", role: "assistant", content: [{ type: "output_text", text: value, annotations: [] }] },
    ]),
    fc.record({ call_id: name, name, output: fc.string() }).map(({ output, ...call }) => [
      { type: "function_call", ...call, arguments: '{"a":1}' },
      { type: "function_call_output", call_id: call.call_id, output },
    ]),
    fc.record({ id: name, text }).map(({ id, text: thought }) => [
      {
        type: "reasoning",
        id: `rs_${id}`,
        summary: [{ type: "summary_text", text: thought }],
        encrypted_content: "gAAAA",
      },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "so", annotations: [] }] },
    ]),
  ),
  { minLength: 1, maxLength: 5 },
);

test("a request that is read and printed in the same format is the same", () => {
  const settings = fc.record(
    {
      instructions: text,
      max_output_tokens: fc.integer({ min: 16, max: 9000 }),
      temperature: fc.constantFrom(0, 0.5, 1),
      top_p: fc.constantFrom(0.1, 1),
      parallel_tool_calls: fc.boolean(),
      tool_choice: fc.constantFrom("auto", "none", "required", { type: "function", name: "f" }),
      text: fc.constantFrom(
        { format: { type: "json_object" } },
        { format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: true } },
      ),
      metadata: fc.constant({ team: "a" }),
      service_tier: fc.constant("flex"),
    },
    { requiredKeys: [] },
  );
  const tools = [
    { type: "function", name: "f", description: "d", parameters: { type: "object", properties: {} }, strict: true },
    { type: "function", name: "g", parameters: { type: "object", properties: {} }, strict: false },
  ];
  assertProperty(
    fc.property(items, settings, (rows, more) => {
      // Neighbours of one role become one turn, so the printer writes one message for them.
      const input = rows
        .flat()
        .filter((item, at, all) => at === 0 || !(item.type === "message" && all[at - 1]?.type === "message"));
      const given = { model: "gpt-9", store: false, stream: true, tools, ...more, input };
      const losses = new Losses();
      assert.deepEqual(printRequest(given as JsonObject, losses), plain(given));
      assert.deepEqual(losses.names, []);
    }),
    SEED,
  );
});
