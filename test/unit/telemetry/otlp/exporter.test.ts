import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ExportLogsServiceRequestSchema } from "../../../../generated/proto/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { ExportTraceServiceRequestSchema } from "../../../../generated/proto/opentelemetry/proto/collector/trace/v1/trace_service_pb.ts";
import { createLogger } from "../../../../src/lib/log.ts";
import { Envelope } from "../../../../src/telemetry/otlp/encode.ts";
import { Exporter, type ExporterOptions, type ExportOutcome } from "../../../../src/telemetry/otlp/exporter.ts";
import type { Span } from "../../../../src/telemetry/span.ts";
import { testClock, type TestClock } from "../../../support/gateway/test-clock.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

const TAKEN: ExportOutcome = { kind: "taken", rejected: 0, message: "" };
const LATER: ExportOutcome = { kind: "later", reason: "busy", afterMs: undefined };

interface Fixture {
  readonly exporter: Exporter;
  readonly clock: TestClock;
  /** Names of the only field of each record, by request. */
  readonly requests: string[][];
  readonly lines: string[];
  dropped: number;
  busy: boolean;
}

function start(send: (request: Buffer) => ExportOutcome | Promise<ExportOutcome>, read = namesIn): Fixture {
  const clock = testClock();
  const requests: string[][] = [];
  const lines: string[] = [];
  const options: ExporterOptions = {
    envelope: new Envelope([], "scope"),
    send: async (request) => {
      requests.push(read(request));
      return send(request);
    },
    delayMs: 1000,
    clock,
    log: createLogger({ level: "info", modules: new Map() }, (line) => void lines.push(line)),
    collector: "default/collector",
    onDropped: (records) => (fixture.dropped += records),
    onBusy: (_, busy) => (fixture.busy = busy),
    random: () => 0,
  };
  const fixture: Fixture = { exporter: new Exporter(options), clock, requests, lines, dropped: 0, busy: false };
  return fixture;
}

function namesIn(request: Buffer): string[] {
  const [logs] = fromBinary(ExportLogsServiceRequestSchema, request).resourceLogs;
  return (logs?.scopeLogs[0]?.logRecords ?? []).map(({ attributes }) => attributes[0]?.key ?? "");
}

function spansIn(request: Buffer): string[] {
  const [resource] = fromBinary(ExportTraceServiceRequestSchema, request).resourceSpans;
  return (resource?.scopeSpans[0]?.spans ?? []).map(({ name }) => name);
}

function add({ exporter }: Fixture, name: string, value = "x"): void {
  const sink = exporter.begin({ timeMs: 0, traceId: undefined, spanId: undefined });
  sink?.add(name, value);
  exporter.end();
}

function fill(fixture: Fixture, count: number): void {
  for (let at = 0; at < count; at++) add(fixture, String(at));
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

test("records wait for others for their time, and no longer", async () => {
  const fixture = start(() => TAKEN);
  add(fixture, "a");
  await fixture.clock.advance(999);
  add(fixture, "b");
  assert.deepEqual(fixture.requests, []);
  assert.equal(fixture.busy, true);
  await fixture.clock.advance(1);
  assert.deepEqual(fixture.requests, [["a", "b"]]);
  assert.equal(fixture.busy, false);
  assert.deepEqual(fixture.clock.waiting(), []);
});

test("a full batch does not wait", async () => {
  const fixture = start(() => TAKEN);
  fill(fixture, 1025);
  await turn();
  assert.deepEqual(
    fixture.requests.map(({ length }) => length),
    [512, 512],
  );
  await fixture.clock.advance(1000);
  assert.equal(fixture.requests.length, 3);
});

test("a batch is sent before it is larger than collectors take", async () => {
  const fixture = start(() => TAKEN);
  for (let at = 0; at < 3; at++) add(fixture, String(at), "x".repeat(600_000));
  await turn();
  assert.deepEqual(fixture.requests, [["0", "1"]]);
});

test("a record that no collector would take is lost alone", async () => {
  const fixture = start(() => TAKEN);
  add(fixture, "a");
  add(fixture, "large", "x".repeat(1_100_000));
  add(fixture, "b");
  await fixture.clock.advance(1000);
  assert.deepEqual(fixture.requests, [["a", "b"]]);
  assert.equal(fixture.dropped, 1);
});

test("beyond what may wait, records are lost and counted, and memory stays as it is", async () => {
  const fixture = start(() => new Promise<ExportOutcome>(() => undefined));
  fill(fixture, 10_000);
  await turn();
  assert.equal(fixture.requests.length, 4);
  assert.equal(fixture.dropped, 10_000 - 2048);
});

test("large records fill the queue by their bytes", async () => {
  const fixture = start(() => new Promise<ExportOutcome>(() => undefined));
  for (let at = 0; at < 100; at++) add(fixture, String(at), "x".repeat(500_000));
  await turn();
  assert.ok(fixture.dropped > 80, `${fixture.dropped} lost`);
});

test("a collector that is busy is asked again, later each time", async () => {
  const answers: ExportOutcome[] = [LATER, LATER, TAKEN];
  const fixture = start(() => answers.shift() ?? TAKEN);
  add(fixture, "a");
  await fixture.clock.advance(1000);
  assert.deepEqual(fixture.clock.waiting(), [500]);
  await fixture.clock.advance(500);
  assert.deepEqual(fixture.clock.waiting(), [1000]);
  await fixture.clock.advance(1000);
  assert.deepEqual(fixture.requests, [["a"], ["a"], ["a"]]);
  assert.equal(fixture.dropped, 0);
  assert.equal(fixture.busy, false);
});

test("a collector says when to come again, within limits", async () => {
  const answers: ExportOutcome[] = [
    { kind: "later", reason: "busy", afterMs: 7000 },
    { kind: "later", reason: "busy", afterMs: 3_600_000 },
  ];
  const fixture = start(() => answers.shift() ?? TAKEN);
  add(fixture, "a");
  await fixture.clock.advance(1000);
  assert.deepEqual(fixture.clock.waiting(), [7000]);
  await fixture.clock.advance(7000);
  assert.deepEqual(fixture.clock.waiting(), [30_000]);
});

test("tries end, and what they were for is lost", async () => {
  const fixture = start(() => LATER);
  add(fixture, "a");
  await fixture.clock.advance(600_000);
  assert.equal(fixture.requests.length, 16);
  assert.equal(fixture.dropped, 1);
  assert.equal(fixture.busy, false);
});

test("what is refused is not sent again", async () => {
  const fixture = start(() => ({ kind: "refused", reason: "HTTP 400" }));
  add(fixture, "a");
  await fixture.clock.advance(600_000);
  assert.equal(fixture.requests.length, 1);
  assert.equal(fixture.dropped, 1);
  assert.match(fixture.lines[0] ?? "", /"collector":"default\/collector","records":1,"reason":"HTTP 400"/);
});

test("rejected records count as lost, never more than were sent", async () => {
  let rejected = 1;
  const fixture = start(() => ({ kind: "taken", rejected, message: "too old" }));
  fill(fixture, 3);
  await fixture.clock.advance(1000);
  assert.equal(fixture.dropped, 1);
  rejected = 1000;
  fill(fixture, 3);
  await fixture.clock.advance(1000);
  assert.equal(fixture.dropped, 4);
});

test("a long outage makes a line now and then, with all that was lost since the last", async () => {
  const fixture = start(() => ({ kind: "refused", reason: "away" }));
  for (let second = 0; second < 30; second++) {
    add(fixture, "a");
    await fixture.clock.advance(1000);
  }
  const counts = fixture.lines.map((line) => (JSON.parse(line) as { records: number }).records);
  assert.deepEqual(counts, [1, 10, 10]);
});

test("while four requests are under way the next batch goes on to fill", async () => {
  const answers: (() => void)[] = [];
  const fixture = start(() => new Promise((resolve) => void answers.push(() => resolve(TAKEN))));
  for (let at = 0; at < 6; at++) {
    add(fixture, String(at));
    await fixture.clock.advance(1000);
  }
  assert.deepEqual(fixture.requests, [["0"], ["1"], ["2"], ["3"]]);
  answers[2]?.();
  await turn();
  assert.deepEqual(fixture.requests[4], ["4", "5"]);
});

test("a flush sends what waits and resolves when it is taken", async () => {
  const fixture = start(() => TAKEN);
  fill(fixture, 600);
  await fixture.exporter.flush(5000);
  assert.deepEqual(
    fixture.requests.map(({ length }) => length),
    [512, 88],
  );
  assert.equal(fixture.dropped, 0);
  assert.deepEqual(fixture.clock.waiting(), []);
});

test("what comes during a flush is sent with it", async () => {
  const answer = Promise.withResolvers<ExportOutcome>();
  const fixture = start(() => (fixture.requests.length === 1 ? answer.promise : TAKEN));
  add(fixture, "a");
  const flushed = fixture.exporter.flush(5000);
  add(fixture, "b");
  answer.resolve(TAKEN);
  await turn();
  assert.deepEqual(fixture.requests, [["a"], ["b"]]);
  await flushed;
  assert.equal(fixture.dropped, 0);
});

test("a flush waits only so long, and counts what is left", async () => {
  const fixture = start(() => LATER);
  fill(fixture, 600);
  const flushed = fixture.exporter.flush(5000);
  await fixture.clock.advance(5000);
  await flushed;
  assert.equal(fixture.dropped, 600);
  assert.equal(fixture.busy, false);
  assert.deepEqual(fixture.clock.waiting(), []);
  add(fixture, "late");
  assert.equal(fixture.dropped, 601);
});

test("a record that nobody ended does not spoil the batch", async () => {
  const fixture = start(() => TAKEN);
  add(fixture, "a");
  fixture.exporter.begin({ timeMs: 0, traceId: undefined, spanId: undefined })?.add("broken", "x");
  add(fixture, "b");
  fixture.exporter.begin({ timeMs: 0, traceId: undefined, spanId: undefined })?.add("broken", "x");
  await fixture.clock.advance(1000);
  assert.deepEqual(fixture.requests, [["a", "b"]]);
});

test("whatever a collector does, each record is taken once or counted as lost, and what waits is bounded", async () => {
  const answer = fc.oneof(
    { weight: 4, arbitrary: fc.constant<ExportOutcome>(TAKEN) },
    { weight: 2, arbitrary: fc.constant<ExportOutcome>(LATER) },
    fc.constant<ExportOutcome>({ kind: "refused", reason: "no" }),
    fc.nat(600).map((rejected): ExportOutcome => ({ kind: "taken", rejected, message: "" })),
    fc.constant("slow" as const),
  );
  const step = fc.record({ records: fc.nat(700), pauseMs: fc.nat(3000), answers: fc.array(answer, { maxLength: 6 }) });
  await assertProperty(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      let answers: (ExportOutcome | "slow")[] = [];
      let added = 0;
      let taken = 0;
      let waiting = 0;
      const fixture = start(async (request) => {
        const records = namesIn(request).length;
        waiting += records;
        assert.ok(waiting <= 2048, `${waiting} under way`);
        let next = answers.shift() ?? TAKEN;
        if (next === "slow") {
          await new Promise<void>((resolve) => void fixture.clock.after(1500, resolve));
          next = TAKEN;
        }
        waiting -= records;
        if (next.kind === "taken") taken += records - Math.min(next.rejected, records);
        return next;
      });
      for (const { records, pauseMs, answers: more } of steps) {
        answers = [...answers, ...more];
        fill(fixture, records);
        added += records;
        await fixture.clock.advance(pauseMs);
      }
      await fixture.clock.advance(600_000);
      await fixture.exporter.flush(5000);
      assert.equal(taken + fixture.dropped, added);
      assert.equal(fixture.busy, false);
      assert.deepEqual(fixture.clock.waiting(), []);
    }),
    { numRuns: 60 },
  );
});

test("the spans of a request stay together", async () => {
  const fixture = start(() => TAKEN, spansIn);
  const span: Span = {
    traceId: "0af7651916cd43dd8448eb211c80319c",
    spanId: "b7ad6b7169203331",
    parentSpanId: undefined,
    flags: 1,
    traceState: "",
    kind: "server",
    name: "x",
    startUnixNs: 1n,
    endUnixNs: 2n,
    attributes: [],
    error: undefined,
  };
  for (let at = 0; at < 171; at++) fixture.exporter.take([span, span, span]);
  fixture.exporter.take([]);
  await turn();
  await fixture.clock.advance(1000);
  assert.deepEqual(
    fixture.requests.map(({ length }) => length),
    [510, 3],
  );
});
