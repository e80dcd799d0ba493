/**
 * Every cell of the matrix of client formats and providers: the official client of a format asks, whole
 * and streamed, the strict vendor answers in the format that the cell translates to.
 */
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { call } from "../../support/clients/http.ts";
import {
  LLM_CLIENTS,
  type Chat,
  type LlmClient,
  type Question,
  type Reply,
} from "../../support/clients/llm-clients.ts";
import { CODING_AGENTS } from "../../support/fixtures/coding-agents.ts";
import { INEXPRESSIBLE } from "../../support/fixtures/inexpressible.ts";
import { ODD_REQUESTS } from "../../support/fixtures/odd-requests.ts";
import { ROWS, startMatrix, type Matrix, type Row, type Wire } from "../../support/gateway/llm-matrix.ts";
import { prove } from "../../support/proofs/prove.ts";
import type { OpenAiAnswer } from "../../support/servers/llm/openai-answers.ts";
import { findForeignFault, seenBy, setAnswer, type SeenCall } from "../../support/servers/llm/vendors.ts";

const PIXEL = "iVBORw0KGgo=";
const SEALED = "c2lnbmVkLWJ5LXRoZS12ZW5kb3I=";
const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const CALLS = [
  { id: "call_1", name: "weather", arguments: '{"city":"Rome","days":[1,2]}' },
  { id: "call_2", name: "time", arguments: "{}" },
];

/** One cell, in one way of answering. */
class Cell {
  readonly client: LlmClient;
  readonly row: Row;
  readonly wire: Wire | undefined;
  readonly #matrix: Matrix;
  readonly #isStreamed: boolean;

  constructor(client: LlmClient, row: Row, { matrix, isStreamed }: { matrix: Matrix; isStreamed: boolean }) {
    this.client = client;
    this.row = row;
    const wire = row.wires[client.name];
    this.wire = wire === "other" ? undefined : wire;
    this.#matrix = matrix;
    this.#isStreamed = isStreamed;
  }

  open(): Chat {
    return this.client.open(`${this.#matrix.gateway.url()}/${this.row.name}`, this.row.model, this.#isStreamed);
  }

  set(answer: OpenAiAnswer): void {
    setAnswer(this.#matrix.vendors, answer, this.row.model);
  }

  ask(answer: OpenAiAnswer, question: Question): Promise<Reply> {
    this.set(answer);
    return this.open().ask(question);
  }

  get seen(): number {
    return seenBy(this.#matrix.vendors[this.row.vendor]).count;
  }

  /** Returns the newest request, which has reached the right path and is in order. */
  sent(): SeenCall {
    const { last } = seenBy(this.#matrix.vendors[this.row.vendor]);
    const { wire = "Completions" } = this;
    assert.ok(last !== undefined, "nothing reached the vendor");
    const { path } = last;
    assert.ok(path.startsWith(this.row.paths[wire] ?? "?"), `called ${path}`);
    assert.equal(findForeignFault(last), undefined);
    return last;
  }

  /** Returns the body of the newest request as text. */
  sentText(): string {
    return JSON.stringify(this.sent().body);
  }
}

interface Case {
  readonly name: string;
  run(cell: Cell): Promise<void>;
}

const CASES: readonly Case[] = [
  {
    name: "a text with its usage",
    async run(cell) {
      const said = await cell.ask({ text: "You said: hällo ☂" }, { text: "hällo ☂" });
      assert.deepEqual([said.text, said.stop], ["You said: hällo ☂", cell.client.stops.end]);
      assert.deepEqual([said.inputTokens, said.outputTokens], usageOf(cell));
      assert.ok(cell.sentText().includes("hällo ☂"));
    },
  },
  {
    name: "parallel calls, and their results",
    async run(cell) {
      cell.set({ text: "I look.", calls: CALLS });
      const chat = cell.open();
      const tools = ["weather", "time"];
      const asked = await chat.ask({ text: "Weather and time?", tools });
      assert.deepEqual([asked.text, asked.stop], ["I look.", cell.client.stops.calls]);
      assert.deepEqual(
        asked.calls.map((call) => [call.name, call.arguments]),
        CALLS.map((call) => [call.name, JSON.parse(call.arguments)]),
      );
      // Google's own calls have no identifiers.
      const isNative = cell.client.name === "Gemini" && cell.wire === "Gemini";
      if (!isNative) assert.equal(new Set(asked.calls.map(({ id }) => id)).size, CALLS.length, "calls are told apart");
      cell.set({ text: "Sunny." });
      // The strict vendor refuses results that do not belong to their calls.
      const told = await chat.answerCalls({ text: "", tools });
      assert.deepEqual([told.text, told.stop], ["Sunny.", cell.client.stops.end]);
      assert.ok(cell.sentText().includes("Rome"));
    },
  },
  {
    name: "the call of a tool whose name the provider does not allow",
    async run(cell) {
      const isSame = cell.client.name === cell.wire;
      const name = isSame ? "weather" : "a.tool:with".padEnd(80, "_signs");
      const tools = [name];
      await cell.ask({ text: "None." }, { text: "?", tools });
      // What is left of the name is told by the request.
      const sent = isSame ? name : (/"name":"([^"]*a[._]tool[^"]*)"/.exec(cell.sentText())?.[1] ?? "nothing");
      const asked = await cell.ask({ calls: [{ id: "call_1", name: sent, arguments: "{}" }] }, { text: "?", tools });
      assert.deepEqual(
        asked.calls.map((call) => call.name),
        tools,
      );
    },
  },
  {
    name: "an image",
    async run(cell) {
      const seen = await cell.ask({ text: "A pixel." }, { text: "What is this?", image: PIXEL });
      assert.equal(seen.text, "A pixel.");
      assert.ok(cell.sentText().includes(PIXEL));
    },
  },
  {
    name: "structured output",
    async run(cell) {
      const placed = await cell.ask({ text: '{"city":"Rome"}' }, { text: "Where?", schema: SCHEMA });
      assert.equal(placed.text, '{"city":"Rome"}');
      assert.match(cell.sentText(), /\bcity\b/, "the schema reaches the vendor");
    },
  },
  {
    name: "reasoning that is replayed with its signature",
    async run(cell) {
      const reasoning = { text: "I should look.", sealed: SEALED };
      cell.set({ reasoning, calls: CALLS });
      const chat = cell.open();
      const question = { text: "Weather?", tools: ["weather", "time"], isThinking: true, maxTokens: 4000 };
      const asked = await chat.ask(question);
      // The helper of the OpenAI client keeps the last piece of a member that it does not know.
      assert.ok(asked.thoughts !== "" && reasoning.text.endsWith(asked.thoughts), `thoughts: ${asked.thoughts}`);
      assert.equal(asked.calls.length, 2);
      cell.set({ text: "Sunny." });
      assert.equal((await chat.answerCalls(question)).text, "Sunny.");
      // Chat completions have signatures in front of Google's own models alone.
      const { vendor, model } = cell.row;
      const isSigned = cell.wire !== "Completions" || (vendor !== "openai" && model.startsWith("gemini"));
      if (isSigned) assert.ok(cell.sentText().includes(SEALED), "the signature goes back to its vendor");
    },
  },
  {
    name: "a refusal",
    async run(cell) {
      const { wire, client } = cell;
      const refused = await cell.ask({ refusal: "I cannot help." }, { text: "?" });
      const isOpenAi = wire === "Completions" || wire === "Responses";
      if (wire !== "Gemini") assert.equal(refused.text + refused.refusal, "I cannot help.");
      // OpenAI ends a refusal like any other answer, and marks its text.
      const isMarked = isOpenAi && (client.name === "Completions" || client.name === "Responses");
      if (isMarked) assert.equal(refused.refusal, "I cannot help.");
      const isPlain = isMarked || (wire === "Completions" && (client.name === "Messages" || client.name === "Gemini"));
      assert.equal(refused.stop, isPlain ? client.stops.end : client.stops.refusal);
    },
  },
  {
    name: "an answer that is cut",
    async run(cell) {
      const cut = await cell.ask({ text: "Once upon", isCut: true }, { text: "A story", maxTokens: 50 });
      assert.deepEqual([cut.text, cut.stop], ["Once upon", cell.client.stops.length]);
      assert.match(cell.sentText(), /:50[,}]/, "the limit reaches the vendor");
    },
  },
  ...[400, 401, 404, 429, 500, 529].map((status) => ({
    name: `the error ${status}`,
    async run(cell: Cell) {
      const error = { status, type: "some_error", message: `refused with ${status}` };
      const failure = await cell.ask({ error }, { text: "hi" }).then(
        () => assert.fail("the client sees no error"),
        (thrown: unknown) => cell.client.errorOf(thrown),
      );
      assert.equal(failure.status, status);
      assert.ok(failure.message.includes(error.message), failure.message);
    },
  })),
];

/** Returns the tokens that the client is told; the Messages API counts cached ones apart. */
function usageOf({ wire, client }: Cell): readonly number[] {
  if (wire === "Gemini" || wire === "Converse") return [11, 7];
  const thoughts = client.name === "Gemini" && wire === "Responses" ? 3 : 0;
  return [client.name === "Messages" ? 12 : 20, 7 - thoughts];
}

/** A cell that cannot be served refuses everything with one error, and sends nothing. */
async function expectUnsupported(cell: Cell): Promise<void> {
  const before = cell.seen;
  const failure = await cell.ask({ text: "unreachable" }, { text: "hi" }).then(
    () => assert.fail("the cell is served"),
    (thrown: unknown) => cell.client.errorOf(thrown),
  );
  assert.equal(failure.status, 400);
  assert.match(failure.message, /unsupported conversion/);
  assert.equal(cell.seen, before, "nothing is sent");
}

for (const client of LLM_CLIENTS)
  for (const isStreamed of [false, true])
    prove([], `${client.name} in front of every provider, ${isStreamed ? "streamed" : "whole"}`, async (context) => {
      const matrix = await startMatrix(context);
      const failures: string[] = [];
      const attempt = async (name: string, run: () => Promise<void>): Promise<void> => {
        await run().catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
      };
      for (const row of ROWS) {
        if (row.wires[client.name] === "other") continue;
        const cell = new Cell(client, row, { matrix, isStreamed });
        if (cell.wire === undefined) await attempt(row.name, () => expectUnsupported(cell));
        else for (const { name, run } of CASES) await attempt(`${row.name}, ${name}`, () => run(cell));
      }
      assert.deepEqual(failures, []);
    });

/** The text with which a stream of each format ends well. */
const ENDS: Readonly<Record<string, RegExp>> = {
  Messages: /event: message_stop/,
  Responses: /event: response\.completed/,
  Gemini: /"finishReason":"STOP"/,
};

for (const agent of CODING_AGENTS)
  prove([], `requests of ${agent.name} pass in front of every provider`, async (context) => {
    const matrix = await startMatrix(context);
    const failures: string[] = [];
    for (const row of ROWS) {
      const wire = row.wires[agent.format];
      if (wire === undefined || wire === "other") continue;
      setAnswer(matrix.vendors, { text: "Done." }, row.model);
      const body = JSON.stringify(agent.body(row.model));
      assert.ok(body.length > 190_000, "a long request");
      const answer = await call(`${matrix.gateway.url()}/${row.name}${agent.path(row.model)}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...agent.headers },
        body,
      });
      if (answer.status !== 200 || !ENDS[agent.format]?.test(answer.body))
        failures.push(`${row.name}: ${answer.status} ${answer.body.slice(0, 300)}`);
    }
    assert.deepEqual(failures, []);
  });

for (const { name: format } of LLM_CLIENTS)
  prove([], `what clients of ${format} say in unusual ways reaches every provider in its words`, async (context) => {
    const matrix = await startMatrix(context);
    const failures: string[] = [];
    for (const { name, path, body, reaches = {} } of ODD_REQUESTS.filter((each) => each.format === format))
      for (const row of ROWS) {
        const wire = row.wires[format];
        // A format's own requests are not touched.
        if (wire === undefined || wire === "other" || wire === format) continue;
        setAnswer(matrix.vendors, { text: "Done." }, row.model);
        const answer = await call(`${matrix.gateway.url()}/${row.name}${path.replace("{model}", row.model)}`, {
          method: "POST",
          headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
          body: JSON.stringify({ ...(format === "Gemini" ? {} : { model: row.model }), ...body }),
        });
        const sent = JSON.stringify(seenBy(matrix.vendors[row.vendor]).last?.body ?? {});
        const isThere = [reaches["all"], reaches[wire]].every((expected) => expected?.test(sent) !== false);
        if (answer.status !== 200 || !isThere)
          failures.push(
            `${row.name}, ${name}: ${answer.status} ${answer.body.slice(0, 300)}, sent ${sent.slice(0, 600)}`,
          );
      }
    assert.deepEqual(failures, []);
  });

prove(
  [],
  "the tool runner of Anthropic's client works in front of providers that keep no conversations",
  async (context) => {
    const matrix = await startMatrix(context);
    const run = async ({ name: path, model }: Row): Promise<unknown> => {
      const client = new Anthropic({ apiKey: "c", baseURL: `${matrix.gateway.url()}/${path}`, maxRetries: 0 });
      setAnswer(matrix.vendors, { calls: CALLS.slice(0, 1) }, model);
      const weather = betaTool({
        name: "weather",
        description: "Tells the weather.",
        inputSchema: { type: "object", properties: { city: { type: "string" } } },
        run: () => {
          setAnswer(matrix.vendors, { text: "Sunny." }, model);
          return "21 degrees";
        },
      });
      const messages = [{ role: "user", content: "Weather?" }] as const;
      return (
        await client.beta.messages.toolRunner({ model, max_tokens: 50, messages: [...messages], tools: [weather] })
      ).content;
    };
    for (const row of ROWS) {
      const { Messages: wire } = row.wires;
      if (wire === undefined || wire === "other" || wire === "Messages") continue;
      const said = await run(row).catch(String);
      assert.deepEqual(said, [{ type: "text", text: "Sunny." }], row.name);
      const { last } = seenBy(matrix.vendors[row.vendor]);
      assert.match(JSON.stringify(last?.body), /Weather\?.*21 degrees/, `${row.name}: the whole conversation`);
    }
  },
);

/** Form of an error of the request in each format. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  Completions: /^{"error":{"message":.*"type":"invalid_request_error"/,
  Messages: /^{"type":"error","error":{"type":"invalid_request_error"/,
  Responses: /^{"error":{"message":.*"type":"invalid_request_error"/,
  Gemini: /^{"error":{"code":400,.*"status":"INVALID_ARGUMENT"/,
};

for (const { name: format } of LLM_CLIENTS)
  prove([], `what a client of ${format} asks is refused where the provider has no words for it`, async (context) => {
    const matrix = await startMatrix(context);
    const failures: string[] = [];
    for (const { name, path, body, refusedBy } of INEXPRESSIBLE.filter((each) => each.format === format))
      for (const row of ROWS) {
        if (!refusedBy.includes(row.wires[format] ?? "")) continue;
        const url = `${matrix.gateway.url()}/${row.name}${path.replace("{model}", row.model)}`;
        const answer = await call(url, {
          method: "POST",
          headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
          body: JSON.stringify({ ...(format === "Gemini" ? {} : { model: row.model }), ...body }),
        });
        const sent = seenBy(matrix.vendors[row.vendor]).count;
        if (answer.status !== 400 || sent !== 0 || REFUSED[format]?.test(answer.body) !== true)
          failures.push(`${row.name}, ${name}: ${answer.status}, ${sent} sent, ${answer.body.slice(0, 300)}`);
      }
    assert.deepEqual(failures, []);
  });
