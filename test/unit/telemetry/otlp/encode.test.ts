/** What is written by hand is read back through the public messages of OTLP. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ExportLogsServiceRequestSchema } from "../../../../generated/proto/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { ExportTraceServiceRequestSchema } from "../../../../generated/proto/opentelemetry/proto/collector/trace/v1/trace_service_pb.ts";
import type { AnyValue } from "../../../../generated/proto/opentelemetry/proto/common/v1/common_pb.ts";
import { SeverityNumber } from "../../../../generated/proto/opentelemetry/proto/logs/v1/logs_pb.ts";
import { Span_SpanKind, Status_StatusCode } from "../../../../generated/proto/opentelemetry/proto/trace/v1/trace_pb.ts";
import type { Attribute, AttributeValue } from "../../../../src/telemetry/attributes.ts";
import { Envelope, openLog, writeLogField, writeSpan } from "../../../../src/telemetry/otlp/encode.ts";
import { WireWriter } from "../../../../src/telemetry/otlp/wire-writer.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

/** The value that a receiver sees. */
function seen(value: AnyValue | undefined): unknown {
  const held = value?.value;
  switch (held?.case) {
    case "arrayValue":
      return held.value.values.map(seen);
    case "kvlistValue":
      return new Map(held.value.values.map(({ key, value: member }) => [key, seen(member)]));
    case "stringValue":
    case "boolValue":
    case "intValue":
    case "doubleValue":
    case "bytesValue":
      return held.value;
    case undefined:
      return undefined;
  }
}

function attributesSent(attributes: readonly Attribute[], resource: readonly Attribute[] = []): readonly unknown[][] {
  const writer = new WireWriter(8);
  const start = openLog(writer, { timeMs: 0, traceId: undefined, spanId: undefined });
  for (const [name, value] of attributes) writeLogField(writer, name, value);
  writer.close(start);
  const request = new Envelope(resource, "scope").around(writer.written());
  const [logs] = fromBinary(ExportLogsServiceRequestSchema, request).resourceLogs;
  assert.deepEqual(
    logs?.resource?.attributes.map(({ key, value }) => [key, seen(value)]),
    resource,
  );
  const record = logs?.scopeLogs[0]?.logRecords[0];
  return (record?.attributes ?? []).map(({ key, value }) => [key, seen(value)]);
}

test("a record carries its time, severity, body, trace and typed fields", () => {
  const writer = new WireWriter(16);
  for (const traceId of [TRACE, undefined]) {
    const start = openLog(writer, { timeMs: 1_700_000_000_123.456, traceId, spanId: traceId && SPAN });
    writeLogField(writer, "http.status", 200n);
    writer.close(start);
  }
  const request = fromBinary(
    ExportLogsServiceRequestSchema,
    new Envelope([["service.name", "gwproxy"]], "gwproxy.access").around(writer.written()),
  );
  const [scope] = request.resourceLogs[0]?.scopeLogs ?? [];
  assert.equal(scope?.scope?.name, "gwproxy.access");
  const [first, second, ...more] = scope?.logRecords ?? [];
  assert.deepEqual(more, []);
  assert.equal(first?.timeUnixNano, 1_700_000_000_123_456_000n);
  assert.equal(first?.observedTimeUnixNano, 1_700_000_000_123_456_000n);
  assert.equal(first?.severityNumber, SeverityNumber.INFO);
  assert.equal(first?.severityText, "INFO");
  assert.equal(seen(first?.body), "request");
  assert.equal(Buffer.from(first?.traceId ?? []).toString("hex"), TRACE);
  assert.equal(Buffer.from(first?.spanId ?? []).toString("hex"), SPAN);
  assert.equal(second?.traceId.length, 0);
});

test("integers stay integers, fractions fractions, and what no integer can hold is text", () => {
  const large = 2n ** 63n;
  const values: readonly Attribute[] = [
    ["zero", 0n],
    ["negative", -1n],
    ["unsafe", 2n ** 53n + 1n],
    ["least", -large],
    ["most", large - 1n],
    ["whole", 3],
    ["fraction", 0.1],
    ["infinite", Infinity],
  ];
  assert.deepEqual(attributesSent(values), values);
  assert.deepEqual(attributesSent([["beyond", large]]), [["beyond", String(large)]]);
});

test("a value is followed only so deep, however deep it is", () => {
  let nested: AttributeValue = "bottom";
  for (let level = 0; level < 100_000; level++) nested = [nested];
  const [[, sent] = []] = attributesSent([["deep", nested]]);
  let depth = 0;
  for (let value = sent; Array.isArray(value); [value] = value as unknown[]) depth++;
  assert.equal(depth, 16);
});

test("whatever the values are, a receiver sees the same", () => {
  const value = fc.letrec<{ value: AttributeValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.string({ unit: "grapheme", maxLength: 200 }),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.double(),
      fc.boolean(),
      fc.array(tie("value")),
      fc.array(fc.tuple(fc.string(), tie("value"))).map((entries) => new Map(entries)),
    ),
  })).value;
  const attributes = fc.array(fc.tuple(fc.string({ unit: "grapheme" }), value));
  assertProperty(
    fc.property(attributes, attributes, (fields, resource) => {
      assert.deepEqual(attributesSent(fields, resource), fields);
    }),
  );
});

test("half of a character is replaced, since a receiver refuses what is no text", () => {
  assert.deepEqual(attributesSent([["\ud800", "x\udfff"]]), [["\ufffd", "x\ufffd"]]);
});

test("a span carries its place in the trace, its times and its failure", () => {
  const writer = new WireWriter(16);
  const base = {
    traceId: TRACE,
    spanId: SPAN,
    parentSpanId: undefined,
    flags: 1,
    traceState: "",
    kind: "server",
    name: "GET /x",
    startUnixNs: 1n,
    endUnixNs: 2n,
    attributes: [["http.status", 200n]],
    error: undefined,
  } as const;
  writeSpan(writer, base);
  writeSpan(writer, { ...base, kind: "client", parentSpanId: SPAN, traceState: "a=b", error: "no such host" });
  writeSpan(writer, { ...base, error: "" });
  const request = new Envelope([], "scope").around(writer.written());
  const spans = fromBinary(ExportTraceServiceRequestSchema, request).resourceSpans[0]?.scopeSpans[0]?.spans ?? [];
  const [first, second, third] = spans;
  assert.equal(spans.length, 3);
  assert.equal(Buffer.from(first?.traceId ?? []).toString("hex"), TRACE);
  assert.deepEqual([first?.kind, first?.name, first?.flags], [Span_SpanKind.SERVER, "GET /x", 1]);
  assert.deepEqual([first?.startTimeUnixNano, first?.endTimeUnixNano, first?.status], [1n, 2n, undefined]);
  assert.equal(seen(first?.attributes[0]?.value), 200n);
  assert.equal(Buffer.from(second?.parentSpanId ?? []).toString("hex"), SPAN);
  assert.deepEqual([second?.kind, second?.traceState], [Span_SpanKind.CLIENT, "a=b"]);
  assert.deepEqual([second?.status?.code, second?.status?.message], [Status_StatusCode.ERROR, "no such host"]);
  assert.deepEqual([third?.status?.code, third?.status?.message], [Status_StatusCode.ERROR, ""]);
});
