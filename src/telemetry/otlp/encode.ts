/**
 * Encodes log records and spans as messages of OTLP 1 (opentelemetry.io/docs/specs/otlp), field by field. The exporter
 * uses it to encode a record when it is reported.
 */
import { ExportLogsServiceRequestSchema } from "../../../generated/proto/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import {
  AnyValueSchema,
  ArrayValueSchema,
  InstrumentationScopeSchema,
  KeyValueListSchema,
  KeyValueSchema,
} from "../../../generated/proto/opentelemetry/proto/common/v1/common_pb.ts";
import {
  LogRecordSchema,
  ResourceLogsSchema,
  ScopeLogsSchema,
  SeverityNumber,
} from "../../../generated/proto/opentelemetry/proto/logs/v1/logs_pb.ts";
import { ResourceSchema } from "../../../generated/proto/opentelemetry/proto/resource/v1/resource_pb.ts";
import {
  Span_SpanKind,
  SpanSchema,
  Status_StatusCode,
  StatusSchema,
} from "../../../generated/proto/opentelemetry/proto/trace/v1/trace_pb.ts";
import {
  isListValue,
  type Attribute,
  type AttributeListValue,
  type AttributeMapValue,
  type AttributeValue,
} from "../attributes.ts";
import type { Span } from "../span.ts";
import type { LogHead } from "./sinks.ts";
import { WireWriter } from "./wire-writer.ts";

const ANY = AnyValueSchema.field;
const LOG = LogRecordSchema.field;
const SPAN = SpanSchema.field;
const KEY = KeyValueSchema.field.key.number;
const VALUE = KeyValueSchema.field.value.number;
const STRING = ANY.stringValue.number;
const BOOL = ANY.boolValue.number;
const INT = ANY.intValue.number;
const DOUBLE = ANY.doubleValue.number;
const ARRAY = ANY.arrayValue.number;
const MEMBERS = ANY.kvlistValue.number;
const ARRAY_VALUE = ArrayValueSchema.field.values.number;
const MEMBER = KeyValueListSchema.field.values.number;

/** Maximum depth of nested values; receivers may reject deeper ones, and deeper content is of no use in a report. */
const DEEPEST = 16;
const MAX_INT64 = 2n ** 63n - 1n;
const MIN_INT64 = -(2n ** 63n);
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** Requests for logs and for spans use the same field numbers for resource, scopes and records. */
const RESOURCES = ExportLogsServiceRequestSchema.field.resourceLogs.number;
const RESOURCE = ResourceLogsSchema.field.resource.number;
const SCOPES = ResourceLogsSchema.field.scopeLogs.number;
const SCOPE = ScopeLogsSchema.field.scope.number;
/** Field of a record within its scope. */
const RECORDS: number = ScopeLogsSchema.field.logRecords.number;

/**
 * Begins a record; `writeLogField` adds to it, and `close` of the writer ends it.
 * @returns the argument of `close`
 */
export function openLog(writer: WireWriter, { timeMs, traceId, spanId }: LogHead): number {
  const start = writer.open(RECORDS);
  const time = BigInt(Math.round(timeMs * 1000)) * 1000n;
  writer.fixed64(LOG.timeUnixNano.number, time);
  writer.fixed64(LOG.observedTimeUnixNano.number, time);
  writer.varint(LOG.severityNumber.number, SeverityNumber.INFO);
  writer.string(LOG.severityText.number, "INFO");
  writeValue(writer, LOG.body.number, "request", 0);
  if (traceId !== undefined) writer.hex(LOG.traceId.number, traceId);
  if (spanId !== undefined) writer.hex(LOG.spanId.number, spanId);
  return start;
}

export function writeLogField(writer: WireWriter, name: string, value: AttributeValue): void {
  writeAttribute(writer, LOG.attributes.number, name, value);
}

export function writeSpan(writer: WireWriter, span: Span): void {
  const start = writer.open(RECORDS);
  writer.hex(SPAN.traceId.number, span.traceId);
  writer.hex(SPAN.spanId.number, span.spanId);
  if (span.traceState !== "") writer.string(SPAN.traceState.number, span.traceState);
  if (span.parentSpanId !== undefined) writer.hex(SPAN.parentSpanId.number, span.parentSpanId);
  writer.string(SPAN.name.number, span.name);
  writer.varint(SPAN.kind.number, span.kind === "server" ? Span_SpanKind.SERVER : Span_SpanKind.CLIENT);
  writer.fixed64(SPAN.startTimeUnixNano.number, span.startUnixNs);
  writer.fixed64(SPAN.endTimeUnixNano.number, span.endUnixNs);
  for (const [name, value] of span.attributes) writeAttribute(writer, SPAN.attributes.number, name, value);
  if (span.error !== undefined) {
    const status = writer.open(SPAN.status.number);
    if (span.error !== "") writer.string(StatusSchema.field.message.number, span.error);
    writer.varint(StatusSchema.field.code.number, Status_StatusCode.ERROR);
    writer.close(status);
  }
  writer.fixed32(SPAN.flags.number, span.flags);
  writer.close(start);
}

/** The bytes before the records that every request of an exporter begins with. */
export class Envelope {
  /** Equal for envelopes with equal content. */
  readonly key: string;
  readonly #resource: Buffer;
  readonly #scope: Buffer;

  /** @param scope instrumentation scope: the part of the data plane that reports */
  constructor(resource: readonly Attribute[], scope: string) {
    const writer = new WireWriter(1024);
    const start = writer.open(RESOURCE);
    const { number } = ResourceSchema.field.attributes;
    for (const [name, value] of resource) writeAttribute(writer, number, name, value);
    writer.close(start);
    this.#resource = Buffer.from(writer.written());
    writer.truncate(0);
    const inner = writer.open(SCOPE);
    writer.string(InstrumentationScopeSchema.field.name.number, scope);
    writer.close(inner);
    this.#scope = Buffer.from(writer.written());
    this.key = Buffer.concat([this.#resource, this.#scope]).toString("latin1");
  }

  /**
   * @param records as openLog and writeSpan write them
   * @returns a complete request
   */
  around(records: Buffer): Buffer {
    const scopes = this.#scope.length + records.length;
    const head = new WireWriter(64);
    head.head(SCOPES, scopes);
    const outer = this.#resource.length + head.length + scopes;
    const before = new WireWriter(64);
    before.head(RESOURCES, outer);
    return Buffer.concat([before.written(), this.#resource, head.written(), this.#scope, records]);
  }
}

function writeAttribute(writer: WireWriter, field: number, name: string, value: AttributeValue): void {
  writeMember(writer, field, name, value, 0);
}

// oxlint-disable-next-line max-params -- as protobuf has them: an object of each would be made for every attribute
function writeMember(
  writer: WireWriter,
  field: number,
  name: string,
  value: AttributeValue | null,
  depth: number,
): void {
  const start = writer.open(field);
  writer.string(KEY, name);
  writeValue(writer, VALUE, value, depth);
  writer.close(start);
}

/** Writes null as a value without a type. */
function writeValue(writer: WireWriter, field: number, value: AttributeValue | null, depth: number): void {
  const start = writer.open(field);
  if (typeof value === "string") writer.string(STRING, value);
  else if (typeof value === "bigint") writeInteger(writer, value);
  else if (typeof value === "number") writer.double(DOUBLE, value);
  else if (typeof value === "boolean") writer.varint(BOOL, value ? 1 : 0);
  else if (value !== null && depth < DEEPEST) writeNested(writer, value, depth + 1);
  writer.close(start);
}

/** Writes integers beyond 64 bits as text, because a wrong number would be worse. */
function writeInteger(writer: WireWriter, value: bigint): void {
  if (value > MAX_INT64 || value < MIN_INT64) writer.string(STRING, String(value));
  else if (value >= 0n && value <= MAX_SAFE) writer.varint(INT, Number(value));
  else writer.int64(INT, value);
}

function writeNested(writer: WireWriter, value: AttributeListValue | AttributeMapValue, depth: number): void {
  if (!isListValue(value)) {
    const start = writer.open(MEMBERS);
    for (const [name, item] of value) writeMember(writer, MEMBER, name, item, depth);
    writer.close(start);
    return;
  }
  const start = writer.open(ARRAY);
  for (const item of value) writeValue(writer, ARRAY_VALUE, item, depth);
  writer.close(start);
}
