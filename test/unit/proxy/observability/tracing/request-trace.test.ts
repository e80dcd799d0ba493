/** The spans of one request: handed over together, bounded, and never after they were dropped. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderList } from "../../../../../src/lib/header-list.ts";
import { CalloutError } from "../../../../../src/proxy/callouts/callout.ts";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import type { OutboundCall } from "../../../../../src/proxy/observability/tracing/outbound-span.ts";
import { RequestTrace, traceIdsOf } from "../../../../../src/proxy/observability/tracing/request-trace.ts";
import type { Span } from "../../../../../src/telemetry/span.ts";
import type { TraceParent } from "../../../../../src/telemetry/trace-context.ts";

const PARENT: TraceParent = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", flags: 1 };
const CALL: OutboundCall = { kind: "Primary", subtype: "Http", name: "GET a:80" };

interface Setup {
  readonly trace: RequestTrace;
  /** What was handed over, call by call. */
  readonly taken: (readonly Span[])[];
  readonly server: Span;
}

function begin(parent: TraceParent | undefined = PARENT, traceState = ""): Setup {
  const taken: (readonly Span[])[] = [];
  const trace = new RequestTrace(parent, traceState, { take: (spans) => void taken.push(spans) });
  const { context, spanId, parentSpanId } = trace;
  const times = { startUnixNs: 1n, endUnixNs: 2n } as const;
  const server: Span = {
    ...context,
    ...times,
    spanId,
    parentSpanId,
    kind: "server",
    name: "GET /*",
    attributes: [],
    error: undefined,
  };
  return { trace, taken, server };
}

const told = (headers: HeaderList): string => headers.get("traceparent") ?? "";

test("spans that have ended are handed over with that of their request, and later ones alone", () => {
  const { trace, taken, server } = begin();
  const [first, late] = [trace.begin(CALL, new HeaderList()), trace.begin(CALL, new HeaderList())];
  first?.end();
  trace.finish(server);
  late?.end();
  assert.deepEqual(
    taken.map((spans) => spans.map(({ spanId }) => spanId)),
    [[trace.spanId, first?.spanId], [late?.spanId]],
  );
});

test("of a request whose spans are dropped nothing is handed over, and calls that are still made name its trace", () => {
  const { trace, taken } = begin();
  const late = trace.begin(CALL, new HeaderList());
  trace.finish(undefined);
  late?.end();
  const headers = new HeaderList();
  assert.equal(trace.begin(CALL, headers), undefined);
  assert.equal(told(headers), `00-${PARENT.traceId}-${trace.spanId}-01`);
  assert.deepEqual(taken, []);
});

test("a request has 128 spans with its own, and further calls name that one", () => {
  const { trace, taken, server } = begin();
  for (let at = 1; at < 128; at++) trace.begin(CALL, new HeaderList())?.end();
  const headers = new HeaderList();
  assert.equal(trace.begin(CALL, headers), undefined);
  assert.equal(told(headers), `00-${PARENT.traceId}-${trace.spanId}-01`);
  trace.finish(server);
  assert.equal(taken[0]?.length, 128);
});

test("a call replaces every traceparent that is there, and keeps the flags of the parent", () => {
  const { trace } = begin({ ...PARENT, flags: 0 });
  const headers = new HeaderList(["traceparent", "one", "Traceparent", "two"]);
  const span = trace.begin(CALL, headers);
  assert.deepEqual(headers.getAll("traceparent"), [`00-${PARENT.traceId}-${span?.spanId}-00`]);
});

test("services that policies ask get the tracestate of a parent, where it can be sent", () => {
  const given = (traceState: string, parent: TraceParent | undefined = PARENT): string | undefined => {
    const headers = new HeaderList();
    begin(parent, traceState).trace.begin({ ...CALL, kind: "Policy" }, headers);
    return headers.get("tracestate");
  };
  assert.equal(given("a=1,b=2"), "a=1,b=2");
  for (const bad of ["", "a=\u00e9", "a=1\t", "x".repeat(513)]) assert.equal(given(bad), undefined, bad.slice(0, 9));
});

test("without a parent a trace begins, sampled and without a state", () => {
  const trace = new RequestTrace(undefined, "a=1", { take: () => undefined });
  assert.match(trace.traceId, /^[0-9a-f]{32}$/);
  assert.deepEqual([trace.context.flags, trace.context.traceState, trace.parentSpanId], [1, "", undefined]);
});

test("the first failure of a call stands, and nothing is noted after its end", () => {
  const { trace, taken, server } = begin();
  const span = trace.begin(CALL, new HeaderList());
  span?.answered(502);
  span?.failed(new ProxyError("upstream_broken"));
  span?.end();
  span?.note("late", true);
  const other = trace.begin(CALL, new HeaderList());
  other?.failed(new CalloutError("no answer"));
  other?.end();
  trace.finish(server);
  const [, first, second] = taken[0] ?? [];
  assert.deepEqual(first?.attributes.slice(2), [
    ["http.status", 502n],
    ["error.type", "502"],
  ]);
  assert.deepEqual([first?.error, second?.error], ["", "external service failed: no answer"]);
  assert.deepEqual(second?.attributes.at(-1), ["error.type", "callout_failed"]);
});

test("a log line of a request that is not traced names the trace of its client alone", () => {
  const requestHeaders = new HeaderList(["traceparent", `00-${PARENT.traceId}-${PARENT.spanId}-00`]);
  assert.deepEqual(traceIdsOf({ trace: undefined, requestHeaders }), { traceId: PARENT.traceId, spanId: undefined });
  assert.equal(traceIdsOf({ trace: undefined, requestHeaders: new HeaderList(["traceparent", "00-x"]) }), undefined);
  assert.equal(traceIdsOf({ trace: undefined, requestHeaders: new HeaderList() }), undefined);
  const { trace } = begin();
  assert.equal(traceIdsOf({ trace, requestHeaders })?.spanId, trace.spanId);
});
