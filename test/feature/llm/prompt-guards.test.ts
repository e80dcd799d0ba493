/** Prompt guards through real sockets: patterns, scopes, responses, and what reaches provider and client. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { contentsOf, GUARD_PLACES, said, startGuarded, streamed, type Guarded } from "../../support/gateway/guarded.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { call } from "../../support/clients/http.ts";
import { createMeasured } from "../../support/gateway/measured.ts";
import { prove } from "../../support/proofs/prove.ts";

interface Chat {
  readonly messages: readonly { readonly content: unknown }[];
}

/** Returns the messages of the newest request that reached the provider. */
function messagesOf({ received }: Guarded): Chat["messages"] {
  const last = received.at(-1);
  assert.ok(last, "nothing reached the provider");
  return (last.body as Chat).messages;
}

const SECRET = "my number is 123-45-6789";
const fields = (place: (typeof GUARD_PLACES)[number], ...names: readonly string[]): string[] =>
  names.map((name) => place.field(name));

for (const place of GUARD_PLACES) {
  prove(
    fields(place, "request[].regex.matches[]", "request[].regex.builtins[]"),
    "patterns and then built-ins mask the prompt before it reaches the provider",
    async (context) => {
      const guard = `{request: [{regex: {matches: ["my \\\\w+"], builtins: [Ssn]}}]}`;
      const guarded = await startGuarded(context, guard, { place });
      assert.equal((await guarded.ask(SECRET)).status, 200);
      assert.equal(messagesOf(guarded)[0]?.content, "<masked> is <SSN>");
    },
  );

  prove(
    fields(place, "request[].regex.action", "request[].response.message", "request[].response.statusCode"),
    "a prompt that matches is answered with the configured response, and nothing is sent",
    async (context) => {
      const guard =
        "{request: [{regex: {builtins: [Ssn], action: Reject}, response: {message: no numbers, statusCode: 451}}]}";
      const { ask, received } = await startGuarded(context, guard, { place });
      const { status, body, headers } = await ask(SECRET);
      assert.deepEqual([status, body, headers["content-type"]], [451, "no numbers", "text/plain"]);
      assert.equal((await ask("harmless")).status, 200);
      assert.equal(received.length, 1);
    },
  );

  prove(
    fields(place, "request[].response.headers[].name", "request[].response.headers[].value"),
    "a rejection has the configured headers, which win over the content type",
    async (context) => {
      const headers = '[{name: Content-Type, value: text/markdown}, {name: X-Why, value: "a number"}]';
      const guard = `{request: [{regex: {builtins: [Ssn], action: Reject}, response: {headers: ${headers}}}]}`;
      const { ask } = await startGuarded(context, guard, { place });
      const answer = await ask(SECRET);
      assert.deepEqual([answer.headers["content-type"], answer.headers["x-why"]], ["text/markdown", "a number"]);
      assert.deepEqual([answer.status, answer.body], [403, "The request was rejected due to inappropriate content."]);
    },
  );

  prove(fields(place, "request[].scope[]"), "a guard looks only at its scope", async (context) => {
    const guard = "{request: [{regex: {builtins: [Ssn]}, scope: [ToolOutput]}]}";
    const guarded = await startGuarded(context, guard, { place });
    const tool = { role: "tool", tool_call_id: "1", content: SECRET };
    await guarded.chat({ messages: [{ role: "user", content: SECRET }, tool] });
    assert.deepEqual(messagesOf(guarded), [
      { role: "user", content: SECRET },
      { ...tool, content: "my number is <SSN>" },
    ]);
  });

  prove(
    fields(place, "response[].regex.matches[]", "response[].regex.builtins[]"),
    "all choices of an answer are masked",
    async (context) => {
      const guard = `{response: [{regex: {matches: ["my \\\\w+"], builtins: [Ssn]}}]}`;
      const { ask } = await startGuarded(context, guard, { place, answer: said("plain", SECRET) });
      const answer = await ask("hi");
      assert.deepEqual(contentsOf(answer), ["plain", "<masked> is <SSN>"]);
    },
  );

  prove(
    fields(
      place,
      "response[].regex.action",
      "response[].response.message",
      "response[].response.statusCode",
      "response[].response.headers[].name",
      "response[].response.headers[].value",
    ),
    "an answer that matches in any choice is replaced by the configured response",
    async (context) => {
      const response = "{message: not for you, statusCode: 200, headers: [{name: x-guard, value: acted}]}";
      const guard = `{response: [{regex: {builtins: [Ssn], action: Reject}, response: ${response}}]}`;
      const { ask } = await startGuarded(context, guard, { place, answer: said("plain", SECRET) });
      const { status, body, headers } = await ask("hi");
      assert.deepEqual([status, body, headers["x-guard"]], [200, "not for you", "acted"]);
    },
  );

  prove(fields(place, "response[].scope[]"), "a guard of answers looks only at its scope", async (context) => {
    const guard = "{response: [{regex: {builtins: [Ssn], action: Reject}, scope: [ToolInput]}]}";
    const passed = await startGuarded(context, guard, { place, answer: said(SECRET) });
    assert.deepEqual(contentsOf(await passed.ask("hi")), [SECRET]);
    const called = { name: "f", arguments: JSON.stringify({ deep: [SECRET] }) };
    const message = { role: "assistant", content: null, tool_calls: [{ id: "1", type: "function", function: called }] };
    const answer = { model: "m", choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
    const rejected = await startGuarded(context, guard, { place, answer });
    const { status, body } = await rejected.ask("hi");
    assert.deepEqual([status, body], [403, "The response was rejected due to inappropriate content."]);
  });

  prove(
    fields(place, "streaming"),
    "a stream is checked when it is asked for, and then ends with an error event",
    async (context) => {
      const answer = streamed("my number ", "is 123-4", "5-6789", " and so on");
      const guard = "{streaming: Enabled, response: [{regex: {builtins: [Ssn], action: Reject}}]}";
      const { chat } = await startGuarded(context, guard, { place, answer });
      const { status, body } = await chat({ stream: true, messages: [{ role: "user", content: "hi" }] });
      const message = "The response was rejected due to inappropriate content.";
      const error = { type: "guardrail_blocked", code: "guardrail_intervention", message };
      assert.deepEqual([status, body], [200, `data: ${JSON.stringify({ error })}\n\n`]);
    },
  );
}

interface TextCase {
  readonly name: string;
  readonly message: Readonly<Record<string, unknown>>;
}

/** Places of a request in which a number may hide; a guard of all scopes finds it in each. */
const PLACES: readonly TextCase[] = [
  { name: "a text", message: { role: "user", content: SECRET } },
  {
    name: "parts",
    message: {
      role: "user",
      content: [
        { type: "text", text: "my" },
        { type: "text", text: "123-45-6789" },
      ],
    },
  },
  { name: "a system text", message: { role: "system", content: SECRET } },
  { name: "a developer text", message: { role: "developer", content: [{ type: "text", text: SECRET }] } },
  { name: "a refusal", message: { role: "assistant", content: null, refusal: SECRET } },
  {
    name: "arguments of a call",
    message: {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: '{"a":["123\\u002d45-6789"]}' } }],
    },
  },
  { name: "the result of a tool", message: { role: "tool", tool_call_id: "1", content: SECRET } },
  { name: "reasoning", message: { role: "assistant", content: "x", reasoning_content: SECRET } },
];

const ALL = "scope: [SystemPrompt, Messages, ToolOutput, ToolInput]";

prove([], "a guard finds a number wherever it stands in a request, and masks or rejects", async (context) => {
  const mask = await startGuarded(context, `{request: [{regex: {builtins: [Ssn]}, ${ALL}}]}`);
  const reject = await startGuarded(context, `{request: [{regex: {builtins: [Ssn], action: Reject}, ${ALL}}]}`);
  const audit = await startGuarded(context, `{request: [{regex: {builtins: [Ssn], action: Audit}, ${ALL}}]}`);
  for (const { name, message } of PLACES) {
    const body = { messages: [message] };
    assert.equal((await mask.chat(body)).status, 200, name);
    const sent = JSON.stringify(mask.received.at(-1)?.body);
    assert.ok(sent.includes("<SSN>") && !sent.includes("6789"), `${name}: ${sent}`);
    assert.equal((await reject.chat(body)).status, 403, name);
    assert.equal((await audit.chat(body)).status, 200, name);
    assert.deepEqual(messagesOf(audit), [message], name);
  }
  assert.equal(reject.received.length, 0);
});

interface ClientCase {
  readonly path: string;
  readonly body: (text: string) => Readonly<Record<string, unknown>>;
}

/** A message of a user in each format that clients speak. */
const CLIENTS: Readonly<Record<string, ClientCase>> = {
  Completions: {
    path: "/v1/chat/completions",
    body: (content) => ({ model: "m", messages: [{ role: "user", content }] }),
  },
  Messages: {
    path: "/v1/messages",
    body: (text) => ({ model: "m", max_tokens: 9, messages: [{ role: "user", content: [{ type: "text", text }] }] }),
  },
  Responses: { path: "/v1/responses", body: (input) => ({ model: "m", input }) },
  Gemini: {
    path: "/v1beta/models/m:generateContent",
    body: (text) => ({ contents: [{ role: "user", parts: [{ text }] }] }),
  },
};

prove([], "prompts and answers of every client format are masked and rejected", async (context) => {
  for (const [provider, answer] of [
    [COMPLETIONS_ONLY, said(SECRET)],
    ["llme: {}", ANTHROPIC_ANSWER],
  ] as const) {
    const options = { provider, answer };
    const mask = await startGuarded(context, guardBoth("Mask"), options);
    const reject = await startGuarded(context, "{response: [{regex: {builtins: [Ssn], action: Reject}}]}", options);
    for (const [name, { path, body }] of Object.entries(CLIENTS)) {
      const masked = await mask.send(path, body(SECRET));
      assert.equal(masked.status, 200, `${name}: ${masked.body}`);
      const seen = [JSON.stringify(mask.received.at(-1)?.body), masked.body];
      for (const text of seen) assert.ok(text.includes("<SSN>") && !text.includes("6789"), `${name}: ${text}`);
      const rejected = await reject.send(path, body("hi"));
      const message = "The response was rejected due to inappropriate content.";
      assert.deepEqual([rejected.status, rejected.body], [403, message], name);
    }
  }
});

function guardBoth(action: string): string {
  const guard = `[{regex: {builtins: [Ssn], action: ${action}}}]`;
  return `{request: ${guard}, response: ${guard}}`;
}

const COMPLETIONS_ONLY = "custom: {formats: [{type: Completions}]}";
const ANTHROPIC_ANSWER = {
  id: "1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: SECRET }],
  stop_reason: "end_turn",
  usage: { input_tokens: 1, output_tokens: 1 },
};

prove([], "embeddings are no conversation, and no guard looks at them", async (context) => {
  const { send, received } = await startGuarded(context, guardBoth("Reject"));
  assert.equal((await send("/v1/embeddings", { model: "m", input: SECRET })).status, 200);
  assert.deepEqual(received[0]?.body, { model: "m", input: SECRET });
});

prove([], "Responses over WebSocket do not get around guards that look at requests alone", async (context) => {
  const { gateway, received } = await startGuarded(context, "{request: [{regex: {builtins: [Ssn]}}]}");
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  assert.equal((await call(`${gateway.url()}/v1/responses`, { headers })).status, 426);
  assert.equal(received.length, 0);
});

prove([], "the page about guards shows what is served", async (context) => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/prompt-guards.md"), "utf8");
  const [, yaml = ""] = /^```yaml\n(.*?)^```$/ms.exec(page) ?? [];
  const answer = said("my number is 123-45-6789");
  const guarded = await startGuarded(context, "", { answer, page: yaml });
  const { status, body } = await guarded.ask("Mail bob@example.com about project Falcon");
  assert.equal(messagesOf(guarded)[0]?.content, "Mail <EMAIL_ADDRESS> about <masked>");
  assert.deepEqual([status, body], [451, "This answer is withheld."]);
});

prove([], "a signed text is read, and rejected where a mask would change it", async (context) => {
  const { chat } = await startGuarded(context, "{request: [{regex: {builtins: [Ssn]}}]}");
  const block = (thinking: string) => ({ type: "thinking", thinking, signature: "s" });
  const message = (thinking: string) => ({ role: "assistant", content: "x", thinking_blocks: [block(thinking)] });
  assert.equal((await chat({ messages: [message("harmless")] })).status, 200);
  assert.equal((await chat({ messages: [message(SECRET)] })).status, 403);
});

prove([], "what guards did, or with Audit would have done, is in the metric and in the log", async (context) => {
  const rows: readonly (readonly [phase: "request" | "response", action: string, outcome: string, logged: unknown])[] =
    [
      ["request", "Mask", "Mask", "mask"],
      ["request", "Reject", "Reject", "reject"],
      ["request", "Audit", "AuditMask", "would_mask"],
      ["response", "Mask", "Mask", "mask"],
      ["response", "Reject", "Reject", "reject"],
      ["response", "Audit", "AuditMask", "would_mask"],
    ];
  for (const [phase, action, outcome, logged] of rows) {
    const measured = createMeasured();
    const lines = keepLines(context);
    const telemetry = { accessLog: lines.accessLog, metrics: measured.metrics };
    const guard = `{${phase}: [{regex: {builtins: [Ssn], action: ${action}}}]}`;
    const { ask } = await startGuarded(context, guard, { answer: said(SECRET), telemetry });
    await ask(SECRET);
    const line = await lines.nextFields();
    assert.deepEqual(
      [line["gwp.guardrail.action"], line["gwp.guardrail.kind"], line["gwp.guardrail.phase"]],
      [logged, "regex", phase],
    );
    assert.equal(line["reason"], action === "Reject" ? "Guardrail" : undefined);
    const label = phase === "request" ? "Request" : "Response";
    await measured.counted("guardrail_checks_total", 1, { phase: label, action: outcome, route: "default/ai" });
  }
});
