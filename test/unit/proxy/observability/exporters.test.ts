/** What the answers of collectors mean, over both transports and real sockets. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { status } from "@grpc/grpc-js";
import { RetryInfoSchema } from "../../../../generated/proto/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../../generated/proto/google/rpc/status_pb.ts";
import { OtlpEndpointSchema, type OtlpEndpoint } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { createUpstream } from "../../../../src/proxy/upstream/client/client.ts";
import { DestinationGuard } from "../../../../src/proxy/upstream/dial/destination-guard.ts";
import { createResolver } from "../../../../src/proxy/upstream/dial/dns.ts";
import { createCallouts } from "../../../../src/proxy/callouts/callouts.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { Exporters } from "../../../../src/proxy/observability/exporters.ts";
import type { LogSink } from "../../../../src/telemetry/otlp/sinks.ts";
import {
  startGrpcCollector,
  startHttpCollector,
  type Decide,
  type FakeCollector,
} from "../../../support/servers/fake-collector.ts";
import { deadPort } from "../../../support/servers/grpc.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";
import { testClock, type TestClock } from "../../../support/gateway/test-clock.ts";

interface Fixture {
  readonly exporters: Exporters;
  readonly clock: TestClock;
  readonly dropped: Record<"logs" | "traces", number>;
  readonly lines: readonly string[];
}

function open(t: TestContext): Fixture {
  const resolver = createResolver();
  const guard = new DestinationGuard();
  const upstream = createUpstream({ resolver, guard, connectTimeoutMs: 5_000 });
  const callouts = createCallouts({
    upstream,
    names: resolver,
    guard,
    bodyLimitBytes: 1_000_000,
    pickCallTarget: () => {
      throw new ProxyError("backend_invalid");
    },
  });
  t.after(() => {
    callouts.close();
    upstream.close();
    resolver.close();
  });
  const clock = testClock();
  const dropped = { logs: 0, traces: 0 };
  const { log, lines } = recordingLog();
  const exporters = new Exporters({
    log,
    clock,
    callouts,
    resource: [["service.name", "gwproxy"]],
    onDropped: (signal, records) => (dropped[signal] += records),
  });
  return { exporters, clock, dropped, lines };
}

function endpointOf(port: number, http: boolean): OtlpEndpoint {
  const place = { case: "origin", value: { host: "127.0.0.1", port } } as const;
  return create(OtlpEndpointSchema, { service: { place }, http, path: http ? "/v1/logs" : "" });
}

function add(sink: LogSink): void {
  sink.begin({ timeMs: 0, traceId: undefined, spanId: undefined })?.add("a", "b");
  sink.end();
}

/** Resolves when a check holds; the clock does not move. */
async function settles(check: () => boolean): Promise<void> {
  while (!check()) await new Promise(setImmediate);
}

const RETRY_INFO = (delay: MessageInitShape<typeof RetryInfoSchema>): Buffer =>
  Buffer.from(
    toBinary(
      StatusSchema,
      create(StatusSchema, { details: [anyPack(RetryInfoSchema, create(RetryInfoSchema, delay))] }),
    ),
  );

const TRANSPORTS: readonly {
  readonly name: string;
  readonly http: boolean;
  readonly start: (t: TestContext, decide?: Decide) => Promise<FakeCollector>;
  readonly busy: readonly ReturnType<Decide>[];
  readonly refusals: readonly ReturnType<Decide>[];
  readonly asks: ReturnType<Decide>;
}[] = [
  {
    name: "gRPC",
    http: false,
    start: startGrpcCollector,
    busy: [{ code: status.UNAVAILABLE }],
    refusals: [{ code: status.INVALID_ARGUMENT }, { code: status.RESOURCE_EXHAUSTED }, { code: status.UNIMPLEMENTED }],
    asks: {
      code: status.RESOURCE_EXHAUSTED,
      more: { "grpc-status-details-bin": RETRY_INFO({ retryDelay: { seconds: 7n } }) },
    },
  },
  {
    name: "HTTP",
    http: true,
    start: startHttpCollector,
    busy: [429, 502, 503, 504].map((code) => ({ code })),
    refusals: [400, 401, 404, 500].map((code) => ({ code })),
    asks: { code: 503, more: { "retry-after": "7" } },
  },
];

for (const { name, http, start, busy, refusals, asks } of TRANSPORTS) {
  test(`${name}: what a collector takes is sent once`, async (t) => {
    const { exporters, clock, dropped } = open(t);
    const collector = await start(t);
    const sink = exporters.logs(endpointOf(collector.port, http));
    add(sink);
    add(sink);
    await clock.advance(1000);
    await exporters.end();
    assert.deepEqual(collector.seen, [2]);
    assert.equal(dropped.logs, 0);
    assert.equal(collector.headers[0]?.["traceparent"], undefined);
  });

  test(`${name}: a collector that is busy gets the same records again`, async (t) => {
    const { exporters, clock, dropped } = open(t);
    const collector = await start(t, (request) => busy[request] ?? {});
    add(exporters.logs(endpointOf(collector.port, http)));
    await clock.advance(1000);
    for (let tries = 1; tries <= busy.length; tries++) {
      await settles(() => clock.waiting().length > 0);
      await clock.advance(5000);
    }
    await exporters.end();
    assert.deepEqual(
      collector.seen,
      Array.from({ length: busy.length + 1 }, () => 1),
    );
    assert.equal(dropped.logs, 0);
  });

  test(`${name}: other refusals are for good`, async (t) => {
    const { exporters, clock, dropped } = open(t);
    const collector = await start(t, (request) => refusals[request] ?? {});
    const sink = exporters.logs(endpointOf(collector.port, http));
    for (let count = 1; count <= refusals.length; count++) {
      add(sink);
      await clock.advance(1000);
      await settles(() => dropped.logs === count);
    }
    assert.equal(collector.seen.length, refusals.length);
    assert.deepEqual(clock.waiting(), []);
  });

  test(`${name}: a collector says when to come again`, async (t) => {
    const { exporters, clock } = open(t);
    const collector = await start(t, (request) => (request === 0 ? asks : {}));
    add(exporters.logs(endpointOf(collector.port, http)));
    await clock.advance(1000);
    await settles(() => clock.waiting().length > 0);
    assert.deepEqual(clock.waiting(), [7000]);
    await clock.advance(7000);
    await exporters.end();
    assert.equal(collector.seen.length, 2);
  });

  test(`${name}: what a collector takes in part counts as lost in part`, async (t) => {
    const { exporters, clock, dropped, lines } = open(t);
    const partialSuccess = { rejectedLogRecords: 1n, errorMessage: "too old" };
    const collector = await start(t, () => ({ partialSuccess }));
    const sink = exporters.logs(endpointOf(collector.port, http));
    add(sink);
    add(sink);
    await clock.advance(1000);
    await settles(() => dropped.logs === 1);
    assert.match(lines[0] ?? "", /"collector":"127\.0\.0\.1:\d+","records":1,"reason":"rejected: too old"/);
  });

  test(`${name}: where nobody listens it is tried again`, async (t) => {
    const { exporters, clock, dropped } = open(t);
    add(exporters.logs(endpointOf(await deadPort(), http)));
    await clock.advance(1000);
    await settles(() => clock.waiting().length > 0);
    assert.equal(dropped.logs, 0);
  });
}

test("an answer over HTTP that is no message of OTLP is taken by its status", async (t) => {
  const { exporters, clock, dropped } = open(t);
  const collector = await startHttpCollector(t, () => ({ code: 200 }));
  add(exporters.logs(endpointOf(collector.port, true)));
  await clock.advance(1000);
  await exporters.end();
  assert.equal(collector.seen.length, 1);
  assert.equal(dropped.logs, 0);
});

test("a collector that cannot be resolved loses the records, and says so", async (t) => {
  const { exporters, clock, dropped, lines } = open(t);
  for (const place of [{ case: undefined }, { case: "backend", value: "backend/a/b" }] as const)
    add(exporters.logs(create(OtlpEndpointSchema, { service: { place, invalidReason: "no such backend" } })));
  await clock.advance(1000);
  await settles(() => dropped.logs === 2);
  assert.match(lines.join(""), /"collector":"unresolved"/);
  assert.match(lines.join(""), /"collector":"backend\/a\/b"/);
});

test("a policy has one exporter for as long as it says the same", (t) => {
  const { exporters } = open(t);
  const endpoint = endpointOf(1, false);
  assert.equal(exporters.logs(endpoint), exporters.logs(endpoint));
  assert.notEqual(exporters.logs(endpoint), exporters.logs(endpointOf(1, false)));
  const [blue, red] = [exporters.spans(endpoint, [["env", "blue"]]), exporters.spans(endpoint, [["env", "red"]])];
  assert.notEqual(blue, red);
  assert.equal(exporters.spans(endpoint, [["env", "blue"]]), blue);
});
