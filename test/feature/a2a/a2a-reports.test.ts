/** What logs and metrics say about calls of A2A agents, and that reading them changes no byte. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { agentManifests } from "../../support/gateway/agents.ts";
import { startGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { createMeasured } from "../../support/gateway/measured.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const JSON_TYPE = "application/json";
const SSE = "text/event-stream";

interface Row {
  readonly about: string;
  readonly request: string;
  readonly type?: string;
  /** Body of the request. */
  readonly asks?: unknown;
  readonly answerType?: string;
  readonly answer: unknown;
  readonly status?: number;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Method in the metric where it is another one than in the log. */
  readonly counted?: string;
}

const rpc = (method: unknown) => ({ jsonrpc: "2.0", id: 1, method, params: { secret: "s3cret" } });
const result = (value: unknown) => ({ jsonrpc: "2.0", id: 1, result: value });
const events = (...data: unknown[]) => data.map((each) => `id: 1\ndata: ${JSON.stringify(each)}\n\n`).join("");
const TASK = { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } };
const READ = { outcome: "success", "result.kind": "task", "task.state": "TASK_STATE_WORKING", "context.id": "c" };
const LONG = "x".repeat(300_000);

const ROWS: readonly Row[] = [
  {
    about: "a task of 1.0",
    request: "POST /rpc",
    asks: rpc("SendMessage"),
    answer: result({ task: TASK }),
    fields: { method: "SendMessage", ...READ },
  },
  {
    about: "a task of 0.3",
    request: "POST /rpc",
    asks: rpc("message/send"),
    answer: result({ kind: "task", id: "t", contextId: "c", status: { state: "completed" } }),
    fields: { method: "message/send", ...READ, "task.state": "completed" },
  },
  {
    about: "a message",
    request: "POST /rpc",
    asks: rpc("SendMessage"),
    answer: result({ message: { contextId: "c", parts: [] } }),
    fields: { method: "SendMessage", outcome: "success", "result.kind": "message", "context.id": "c" },
  },
  {
    about: "an error",
    request: "POST /rpc",
    asks: rpc("tasks/get"),
    answer: { jsonrpc: "2.0", id: 1, error: { code: -32_001, message: "not found" } },
    fields: { method: "tasks/get", outcome: "error", error_code: -32_001 },
  },
  {
    about: "a stream, of which the last state counts and a long event is not read",
    request: "POST /rpc",
    asks: rpc("SendStreamingMessage"),
    answerType: `${SSE}; charset=utf-8`,
    answer: events(
      result({ task: TASK }),
      result({ artifactUpdate: { contextId: "other", x: LONG } }),
      result({ statusUpdate: { contextId: "c", status: { state: "TASK_STATE_COMPLETED" } } }),
    ),
    fields: {
      method: "SendStreamingMessage",
      ...READ,
      "result.kind": "status-update",
      "task.state": "TASK_STATE_COMPLETED",
    },
  },
  {
    about: "a stream with an error in it",
    request: "POST /rpc",
    asks: rpc("message/stream"),
    answerType: SSE,
    answer: events({ jsonrpc: "2.0", id: 1, error: { code: -32_603 } }, result({ kind: "message" })),
    fields: { method: "message/stream", outcome: "error", error_code: -32_603, "result.kind": "message" },
  },
  {
    about: "HTTP+JSON",
    request: "POST /rest/message:send",
    asks: { message: {} },
    answerType: "application/a2a+json",
    answer: { task: TASK },
    fields: { method: "SendMessage", ...READ },
  },
  {
    about: "HTTP+JSON in a stream",
    request: "GET /rest/tasks/t:subscribe",
    answerType: SSE,
    answer: events({ task: TASK }),
    fields: { method: "SubscribeToTask", ...READ },
  },
  {
    about: "an error of HTTP+JSON",
    request: "GET /rest/tasks/t",
    answer: { error: { code: 404, status: "NOT_FOUND" } },
    status: 404,
    fields: { method: "GetTask", outcome: "error", error_code: 404 },
  },
  {
    about: "a method that the protocol does not have",
    request: "POST /rpc",
    asks: rpc("invented"),
    answer: result(null),
    fields: { method: "invented", outcome: "success" },
    counted: "other",
  },
  {
    about: "a name that is too long",
    request: "POST /rpc",
    asks: rpc("x".repeat(129)),
    answer: result(null),
    fields: { method: "unknown", outcome: "success" },
  },
  {
    about: "a name with control characters",
    request: "POST /rpc",
    asks: rpc("a\u0007b"),
    answer: result(null),
    fields: { method: "unknown", outcome: "success" },
  },
  {
    about: "a batch",
    request: "POST /rpc",
    asks: [rpc("SendMessage")],
    answer: [result(null)],
    fields: { method: "batch", outcome: "unknown" },
  },
  {
    about: "another type than JSON",
    request: "POST /rpc",
    type: "text/plain",
    asks: "hello",
    answerType: "text/plain",
    answer: "hello",
    fields: { method: "unknown", outcome: "unknown" },
  },
];

for (const {
  about,
  request,
  type = JSON_TYPE,
  asks,
  answerType = JSON_TYPE,
  answer,
  status = 200,
  fields,
  counted,
} of ROWS)
  test(`a line and a count of a call: ${about}`, async (t) => {
    const context = contextOf(t);
    const printed = typeof answer === "string" ? answer : JSON.stringify(answer);
    const sent = typeof asks === "string" ? asks : JSON.stringify(asks);
    let seen = "";
    const agent = await startUpstream((incoming, response) => {
      incoming.on("data", (chunk: Buffer) => (seen += chunk.toString()));
      incoming.on("end", () => response.writeHead(status, { "content-type": answerType }).end(printed));
    });
    t.after(() => agent.close());
    const lines = keepLines(context);
    const measured = createMeasured();
    const telemetry = { accessLog: lines.accessLog, metrics: measured.metrics };
    const gateway = await startGateway(context, agentManifests(agent.port), { telemetry });
    const [method = "", path = ""] = request.split(" ");
    const got = await call(gateway.url() + path, {
      method,
      headers: { "content-type": type, "a2a-version": "1.0" },
      ...(sent === undefined ? {} : { body: sent }),
    });
    assert.deepEqual([got.status, got.body, seen], [status, printed, sent ?? ""]);
    const line = await lines.nextFields();
    const shown = Object.fromEntries(Object.entries(line).filter(([name]) => name.startsWith("a2a.")));
    const expected = Object.fromEntries(
      Object.entries({ version: "1.0", ...fields }).map(([name, value]) => [
        name === "outcome" || name === "error_code" ? `a2a.response.${name}` : `a2a.${name}`,
        value,
      ]),
    );
    assert.deepEqual(shown, expected);
    assert.equal(line["protocol"], "a2a");
    assert.ok(!JSON.stringify(line).includes("s3cret"));
    await measured.counted("a2a_requests_total", 1);
    const [sample] = measured.read("a2a_requests_total");
    assert.deepEqual(
      [sample?.labels["method"], sample?.labels["status"], sample?.labels["route"]],
      [counted ?? fields["method"], fields["outcome"], "default/plain"],
    );
  });
