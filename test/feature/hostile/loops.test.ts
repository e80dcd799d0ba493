/** Requests that a gateway sends to itself: through every kind of backend and way out they end with 508 (RFC 8586). */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  HeaderModifiersSchema,
  MirrorSchema,
  Phase,
  TransformationChoiceSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import {
  listener,
  policy,
  rawClient,
  route,
  startDataPlane,
  staticBackend,
  to,
  type DataPlane,
} from "../../support/gateway/data-plane.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { createMetrics, type Metrics } from "../../../src/telemetry/metrics.ts";
import { keepLines, type KeptLines } from "../../support/gateway/log-lines.ts";
import { startStrictUpstream } from "../../support/servers/strict-upstream.ts";
import { startWorkers } from "../../support/gateway/workers.ts";
import { aiBackend, dynamicBackend, POST, UPGRADE, WAYS } from "./itself.ts";

/** Far more than the passes that are allowed, and far fewer than a loop makes. */
const ENOUGH = 40;

interface Plane extends DataPlane {
  /** Requests that were answered so far, by their metric. */
  answered(): number;
  readonly log: KeptLines;
}

async function start(t: TestContext, ...resources: Resource[]): Promise<Plane> {
  const log = keepLines(t);
  const metrics = createMetrics("test");
  const plane = await startDataPlane([listener(), ...resources], {
    telemetry: { metrics, accessLog: log.accessLog },
  });
  t.after(() => plane.proxy.close());
  return { ...plane, answered: () => countRequests(metrics), log };
}

function countRequests(metrics: Metrics): number {
  const counts = metrics.print("prometheus").matchAll(/^gwproxy_requests_total\{.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

const REMOVING = policy("remove", {
  phase: Phase.POST_ROUTING,
  targets: [{ target: { case: "route", value: "httproute/default/r" } }],
  units: [
    {
      unit: {
        case: "headerModifiers",
        value: create(HeaderModifiersSchema, { request: { remove: ["cdn-loop", "CDN-Loop"] } }),
      },
    },
    {
      unit: {
        case: "transformation",
        value: create(TransformationChoiceSchema, {
          branches: [{ transformation: { request: { remove: ["cdn-loop"] } } }],
        }),
      },
    },
  ],
});

for (const [name, backend] of Object.entries(WAYS)) {
  test(`a loop through ${name} ends with 508`, async (t) => {
    const plane = await start(t, route("r", [to("b")]));
    await plane.set(...backend(plane.port), REMOVING);
    assert.match(await rawClient(plane.port, POST).closed(), /^HTTP\/1\.1 508 [^]*\r\n\r\nloop detected$/);
    assert.ok(plane.answered() <= ENOUGH, `${plane.answered()} requests`);
    // The innermost one is over first.
    const { "http.status": logged, reason, error } = await plane.log.nextFields();
    assert.deepEqual([logged, reason, error], [508, "Internal", "loop detected"]);
    // What cannot be handed to a proxy needs a tunnel, and this gateway opens none.
    assert.match(await rawClient(plane.port, UPGRADE).closed(), /^HTTP\/1\.1 50[38] /);
    const session = await connectHttp2(plane.url);
    t.after(() => void session.destroy());
    const { status } = await sendHttp2(session, { ":path": "/x", ":authority": "a", ":method": "GET" });
    assert.match(String(status), /^50[38]$/);
    assert.ok(plane.answered() <= 3 * ENOUGH, `${plane.answered()} requests`);
  });
}

test("a loop through a model ends with 508", async (t) => {
  const plane = await start(t, route("r", [to("b")]));
  await plane.set(aiBackend(plane.port), REMOVING);
  assert.match(await rawClient(plane.port, POST).closed(), /^HTTP\/1\.1 508 /);
  assert.ok(plane.answered() <= ENOUGH, `${plane.answered()} requests`);
});

test("a request comes back through dynamicForwardProxy once", async (t) => {
  const plane = await start(t, route("r", [to("b")]), dynamicBackend(), REMOVING);
  for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"]) {
    const authority = `${host}:${plane.port}`;
    const before = plane.answered();
    const bytes = POST.replace("Host: a", `Host: ${authority}`);
    assert.match(await rawClient(plane.port, bytes).closed(), /^HTTP\/1\.1 508 [^]*\r\n\r\nloop detected$/, host);
    assert.equal(plane.answered() - before, 2, host);
    const upgrade = UPGRADE.replace("Host: a", `Host: ${authority}`);
    assert.match(await rawClient(plane.port, upgrade).closed(), /^HTTP\/1\.1 508 /, host);
  }
});

test("another data plane is no loop: a chain of gateways serves, and a circle of them ends", async (t) => {
  const one = await start(t, route("r", [to("b")]), dynamicBackend());
  const two = await start(t, route("r", [to("b")]));
  await two.set(staticBackend("b", one.port, undefined, "127.0.0.1"));
  const authority = `127.0.0.1:${two.port}`;
  const bytes = POST.replace("Host: a", `Host: ${authority}`);
  // One sends it to two, two back to one with the name of one in the field.
  assert.match(await rawClient(one.port, bytes).closed(), /^HTTP\/1\.1 508 /);
  assert.equal(one.answered() + two.answered(), 3);
});

test("threads of one data plane are one station", async (t) => {
  const plane = await startWorkers(t, [listener(), route("r", [to("b")]), dynamicBackend()]);
  for (let made = 0; made < 10; made++) {
    const bytes = POST.replace("Host: a", `Host: 127.0.0.1:${plane.port}`);
    assert.match(await rawClient(plane.port, bytes).closed(), /^HTTP\/1\.1 508 /);
  }
  await plane.workers.refresh();
  assert.equal(countRequests(plane.metrics), 20);
});

test("a mirrored copy and each attempt say that they came through here", async (t) => {
  const upstream = await startStrictUpstream(t);
  const copy = create(MirrorSchema, { backend: "backend/default/m", numerator: 1, denominator: 1 });
  const plane = await start(
    t,
    route("r", [
      to("b", { filters: [{ filter: { case: "mirror", value: copy } }], retry: { attempts: 1, codes: [200] } }),
    ]),
    staticBackend("b", upstream.port),
    staticBackend("m", upstream.port),
  );
  await rawClient(plane.port, POST.replace("Host: a", "Host: a\r\nCDN-Loop: other")).closed();
  const seen: string[] = [];
  // The copy may arrive after the answer.
  while (seen.length < 3) {
    seen.push(...upstream.take().requests.map(({ bytes }) => /\r\ncdn-loop: ([^\r]*)/.exec(bytes)?.[1] ?? ""));
    await new Promise(setImmediate);
  }
  assert.deepEqual(seen, ["other, gwproxy", "other, gwproxy", "other, gwproxy"]);
});
