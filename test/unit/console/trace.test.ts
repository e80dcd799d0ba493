/** The pure parts of the trace view: reading recordings, the waterfall, comparing snapshots. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compareStates, snapshotOf } from "../../../src/console/model/compare-states.ts";
import { decodeBody } from "../../../src/console/model/decode-body.ts";
import { describeEvent } from "../../../src/console/model/describe-event.ts";
import {
  EventStreamParser,
  parseTraceEvent,
  parseTraceFile,
  printTraceFile,
  type TraceEvent,
} from "../../../src/console/model/trace.ts";
import { chooseTicks, layoutWaterfall } from "../../../src/console/model/waterfall.ts";
import type { DebugMessage } from "../../../src/proxy/exchange/debug-trace.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

function eventOf(type: string, eventStart: number | null, eventEnd: number, scope: string[] = []): TraceEvent {
  return { eventStart, eventEnd, severity: "info", scope, message: { type } };
}

test("server-sent events are read whole, however the bytes are cut", () => {
  const stream = ': ready\n\ndata: {"a":1}\n\n: keepalive\n\ndata: {"b":\ndata: 2}\r\n\r\n';
  assertProperty(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (sizes) => {
      const data: string[] = [];
      const comments: string[] = [];
      const parser = new EventStreamParser(
        (text) => data.push(text),
        (text) => comments.push(text),
      );
      for (let at = 0, turn = 0; at < stream.length; turn++) {
        const size = sizes[turn % sizes.length] ?? 1;
        parser.push(stream.slice(at, at + size));
        at += size;
      }
      assert.deepEqual(
        [data, comments],
        [
          ['{"a":1}', '{"b":\n2}'],
          ["ready", "keepalive"],
        ],
      );
    }),
  );
});

test("what is not an event is left out, and odd members are put right", () => {
  for (const line of ["", "{", "null", "[]", '"text"', "{}", '{"message":{}}', '{"message":{"type":1}}'])
    assert.equal(parseTraceEvent(line), undefined, line);
  const odd = '{"eventStart":9,"eventEnd":5,"severity":"loud","scope":[1],"message":{"type":"x"}}';
  assert.deepEqual(parseTraceEvent(odd), {
    eventStart: 5,
    eventEnd: 5,
    severity: "info",
    scope: ["1"],
    message: { type: "x" },
  });
});

test("any text is read as a file without an error, and a saved recording reads as it was", () => {
  const events = [eventOf("requestStarted", null, 0), eventOf("policy", 10, 40, ["default/shop"])];
  assert.deepEqual(parseTraceFile(printTraceFile(events)), { events, unreadable: 0 });
  assert.equal(parseTraceFile(`${printTraceFile(events)}garbage\n`).unreadable, 1);
  assertProperty(
    fc.property(fc.string(), fc.jsonValue(), (text, value) => {
      const file = parseTraceFile(`${text}\n${JSON.stringify({ message: { type: text, value }, eventEnd: 1 })}`);
      for (const { event, ...row } of layoutWaterfall(file.events).rows)
        assert.ok(row.left >= 0 && row.left + row.width <= 1 + 1e-9, JSON.stringify(event));
    }),
  );
});

test("steps stand in the order in which they began, outer ones first, within the first and the last event", () => {
  const { rows, totalUs, ticksUs } = layoutWaterfall([
    eventOf("requestStarted", null, 0),
    eventOf("cel", 20, 30, ["route", "policy"]),
    eventOf("policy", 20, 50, ["route"]),
    eventOf("routeSelection", null, 15),
    eventOf("requestFinished", 0, 1000),
  ]);
  assert.deepEqual(
    rows.map(({ event, left, width, depth }) => [event.message.type, left, width, depth]),
    [
      ["requestStarted", 0, 0, 0],
      ["routeSelection", 0.015, 0, 0],
      ["policy", 0.02, 0.03, 1],
      ["cel", 0.02, 0.01, 2],
      ["requestFinished", 0, 1, 0],
    ],
  );
  assert.equal(totalUs, 1000);
  assert.deepEqual(ticksUs, [200, 400, 600, 800]);
  assert.deepEqual(layoutWaterfall([]), { rows: [], totalUs: 1, ticksUs: [] });
});

test("ticks are few and round", () => {
  assert.deepEqual(chooseTicks(4321), [1000, 2000, 3000, 4000]);
  assertProperty(
    fc.property(fc.integer({ min: 1, max: 1e12 }), (total) => {
      const ticks = chooseTicks(total);
      assert.ok(ticks.length <= 5);
      for (const tick of ticks) assert.ok(tick < total);
    }),
  );
});

test("each type of event is summed up in a few words; an unknown one by its name", () => {
  const summaries = [
    { type: "routeSelection", selectedRoute: { route: "HTTPRoute default/shop", rule: "pay" } },
    { type: "routeSelection", selectedRoute: null },
    { type: "policy", kind: "cors", result: { type: "skip", reason: "no origin" } },
    { type: "policy", kind: "cors", result: { type: "apply", details: { outcome: "refused", status: 403 } } },
    { type: "backendCallResult", status: 503, error: "no endpoint" },
    {
      type: "policySelection",
      phase: "route",
      effectivePolicy: [{ policy: "cors", origin: "x" }, { policy: "retry" }],
    },
    { type: "policySelection", phase: "backend", effectivePolicy: "odd" },
    {
      type: "mcpFanout",
      targets: [{ target: "a", outcome: "ok", itemsBefore: 3, itemsAfter: 1 }, null, { target: "b" }],
    },
    { type: "requestFinished", status: 200, error: null, dropped: 7 },
    { type: "constructor" },
    { type: "requestSnapshot", stage: "x".repeat(500) },
  ].map((message) => describeEvent(message));
  assert.deepEqual(
    summaries.slice(0, -1).map(({ title, detail }) => `${title}: ${detail}`),
    [
      "Route: HTTPRoute default/shop rule pay",
      "Route: none matches",
      "Policy cors: skipped: no origin",
      "Policy cors: refused, 403",
      "Backend call: 503, no endpoint",
      "Policies: route: cors, retry",
      "Policies: backend: none",
      "MCP targets: a ok (1 of 3 items), b ",
      "Response sent: 200, 7 events were lost",
      "constructor: ",
    ],
  );
  assert.equal(summaries.at(-1)?.detail.length, 161);
});

/** Every type that the data plane records: another one does not compile without a row here. */
const RECORDED: Readonly<Record<DebugMessage["type"] | "requestSnapshot" | "bodySnapshot" | "requestFinished", true>> =
  {
    requestStarted: true,
    requestSnapshot: true,
    bodySnapshot: true,
    policySelection: true,
    routeSelection: true,
    policy: true,
    policyEvent: true,
    cel: true,
    authorizationResult: true,
    traceSampling: true,
    backendCallStart: true,
    backendCallResult: true,
    llmRouteResolved: true,
    llmRequestDetected: true,
    llmStreamingTranslation: true,
    endpointPick: true,
    endpointSelection: true,
    mcpFanout: true,
    requestFinished: true,
  };

test("every type of event that the data plane records has words of its own", () => {
  for (const type of Object.keys(RECORDED)) assert.notEqual(describeEvent({ type }).title, type, type);
});

test("the difference of two snapshots names each variable once", () => {
  const before = { request: { path: "/a", headers: { host: "x", gone: "1" } } };
  const after = { request: { path: "/b", headers: { host: "x" }, body: [1] } };
  assert.deepEqual(compareStates(before, after), [
    { path: "request.path", before: '"/a"', after: '"/b"' },
    { path: "request.headers.gone", before: '"1"', after: undefined },
    { path: "request.body", before: undefined, after: "[1]" },
  ]);
  assert.equal(snapshotOf({ type: "requestSnapshot", requestState: 1 }), 1);
  assert.equal(snapshotOf({ type: "policy", result: { type: "apply", snapshot: 2 } }), 2);
  assert.equal(snapshotOf({ type: "policy", result: { type: "skip", reason: "" } }), undefined);
  assert.equal(snapshotOf({ type: "cel", requestState: 3 }), undefined);
  const wide = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`h${at}`, "v"]));
  assert.equal(compareStates({}, wide).length, 200);
});

test("a body is decoded as text and cut", () => {
  assert.equal(decodeBody(Buffer.from("grüße").toString("base64")), "grüße");
  assert.equal(decodeBody("%%%"), "%%%");
  assert.equal(decodeBody(undefined), "");
  assert.match(decodeBody(Buffer.alloc(70_000, 97).toString("base64")), /… 4464 more bytes$/);
});
