/** Properties of the Gemini format: hostile bodies, identity of read and print, streams cut anywhere, and schemas. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addParts, type Conversation, type Part } from "../../../../src/proxy/llm/conversation/conversation.ts";
import type { AnswerEvent } from "../../../../src/proxy/llm/conversation/events.ts";
import { Losses } from "../../../../src/proxy/llm/conversation/losses.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import type { ClientSide, ProviderSide } from "../../../../src/proxy/llm/formats/chat-format.ts";
import { completions } from "../../../../src/proxy/llm/formats/completions/index.ts";
import { gemini } from "../../../../src/proxy/llm/formats/gemini/index.ts";
import { modelOf, readNativePath } from "../../../../src/proxy/llm/shared/native-path.ts";
import { printSchema } from "../../../../src/proxy/llm/formats/gemini/print-schema.ts";
import { listOf, objectOf, parseObject, type JsonObject } from "../../../../src/proxy/llm/shared/json.ts";
import { NO_LEDGER, readBody, streamFrom } from "../../../support/gateway/llm-harness.ts";
import { translateStream } from "../../../../src/proxy/llm/stream/translated-stream.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

const SEED = { seed: 13, numRuns: 300 };
const { client, provider } = gemini as { client: ClientSide; provider: ProviderSide }; // it has both sides
const READ = { toolNames: undefined, model: "m" };

/** Members that a reader looks at, so that random objects reach deeper than its first check. */
const KEYS = fc.constantFrom(
  ..."contents role parts text thought thoughtSignature functionCall functionResponse name id args response inlineData".split(
    " ",
  ),
  ..."fileData mimeType data fileUri systemInstruction tools functionDeclarations parameters generationConfig".split(
    " ",
  ),
  ..."thinkingConfig thinkingBudget candidates content finishReason index usageMetadata promptTokenCount type".split(
    " ",
  ),
  ..."promptFeedback blockReason responseSchema responseMimeType properties items anyOf __proto__ toolConfig".split(
    " ",
  ),
);
const LEAF = fc.oneof(
  fc.constantFrom(null, true, -1, 1e308, "", "user", "model", "OBJECT", "application/json"),
  fc.string(),
);
const HOSTILE = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 7 },
    LEAF,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(KEYS, tie("value")), { maxLength: 6 }).map((entries) => Object.fromEntries(entries)),
  ),
})).value;

function hostileBody(required: string): fc.Arbitrary<JsonObject> {
  const list = fc.array(
    fc.array(fc.tuple(KEYS, HOSTILE), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
  );
  return fc
    .tuple(fc.array(fc.tuple(KEYS, HOSTILE), { maxLength: 6 }), fc.oneof(list, HOSTILE))
    .map(([entries, value]) => parsed({ ...Object.fromEntries(entries), [required]: value }));
}

/** A body as the parser makes it, with a member `__proto__` of its own where there is one. */
function parsed(value: unknown): JsonObject {
  return parseObject(Buffer.from(JSON.stringify(value))) ?? {};
}

function throwsOnly(code: string, run: () => unknown): void {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof ProxyError && error.code === code, String(error));
  }
}

test("a client's body of any shape is read or refused with 400, and so is its print for another provider", () => {
  assertProperty(
    fc.property(hostileBody("contents"), (body) =>
      throwsOnly("llm_request_invalid", () => {
        gemini.parse(body, "/v1beta/models/m:generateContent");
        const conversation = client.readRequest(body, { model: "m", streaming: false, losses: new Losses() });
        for (const target of [gemini, completions])
          target.provider?.printRequest(conversation, { losses: new Losses(), tags: new Set() });
      }),
    ),
    SEED,
  );
});

test("an answer or an event of any shape is read, or the provider is blamed", () => {
  assertProperty(
    fc.property(hostileBody("candidates"), fc.array(hostileBody("candidates"), { maxLength: 4 }), (body, events) => {
      throwsOnly("llm_response_invalid", () =>
        client.printAnswer(provider.readAnswer(body, READ), { request: {}, createdAt: 0 }),
      );
      throwsOnly("llm_response_invalid", () => {
        const reader = provider.readStream(READ);
        const printer = client.printStream({ request: {}, createdAt: 0 });
        for (const event of [...events.flatMap((each) => reader.read(each, "")), ...reader.end()]) printer.print(event);
        printer.end();
      });
      provider.readError(Buffer.from(JSON.stringify(body)), 400);
    }),
    SEED,
  );
});

const WORD = fc.string({ minLength: 1, maxLength: 8 });
const NAME = fc.constantFrom("weather", "now", "search");
const SIGNATURE = fc.option(
  WORD.map((value) => ({ vendor: "google", value }) as const),
  { nil: undefined },
);

function signed<T extends object>(part: T, signature: { vendor: "google"; value: string } | undefined): T {
  return signature === undefined ? part : { ...part, signature };
}

const TEXT: fc.Arbitrary<Part> = fc
  .tuple(WORD, SIGNATURE)
  .map(([text, signature]) => signed({ kind: "text", text }, signature));
const IMAGE: fc.Arbitrary<Part> = fc.constant({
  kind: "image",
  source: { kind: "data", mediaType: "image/png", data: "aGk=" },
});

/** A round of calls with their results in any order. */
const ROUND = fc
  .tuple(
    fc.array(fc.tuple(NAME, fc.dictionary(WORD, fc.integer()), SIGNATURE), { maxLength: 4 }),
    fc.infiniteStream(fc.double({ noNaN: true })),
  )
  .map(([calls, order]) => calls.map((call) => ({ call, rank: order.next().value ?? 0 })));

const SAID: fc.Arbitrary<Part> = WORD.map((text) => ({ kind: "text", text }));
const TURNS = fc.array(fc.tuple(fc.array(fc.oneof(SAID, IMAGE), { minLength: 1, maxLength: 3 }), TEXT, ROUND), {
  minLength: 1,
  maxLength: 4,
});

function conversationOf(rounds: readonly (typeof TURNS extends fc.Arbitrary<(infer R)[]> ? R : never)[]): Conversation {
  const turns: Conversation["turns"] = [];
  let count = 0;
  for (const [user, answer, calls] of rounds) {
    addParts(turns, "user", user);
    const called = calls.map(({ call: [name, args, signature], rank }) => {
      const id = `call_${++count}`;
      return { rank, part: signed({ kind: "call", id, name, arguments: JSON.stringify(args) } as const, signature) };
    });
    addParts(turns, "assistant", [answer, ...called.map(({ part }) => part)]);
    const results = called
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ part: { id, name } }) => ({
        kind: "result" as const,
        id,
        name,
        parts: [{ kind: "text" as const, text: `of ${id}` }],
      }));
    addParts(turns, "user", results);
  }
  return {
    model: "gemini-2.5-pro",
    streaming: false,
    system: [],
    turns,
    tools: [],
    sampling: {},
    extra: { vendor: "google", fields: {} },
  };
}

/** What has to survive: texts, calls with arguments and signatures, and each result with the call that it answers. */
function meaningOf({ turns }: Conversation): unknown {
  const names = new Map<string, number>();
  return turns.flatMap(({ role, parts }) =>
    parts
      .map((part) => {
        if (part.kind === "text") return part.text === " " ? "" : [role, part.text, part.signature];
        if (part.kind === "image") return [role, part.source];
        if (part.kind === "call") {
          names.set(part.id, names.size);
          return [role, part.name, JSON.parse(part.arguments), part.signature];
        }
        if (part.kind === "result") return [role, names.get(part.id), part.parts];
        return [part.kind];
      })
      .filter((item) => item !== "")
      // Results are put in the order of their calls, in front of what the user says.
      .toSorted(
        (a, b) =>
          Number(typeof b[1] === "number") - Number(typeof a[1] === "number") ||
          (typeof a[1] === "number" ? a[1] - Number(b[1]) : 0),
      ),
  );
}

test("a conversation that is printed and read again keeps texts, calls, signatures and the pairs of results", () => {
  assertProperty(
    fc.property(TURNS, (rounds) => {
      const conversation = conversationOf(rounds);
      const { body } = provider.printRequest(conversation, { losses: new Losses(), tags: new Set() });
      const again = client.readRequest(body, { model: "m", streaming: false, losses: new Losses() });
      assert.deepEqual(meaningOf(again), meaningOf(conversation));
    }),
    SEED,
  );
});

const PIECES = fc.array(
  fc.oneof(
    fc.record({ text: fc.string() }),
    fc.record({ text: fc.string(), thought: fc.constant(true) }),
    fc.record({ functionCall: fc.record({ name: NAME, args: fc.dictionary(WORD, fc.string()) }) }),
    fc.record({ text: WORD, thoughtSignature: WORD }),
  ),
  { maxLength: 12 },
);

function eventOf(parts: readonly object[], more: object = {}): JsonObject {
  return parsed({
    candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
    responseId: "r",
    modelVersion: "m",
  });
}

function textOf(events: readonly JsonObject[]): string {
  return events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join("");
}

async function translated(chunks: readonly Buffer[]): Promise<string> {
  const reader = provider.readStream(READ);
  const printer = (completions.client as ClientSide).printStream({ request: {}, createdAt: 0 }); // it has both sides
  const body = translateStream(
    streamFrom(chunks),
    { ledger: NO_LEDGER, maxEventBytes: 1_000_000 },
    { reader, printer },
  );
  const { text, error } = await readBody(body);
  assert.equal(error, undefined);
  return text;
}

test("a stream that is cut at any byte gives the same events", async () => {
  const property = fc.asyncProperty(PIECES, fc.array(fc.nat(4000), { maxLength: 8 }), async (parts, cuts) => {
    const events = [...parts.map((part) => eventOf([part])), eventOf([], { finishReason: "STOP" })];
    const bytes = Buffer.from(textOf(events));
    const at = [0, ...cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b), bytes.length];
    const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
    assert.equal(await translated(chunks), await translated([bytes]));
  });
  await assertProperty(property, { numRuns: 100 });
});

function joined(events: readonly AnswerEvent[]): unknown[] {
  const parts: { kind: string; text: string; part: number; name: string; signature: unknown }[] = [];
  for (const event of events)
    if (event.kind === "open") {
      const { opened, part } = event;
      const name = "name" in opened ? opened.name : "";
      const signature = opened.kind === "call" ? opened.signature : undefined;
      parts.push({ kind: opened.kind, text: "", part, name, signature });
    } else if (event.kind === "delta" || event.kind === "signature") {
      const place = parts.find(({ part }) => part === event.part);
      assert.ok(place, "a part is open");
      if (event.kind === "delta") place.text += event.text;
      else place.signature = event.signature;
    }
  return parts.map(({ kind, text, name, signature }) => ({ kind, text, name, signature }));
}

test("an answer in one piece has the parts of the same answer in a stream", () => {
  assertProperty(
    fc.property(PIECES, (pieces) => {
      const reader = provider.readStream(READ);
      const events = [...pieces.map((part) => eventOf([part])), eventOf([], { finishReason: "STOP" })];
      const streamed = joined([...events.flatMap((event) => reader.read(event, "")), ...reader.end()]);
      const [choice] = provider.readAnswer(eventOf(pieces, { finishReason: "STOP" }), READ).choices;
      const whole = choice?.parts.map((part) => ({
        kind: part.kind,
        text: part.kind === "call" ? part.arguments : "text" in part ? part.text : "",
        name: part.kind === "call" ? part.name : "",
        signature: "signature" in part ? part.signature : undefined,
      }));
      const isShown = (part: unknown): boolean => (part as { text: string; signature: unknown }).text !== "";
      assert.deepEqual(streamed.filter(isShown), whole?.filter(isShown));
    }),
    SEED,
  );
});

const KEYWORDS: ReadonlySet<string> = new Set(
  (
    "title description pattern default example minimum maximum minItems maxItems minLength maxLength minProperties " +
    "maxProperties propertyOrdering format required nullable type enum properties items anyOf $ref $defs"
  ).split(" "),
);

function checkKeywords(schema: JsonObject): void {
  for (const [name, value] of Object.entries(schema)) {
    assert.ok(KEYWORDS.has(name), `${name} is not known to the API`);
    const inner =
      name === "properties" || name === "$defs"
        ? Object.values(value as JsonObject)
        : name === "anyOf"
          ? (value as JsonObject[])
          : name === "items"
            ? [value]
            : [];
    for (const each of inner) checkKeywords(each as JsonObject);
  }
}

const SCHEMA = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<JsonObject>(
      {},
      { type: "string", format: "uri" },
      { type: ["integer", "null"] },
      { const: "a" },
      { enum: ["a", null] },
    ),
    fc
      .constantFrom("#", "#/$defs/a", "#/$defs/b", "#/$defs/c", "#/nowhere", "https://x.test/")
      .map(($ref): JsonObject => ({ $ref })),
    fc
      .dictionary(fc.constantFrom("a", "b", "__proto__"), tie("schema"))
      .map((properties): JsonObject => ({ type: "object", properties, additionalProperties: false })),
    fc.array(tie("schema"), { maxLength: 3 }).map((allOf): JsonObject => ({ allOf, description: "d" })),
    fc.array(tie("schema"), { maxLength: 3 }).map((oneOf): JsonObject => ({ oneOf })),
    tie("schema").map((items): JsonObject => ({ type: "array", items })),
  ),
})).schema;

test("a schema with references of any form is printed in bounded size with the keywords of the API alone", () => {
  assertProperty(
    fc.property(SCHEMA, fc.dictionary(fc.constantFrom("a", "b", "c"), SCHEMA), (schema, $defs) => {
      const printed = printSchema(parsed({ ...schema, $defs }));
      checkKeywords(printed);
      assert.ok(JSON.stringify(printed).length < 2_000_000);
    }),
    SEED,
  );
});

test("a schema that is an option of itself ends long before the stack does", () => {
  let printed = objectOf(printSchema({ anyOf: [{ type: "string" }, { allOf: [{ $ref: "#" }] }] }));
  let levels = 0;
  for (; printed !== undefined; levels++) printed = objectOf(listOf(printed["anyOf"])[1]);
  assert.ok(levels > 10 && levels < 300, `${levels} levels`);
});

test("references that double at each level, or that follow each other in a long chain, do not exhaust the gateway", () => {
  const $defs: JsonObject = {};
  for (let at = 0; at < 5000; at++) {
    const $ref = `#/$defs/d${at + 1}`;
    $defs[`d${at}`] = { type: "object", properties: { left: { $ref }, right: { $ref } } };
  }
  const schema: JsonObject = { $ref: "#/$defs/d0", $defs };
  assert.ok(JSON.stringify(printSchema(schema)).length < 4_000_000);
  assert.ok(JSON.stringify(printSchema({ allOf: [{ $ref: "#" }], $defs })).length > 0);
});

test("a path names the model, with its collection when that is not models", () => {
  const read = (path: string): unknown => readNativePath(path);
  assert.deepEqual(read("/v1beta/models/gemini-2.5-pro:generateContent"), {
    model: "gemini-2.5-pro",
    method: "generateContent",
  });
  assert.deepEqual(read("/v1beta/tunedModels/mine:streamGenerateContent"), {
    model: "tunedModels/mine",
    method: "streamGenerateContent",
  });
  assert.deepEqual(read("/v1/projects/p/locations/l/publishers/google/models/g%40001:countTokens"), {
    model: "g@001",
    method: "countTokens",
  });
  for (const model of ["meta/llama-4", "anthropic.claude-v1:0", "accounts/a/models/llama"])
    assert.deepEqual(read(`/some/models/v1beta/models/${model}:generateContent`), { model, method: "generateContent" });
  for (const path of [
    "/v1beta/models/x",
    "/v1/chat/completions",
    "/v1beta/models/:generateContent",
    "/v1beta/models/m:generate/Content",
  ])
    assert.equal(read(path), undefined, path);
  // What stands for no text stays as it is, and is refused as a name.
  assert.deepEqual(read("/v1beta/models/%zz:generateContent"), { model: "%zz", method: "generateContent" });
  assert.throws(() => modelOf("/v1beta/models/%zz:generateContent", "m"), { code: "llm_model_invalid" });
});

test("a path of Gemini outranks the body, and a body of Anthropic outranks its path", () => {
  assert.equal(modelOf("/v1beta/models/meta/llama-4:generateContent", "other"), "meta/llama-4");
  assert.equal(modelOf("/v1/publishers/anthropic/models/c@1:rawPredict", undefined), "c@1");
  assert.equal(modelOf("/v1/publishers/anthropic/models/count-tokens:rawPredict", "claude"), "claude");
  assert.equal(modelOf("/v1/chat/completions", "m"), "m");
});
