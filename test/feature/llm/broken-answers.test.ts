/**
 * Providers that break their answers, in front of clients of every chat format: what is broken before the first byte is 502
 * and asked again where a retry is configured, what is broken later is an error event and no clean end. Where both speak
 * one format, later bytes pass as they are, and only a connection that dies makes an error event. Tokens are counted and
 * charged in any case.
 */
import assert from "node:assert/strict";
import { request as sendRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { test } from "node:test";
import { documents, GATEWAY, gatewayPolicy, route, startGateway } from "../../support/gateway/gateway.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { DIES, EMPTY, ESTIMATED, FAULTS, LONG, PROVIDERS, SAID } from "../../support/servers/llm/broken-answers.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

interface Client {
  readonly path: string;
  readonly body: object;
  /** Matches the end of a complete stream. */
  readonly end: RegExp;
  /** Matches an error event. */
  readonly error: RegExp;
}

const ASKED = [{ role: "user", content: "hi" }];
const CLIENTS: Readonly<Record<string, Client>> = {
  Completions: {
    path: "/v1/chat/completions",
    body: { messages: ASKED },
    end: /\[DONE\]/,
    error: /^data: \{"error":\{"message":/m,
  },
  Messages: {
    path: "/v1/messages",
    body: { messages: ASKED, max_tokens: 9 },
    end: /message_stop/,
    error: /^event: error\ndata: \{"type":"error","error":\{"type":"api_error"/m,
  },
  Responses: {
    path: "/v1/responses",
    body: { input: "hi" },
    end: /response\.completed/,
    error: /^event: (?:error|response\.failed)\n/m,
  },
  Gemini: {
    path: "/v1beta/models/m:streamGenerateContent?alt=sse",
    body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    end: /"finishReason"/,
    error: /^data: \{"error":\{"code":\d+,/m,
  },
  "Gemini list": {
    path: "/v1beta/models/m:streamGenerateContent",
    body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    end: /"finishReason"|\]$/,
    error: /^\{"error":\{"code":\d+,/m,
  },
};

const CELLS: readonly (readonly [client: string, provider: string, isSame?: "same" | "same, as a list"])[] = [
  ["Completions", "completions", "same"],
  ["Completions", "messages"],
  ["Completions", "gemini"],
  ["Completions", "converse"],
  ["Messages", "messages", "same"],
  ["Messages", "completions"],
  ["Messages", "responses"],
  ["Messages", "converse"],
  ["Responses", "responses", "same"],
  ["Responses", "completions"],
  ["Responses", "messages"],
  ["Responses", "converse"],
  ["Gemini", "gemini", "same"],
  ["Gemini", "completions"],
  ["Gemini", "messages"],
  ["Gemini", "converse"],
  ["Gemini list", "gemini", "same, as a list"],
  ["Gemini list", "messages"],
];

/** Whether a stream between two of one format is passed on with what is wrong in it. Elements of a list are looked at. */
function isPassed(isSame: string | undefined, fault: string, moment: string): boolean {
  if (isSame === "same") return fault === LONG || (moment === "later" && fault !== DIES);
  return isSame !== undefined && moment === "later" && fault === EMPTY;
}

interface Seen {
  readonly status: number | undefined;
  readonly text: string;
  /** Whether the body came to its end. */
  readonly isComplete: boolean;
}

/** @param begun called when the beginning of the answer has come */
async function ask(url: string, body: object, fault: string, begun: () => void): Promise<Seen> {
  const headers = { "content-type": "application/json", "x-fault": fault };
  const outgoing = sendRequest(url, { method: "POST", headers, agent: false });
  outgoing.on("error", () => undefined);
  outgoing.end(JSON.stringify({ model: "anthropic.claude-m", stream: true, ...body }));
  const answered = await once(outgoing, "response").catch(() => undefined);
  if (answered === undefined) return { status: undefined, text: "", isComplete: false };
  const [response] = answered as [IncomingMessage];
  const pieces: string[] = [];
  let hasBegun = false;
  response.setEncoding("utf8").on("data", (piece: string) => {
    pieces.push(piece);
    if (hasBegun || !pieces.join("").includes(SAID)) return;
    hasBegun = true;
    begun();
  });
  response.on("error", () => undefined);
  await new Promise<void>((resolve) => response.once("close", resolve));
  return { status: response.statusCode, text: pieces.join(""), isComplete: response.complete };
}

/** What a provider says next to its beginning: at once behind it, and just before it breaks the answer. */
interface Further {
  readonly first: string;
  readonly last: string;
}

/** Starts what breaks its answers as the header x-fault says: the moment, the fault and the provider. */
async function startBroken(context: ProofContext, further?: Further) {
  let finish = (): void => undefined;
  const upstream = await startUpstream((request, response) => {
    request.resume();
    request.on("end", () => {
      const [moment = "", fault = "", name = ""] = String(request.headers["x-fault"]).split("/");
      const provider = PROVIDERS[name] ?? assert.fail(name);
      const { bytes: broken, dies } = FAULTS[fault]?.(provider) ?? assert.fail(fault);
      const bytes = further === undefined ? broken : Buffer.concat([provider.say(further.last), broken]);
      response.writeHead(200, { "content-type": provider.type });
      response.flushHeaders();
      const end = (): void => void response.write(bytes, () => (dies === true ? response.destroy() : response.end()));
      if (moment !== "later") return end();
      finish = end;
      for (const piece of provider.begin) response.write(piece);
      if (further !== undefined) response.write(provider.say(further.first));
    });
  });
  context.after(() => upstream.close());
  return { upstream, finish: () => finish() };
}

/** Each row of faults has a budget, which one request exhausts whose tokens are counted. */
const BUDGET = ESTIMATED.input + ESTIMATED.output;
const POLICIES = gatewayPolicy(
  "again",
  `  traffic:
    retry: {attempts: 1, codes: [502, 503]}
    rateLimit: {local: [{tokens: ${BUDGET}, unit: Hours, key: 'request.headers["x-fault"]'}]}`,
);

/** @param settings further policies of the providers as YAML flow */
function manifestsFor(port: number, settings = ""): string {
  const backends = Object.entries(PROVIDERS).map(([name, { key }]) =>
    documents(
      `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: {provider: {${key}, host: 127.0.0.1, port: ${port}}}
  policies: {auth: {key: k}${settings}}
`,
      route(name, name, `/${name}`),
    ),
  );
  return documents(GATEWAY, ...backends, POLICIES);
}

/** Whole answers with status 200 that no format has. */
const UNUSABLE: readonly (readonly [type: string, body: string])[] = [
  ["application/json", '{"choices": ['],
  ["application/json", "[]"],
  ["application/json", ""],
  ["text/html", "<html>Please log in.</html>"],
];

test("a whole answer that is not usable is 502, asked again, and not charged", async (t) => {
  const context = contextOf(t);
  const upstream = await startUpstream((request, response) => {
    request.resume();
    const [type, body] = UNUSABLE[Number(String(request.headers["x-fault"]).split("/", 1))] ?? assert.fail();
    response.writeHead(200, { "content-type": type }).end(body);
  });
  context.after(() => upstream.close());
  const lines = keepLines(context);
  const gateway = await startGateway(context, manifestsFor(upstream.port), { telemetry: lines });
  const failures: string[] = [];
  for (const [name, spoken] of CELLS)
    for (const at of UNUSABLE.keys()) {
      const { path, body } = CLIENTS[name] ?? assert.fail(name);
      const before = upstream.requests.length;
      const url = `${gateway.url()}/${spoken}${path.replace(/:stream.*$/, ":generateContent")}`;
      const seen = await ask(url, { ...body, stream: false }, `${at}/${spoken}/${name}`, () => undefined);
      const { "gen_ai.usage.input_tokens": charged } = await lines.nextFields();
      const isUnusable = seen.status === 502 && charged === undefined;
      const isRight = isUnusable && seen.text.includes('"error":{') && upstream.requests.length === before + 2;
      if (!isRight) failures.push(`${name} ${spoken}: ${String(UNUSABLE[at])}: ${JSON.stringify(seen)}`);
    }
  assert.deepEqual(failures, []);
});

prove(
  [],
  "an answer that a provider breaks is an error of the client's format, is asked again while nothing has gone out, and is charged",
  async (context) => {
    const { upstream, finish } = await startBroken(context);
    const lines = keepLines(context);
    const gateway = await startGateway(context, manifestsFor(upstream.port), { telemetry: lines });
    const failures: string[] = [];
    for (const [name, spoken, isSame] of CELLS)
      for (const [fault, faulty] of Object.entries(FAULTS))
        for (const moment of ["at first", "later"]) {
          const client = CLIENTS[name] ?? assert.fail(name);
          const provider = PROVIDERS[spoken] ?? assert.fail(spoken);
          const before = upstream.requests.length;
          const asked = (): Promise<Seen> =>
            ask(
              `${gateway.url()}/${spoken}${client.path}`,
              client.body,
              `${moment}/${fault}/${spoken}/${name}`,
              finish,
            );
          const seen = await asked();
          const tried = upstream.requests.length - before;
          const line = await lines.nextFields();
          const wrong: string[] = [];
          const check = (isRight: boolean, what: string): void => void (isRight || wrong.push(what));
          const begin = moment === "later" ? provider.begin : [];
          if (isPassed(isSame, fault, moment)) {
            const sent = Buffer.concat([...begin, faulty(provider).bytes]).toString();
            const expected = isSame === "same" ? sent : `[${sent.slice("data: ".length).trimEnd()}]`;
            check(seen.status === 200 && seen.isComplete && seen.text === expected && tried === 1, "not as it came");
          } else if (moment === "at first") {
            check((seen.status === 502 || fault === DIES) && /"error":\{/.test(seen.text), "no error answer");
            check(tried === 2, "not asked again");
          } else {
            check(seen.status === 200 && seen.text.includes(SAID) && tried === 1, "no beginning");
            check(!client.end.test(seen.text) && !seen.isComplete, "a clean end");
            check(client.error.test(seen.text), "no error event");
          }
          if (moment === "later") {
            check(line["gen_ai.usage.input_tokens"] === (provider.inputTokens ?? ESTIMATED.input), "input not counted");
            check(line["gen_ai.usage.output_tokens"] === ESTIMATED.output, "output not counted");
            check((await asked()).status === 429, "not charged");
            await lines.next();
          }
          const facts = { ...seen, text: seen.text.slice(-300), tried };
          if (wrong.length > 0)
            failures.push(`${name} ${spoken}: ${fault} ${moment}: ${wrong.join(", ")}: ${JSON.stringify(facts)}`);
        }
    assert.deepEqual(failures, []);
  },
);

const SECRET = "123-45-6789";
const GUARD = `, ai: {promptGuard: {streaming: Enabled, response: [{regex: {action: Reject, builtins: [Ssn]}}]}}`;
const BLOCKED = '"type":"guardrail_blocked"';

prove(
  [],
  "a guarded answer that a provider breaks in the middle ends with an error, without what was not checked, and is charged",
  async (context) => {
    // The first text fills a window, the last one waits for its check when the answer breaks.
    const further = { first: "x".repeat(1_100), last: ` ${SECRET}` };
    const { upstream, finish } = await startBroken(context, further);
    const lines = keepLines(context);
    const gateway = await startGateway(context, manifestsFor(upstream.port, GUARD), { telemetry: lines });
    const bytes = SAID.length + further.first.length + further.last.length;
    const failures: string[] = [];
    for (const [name, spoken, isSame] of CELLS)
      for (const fault of Object.keys(FAULTS)) {
        const client = CLIENTS[name] ?? assert.fail(name);
        const { inputTokens = ESTIMATED.input, outputTokens } = PROVIDERS[spoken] ?? assert.fail(spoken);
        // Where nothing is translated, an answer without its end is no fault, and its last window is checked.
        const isWhole = fault === EMPTY && isSame !== undefined;
        const url = `${gateway.url()}/${spoken}${client.path}`;
        const asked = (): Promise<Seen> => ask(url, client.body, `later/${fault}/${spoken}/${name}`, finish);
        const seen = await asked();
        const line = await lines.nextFields();
        const wrong: string[] = [];
        const check = (isRight: boolean, what: string): void => void (isRight || wrong.push(what));
        check(seen.status === 200 && seen.text.includes(SAID), "no beginning");
        check(!seen.text.includes(SECRET), "unchecked text");
        if (isWhole) check(seen.text.includes(BLOCKED), "not blocked");
        else check(client.error.test(seen.text) && !seen.isComplete, "no error event, or a clean end");
        check(!client.end.test(seen.text) || seen.text.includes(BLOCKED), "a complete stream");
        check(line["gen_ai.usage.input_tokens"] === inputTokens, "input not counted");
        const output = (isWhole ? outputTokens : undefined) ?? Math.ceil(bytes / 4);
        check(line["gen_ai.usage.output_tokens"] === output, "output not counted");
        check((await asked()).status === 429, "not charged");
        await lines.next();
        const facts = JSON.stringify({ ...seen, text: seen.text.slice(-300), line });
        if (wrong.length > 0) failures.push(`${name} ${spoken}: ${fault}: ${wrong.join(", ")}: ${facts}`);
      }
    assert.deepEqual(failures, []);
  },
);
