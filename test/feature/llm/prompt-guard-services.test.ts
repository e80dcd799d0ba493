/** Prompt guards that ask a service, through real sockets: what the service is sent, and what its answers do. */
import assert from "node:assert/strict";
import { parseJson } from "../../support/clients/http.ts";
import { routePolicy, staticBackend } from "../../support/gateway/gateway.ts";
import {
  contentsOf,
  GUARD_PLACES,
  lastMessages,
  said,
  startGuarded,
  type Guarded,
} from "../../support/gateway/guarded.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { BAD_ANSWERS, newest, startGuardService, type GuardService } from "../../support/servers/guard-service.ts";

type Place = (typeof GUARD_PLACES)[number];

const fields = (place: Place, ...names: readonly string[]): string[] => names.map((name) => place.field(name));

const HOOK = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: hook, port: 80}";

interface WebhookOptions {
  readonly phase?: string;
  readonly members?: string;
  readonly answer?: ReturnType<typeof said>;
  readonly objects?: readonly string[];
}

/** @param members of `webhook` besides the reference, as flow YAML */
async function withWebhook(
  context: ProofContext,
  place: Place,
  { phase = "request", members = "", answer = said("fine"), objects = [] }: WebhookOptions = {},
): Promise<{ guarded: Guarded; service: GuardService }> {
  const service = await startGuardService(context);
  const guard = `{${phase}: [{webhook: {${HOOK}${members}}}]}`;
  const all = [staticBackend("hook", service.port), ...objects];
  return { guarded: await startGuarded(context, guard, { place, answer, objects: all }), service };
}

const CHAT = {
  messages: [
    { role: "system", content: "be kind" },
    {
      role: "user",
      content: [
        { type: "text", text: "one" },
        { type: "text", text: "two" },
      ],
    },
  ],
};

for (const place of GUARD_PLACES) {
  prove(
    fields(place, ...["group", "kind", "name"].map((name) => `request[].webhook.backendRef.${name}`)),
    "a webhook is sent the flat messages of a prompt, and passes, masks or rejects",
    async (context) => {
      const { guarded, service } = await withWebhook(context, place);
      assert.equal((await guarded.chat(CHAT)).status, 200);
      const { method, path, headers, body } = newest(service);
      assert.deepEqual([method, path, headers["content-type"]], ["POST", "/request", "application/json"]);
      const flat = [
        { role: "system", content: "be kind" },
        { role: "user", content: "one two" },
      ];
      assert.deepEqual(body, { body: { messages: flat } });
      assert.deepEqual(lastMessages(guarded), CHAT.messages);

      const masked = [
        { role: "system", content: "be kind" },
        { role: "user", content: "***" },
      ];
      service.answer = { body: { action: { body: { messages: masked }, reason: "why" } } };
      await guarded.chat(CHAT);
      assert.deepEqual(lastMessages(guarded), masked);

      service.answer = { status: 500, body: { action: { body: "go away", status_code: 418 } } };
      const { status, body: text } = await guarded.chat(CHAT);
      assert.deepEqual([status, text, guarded.received.length], [418, "go away", 2]);
    },
  );

  prove(
    fields(place, ...["group", "kind", "name"].map((name) => `response[].webhook.backendRef.${name}`)),
    "a webhook is sent the choices of an answer, and passes, masks or rejects",
    async (context) => {
      const { guarded, service } = await withWebhook(context, place, { phase: "response", answer: said("a", "b") });
      assert.deepEqual(contentsOf(await guarded.ask("hi")), ["a", "b"]);
      const choices = (...texts: string[]) => texts.map((content) => ({ message: { role: "assistant", content } }));
      assert.equal(newest(service).path, "/response");
      assert.deepEqual(newest(service).body, { body: { choices: choices("a", "b") } });
      service.answer = { body: { action: { body: { choices: choices("a", "***") } } } };
      assert.deepEqual(contentsOf(await guarded.ask("hi")), ["a", "***"]);
      service.answer = { body: { action: { body: "go away", status_code: 451 } } };
      const { status, body } = await guarded.ask("hi");
      assert.deepEqual([status, body], [451, "go away"]);
    },
  );

  for (const phase of ["request", "response"])
    prove(
      fields(place, `${phase}[].webhook.failureMode`),
      `a webhook that fails closes or opens the ${phase}`,
      async (context) => {
        const closed = await withWebhook(context, place, { phase, members: ", failureMode: FailClosed" });
        const open = await withWebhook(context, place, { phase, members: ", failureMode: FailOpen" });
        for (const answer of BAD_ANSWERS) {
          closed.service.answer = answer;
          open.service.answer = answer;
          const refused = await closed.guarded.ask("hi");
          assert.equal(refused.status, 503, JSON.stringify(answer));
          assert.deepEqual(parseJson(refused.body), GUARD_DOWN);
          assert.equal((await open.guarded.ask("hi")).status, 200, JSON.stringify(answer));
        }
      },
    );

  for (const phase of ["request", "response"])
    prove(
      fields(place, `${phase}[].webhook.action`),
      `an audited webhook is asked and has no say in the ${phase}`,
      async (context) => {
        const { guarded, service } = await withWebhook(context, place, { phase, members: ", action: Audit" });
        service.answer = { body: { action: { body: "go away", status_code: 418 } } };
        assert.deepEqual(contentsOf(await guarded.ask("hi")), ["fine"]);
        assert.equal(service.received.length, 1);
      },
    );

  for (const phase of ["request", "response"])
    prove(
      fields(
        place,
        ...["name", "type", "value"].map((name) => `${phase}[].webhook.forwardHeaderMatches[].${name}`),
        `${phase}[].webhook.headers`,
      ),
      `a webhook of the ${phase} gets the headers that match and those that are computed`,
      async (context) => {
        const forward =
          '[{name: X-Kind, value: "r[a-z]d", type: RegularExpression}, {name: traceparent, value: one}, {name: date, value: "r.d"}]';
        const computed = `{"x-method": "request.method", ":path": "'/check?a=b'", x-gone: "jwt.sub", X-Team: "'blue'"}`;
        const members = `, forwardHeaderMatches: ${forward}, headers: ${computed}`;
        const { guarded, service } = await withWebhook(context, place, { phase, members });
        await guarded.ask("hi", { "x-kind": "red", "x-team": "green", traceparent: "one", date: "red" });
        const { path, headers } = newest(service);
        assert.equal(path, "/check?a=b");
        assert.deepEqual(
          ["x-kind", "traceparent", "x-method", "x-team", "x-gone", "date"].map((name) => headers[name]),
          ["red", "one", "POST", "blue", undefined, undefined],
        );
      },
    );
}

prove([], "a mask of another length is refused with 500, whatever the failure mode", async (context) => {
  const [place] = GUARD_PLACES;
  assert.ok(place);
  const message = { role: "user", content: "x" };
  for (const phase of ["request", "response"]) {
    const { guarded, service } = await withWebhook(context, place, { phase, members: ", failureMode: FailOpen" });
    const body = phase === "request" ? { messages: [message, message] } : { choices: [{ message }, { message }] };
    service.answer = { body: { action: { body } } };
    const { status, body: text } = await guarded.ask("hi");
    assert.equal(status, 500, text);
  }
});

prove([], "a webhook is given the time that its backend says, and its verdicts meet every client", async (context) => {
  const service = await startGuardService(context);
  const objects = [`${staticBackend("hook", service.port).trimEnd()}\n  policies: {http: {requestTimeout: 200ms}}\n`];
  const guarded = await startGuarded(context, `{request: [{webhook: {${HOOK}}}]}`, { objects });
  const body = { model: "m", max_tokens: 9, system: "be kind", messages: [{ role: "user", content: "hi" }] };
  service.answer = "hang";
  const closed = await guarded.send("/v1/messages", body);
  const error = { type: "overloaded_error", message: GUARD_DOWN.error.message };
  assert.deepEqual([closed.status, parseJson(closed.body)], [503, { type: "error", error }]);
  const messages = [
    { role: "system", content: "be strict" },
    { role: "user", content: "***" },
  ];
  service.answer = { body: { action: { body: { messages } } } };
  await guarded.send("/v1/messages", body);
  assert.deepEqual(lastMessages(guarded), messages);
});

prove([], "a rejection is final: neither the guard nor the provider is asked again", async (context) => {
  const [place] = GUARD_PLACES;
  assert.ok(place);
  const retry = routePolicy("retry", "ai", "  traffic: {retry: {attempts: 3, codes: [503]}}");
  for (const phase of ["request", "response"]) {
    const { guarded, service } = await withWebhook(context, place, { phase, objects: [retry] });
    service.answer = { body: { action: { body: "no", status_code: 503 } } };
    assert.equal((await guarded.ask("hi")).status, 503);
    assert.deepEqual([service.received.length, guarded.received.length], [1, phase === "request" ? 0 : 1]);
  }
});

const DOWN_TEXT = "failed to process LLM request: prompt guard failed";
const GUARD_DOWN = { error: { message: DOWN_TEXT, type: "api_error", param: null, code: null } };
