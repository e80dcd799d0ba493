/** Requests that mean to be read twice, through a gateway to an upstream that reads them once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AuthorizationAction,
  AuthorizationSchema,
  Phase,
  TransformationChoiceSchema,
  type TransformationSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import {
  listener,
  LISTENER,
  policy,
  prefix,
  rawClient,
  route,
  startDataPlane,
  staticBackend,
  to,
  type Rule,
} from "../../support/gateway/data-plane.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { FRAME, frame, frameClient, headers } from "../../support/clients/http2-frames.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { startStrictUpstream } from "../../support/servers/strict-upstream.ts";
import { DOT_SEGMENTS, NO_DOT_SEGMENTS } from "./dot-segments.ts";
import { FRAMING } from "./framing.ts";
import { HEADS } from "./heads.ts";
import type { HostileRequest } from "./hostile-request.ts";

const PROBE = "GET /probe HTTP/1.1\r\nHost: a\r\n\r\n";

/** @returns the statuses of the answers, in order */
async function play(port: number, { bytes, closed, ends }: HostileRequest): Promise<number[]> {
  const client = rawClient(port, bytes);
  if (ends === true) client.socket.end();
  let text: string;
  if (closed) text = await client.closed();
  else {
    client.socket.write(PROBE);
    await client.until(/answer \d+ to \/probe$/);
    client.socket.destroy();
    text = client.text().replace(/HTTP\/1\.1 (?:(?!HTTP\/1)[^])*to \/probe$/, "");
  }
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

test("a request that could be read twice is refused, or forwarded in the one way in which it is meant", async (t) => {
  const upstream = await startStrictUpstream(t);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  t.after(() => plane.proxy.close());
  for (const row of [...FRAMING, ...HEADS]) {
    await t.test(row.name, { timeout: 30_000 }, async () => {
      upstream.take();
      const statuses = await play(plane.port, row);
      // Whatever the row left behind has reached the upstream before this has.
      await rawClient(plane.port, PROBE).until(/probe$/);
      const { requests, faults } = upstream.take();
      const seen = requests.filter(({ target }) => target !== "/probe");
      assert.deepEqual(faults, []);
      assert.deepEqual(statuses, row.statuses);
      assert.deepEqual(
        seen.map(({ bytes }) => bytes.replace(/(?<=\r\nx-(?:request-id|forwarded-port): )[0-9a-f-]+(?=\r\n)/g, "*")),
        row.upstream,
      );
    });
  }
});

/** The path that a client names in a header field. */
const CHOSEN: MessageInitShape<typeof TransformationSchema> = {
  request: { set: [{ name: ":path", expression: 'request.headers["x-path"]' }] },
};

function transformingPolicy(name: string, phase: Phase, target: string): ReturnType<typeof policy> {
  const unit = {
    case: "transformation",
    value: create(TransformationChoiceSchema, { branches: [{ transformation: CHOSEN }] }),
  } as const;
  const at = phase === Phase.PRE_ROUTING ? "listener" : "route";
  return policy(name, { phase, targets: [{ target: { case: at, value: target } }], units: [{ unit }] });
}

test("a dot segment in a path that a policy wrote is refused like that of a client", async (t) => {
  const upstream = await startStrictUpstream(t);
  const rewritten = (path: string, change: "full" | "prefix", value: string): Rule => ({
    matches: prefix(path),
    backends: [{ weight: 1, backend: "backend/default/b" }],
    filters: [{ filter: { case: "urlRewrite", value: { path: { change: { case: change, value } } } } as const }],
  });
  const writers = {
    "before routing": [
      listener(),
      route("r", [to("b")]),
      staticBackend("b", upstream.port),
      transformingPolicy("p", Phase.PRE_ROUTING, LISTENER),
    ],
    "of the route": [
      listener(),
      route("r", [to("b")]),
      staticBackend("b", upstream.port),
      transformingPolicy("p", Phase.POST_ROUTING, "httproute/default/r"),
    ],
    "of the backend": [
      listener(),
      route("r", [to("b")]),
      staticBackend("b", upstream.port, { transformation: CHOSEN }),
    ],
  };
  for (const [place, resources] of Object.entries(writers)) {
    await t.test(`by a transformation ${place}`, async (each) => {
      const plane = await startDataPlane(resources);
      each.after(() => plane.proxy.close());
      const answerTo = async (path: string): Promise<string> =>
        rawClient(plane.port, `GET /x HTTP/1.1\r\nHost: a\r\nX-Path: ${path}\r\nConnection: close\r\n\r\n`).closed();
      for (const path of DOT_SEGMENTS) assert.match(await answerTo(path), /^HTTP\/1\.1 400 /, path);
      for (const path of NO_DOT_SEGMENTS) assert.ok((await answerTo(path)).endsWith(` to ${path}`), path);
    });
  }

  await t.test("by URLRewrite, where parts meet", async (each) => {
    const rules = [
      rewritten("/full", "full", "/a/../b"),
      rewritten("/dot", "prefix", "/."),
      rewritten("/dots", "prefix", "/a/%2e%2e"),
      rewritten("/cut", "prefix", "/a/..;"),
      rewritten("/fine", "prefix", "/a/..."),
    ];
    const plane = await startDataPlane([listener(), route("r", rules), staticBackend("b", upstream.port)]);
    each.after(() => plane.proxy.close());
    const answerTo = async (path: string): Promise<string> =>
      rawClient(plane.port, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`).closed();
    for (const path of ["/full", "/dot/x", "/dots", "/dots/x", "/cut/x"])
      assert.match(await answerTo(path), /^HTTP\/1\.1 400 /, path);
    assert.match(await answerTo("/fine/x?y=/../z"), / to \/a\/\.\.\.\/x\?y=\/\.\.\/z$/);
  });

  await t.test("a redirect says what is configured, and a mirror harms no request", async (each) => {
    const redirect = {
      matches: prefix("/go"),
      filters: [
        { filter: { case: "redirect", value: { path: { change: { case: "full", value: "/a/../b" } } } } as const },
      ],
    };
    const mirrored = to("b", {
      filters: [{ filter: { case: "mirror", value: { backend: "backend/default/m", numerator: 1, denominator: 1 } } }],
    });
    const plane = await startDataPlane([
      listener(),
      route("r", [redirect, mirrored]),
      staticBackend("b", upstream.port),
      staticBackend("m", upstream.port, { transformation: CHOSEN }),
    ]);
    each.after(() => plane.proxy.close());
    const ask = (path: string): Promise<string> =>
      rawClient(plane.port, `GET ${path} HTTP/1.1\r\nHost: a\r\nX-Path: /../m\r\nConnection: close\r\n\r\n`).closed();
    assert.match(await ask("/go"), /^HTTP\/1\.1 302 [^]*location: http:\/\/a\/a\/\.\.\/b\r\n/);
    assert.match(await ask("/x"), / to \/x$/);
  });
});

test("a rule about a host holds for every spelling of it, and a route is chosen by it", async (t) => {
  const upstream = await startStrictUpstream(t);
  const rules = [{ action: AuthorizationAction.DENY, expressions: ['request.host.startsWith("closed.test")'] }];
  const unit = { case: "authorization", value: create(AuthorizationSchema, { rules }) } as const;
  const at = { case: "listener", value: LISTENER } as const;
  const plane = await startDataPlane([
    listener(),
    route("r", [to("b")], ["closed.test", "open.test"]),
    staticBackend("b", upstream.port),
    policy("p", { phase: Phase.PRE_ROUTING, targets: [{ target: at }], units: [{ unit }] }),
  ]);
  t.after(() => plane.proxy.close());
  const answerTo = (host: string, line = "GET / HTTP/1.1"): Promise<string> =>
    rawClient(plane.port, `${line}\r\nHost: ${host}\r\nConnection: close\r\n\r\n`).closed();
  for (const host of [
    "closed.test",
    "CLOSED.TEST",
    "Closed.Test",
    "closed.test.",
    "CLOSED.test.:80",
    "closed.test:80",
  ]) {
    assert.match(await answerTo(host), /^HTTP\/1\.1 403 /, host);
    assert.match(await answerTo("open.test", `GET http://${host}/ HTTP/1.1`), /^HTTP\/1\.1 403 /, host);
    assert.match(await answerTo(host.replace(/closed/i, "Open")), /^HTTP\/1\.1 200 /, host);
    const session = await connectHttp2(plane.url);
    const { status } = await sendHttp2(session, { ":path": "/", ":authority": host });
    session.destroy();
    assert.equal(status, 403, host);
  }
});

test("a refused trailer is logged as what it is, over both versions of HTTP", async (t) => {
  const upstream = await startStrictUpstream(t);
  const log = keepLines(t);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)], {
    telemetry: { metrics: createMetrics("test"), accessLog: log.accessLog },
  });
  t.after(() => plane.proxy.close());
  const logged = async (): Promise<unknown[]> => {
    const { "http.status": status, reason } = await log.nextFields();
    return [status, reason];
  };
  for (const trailer of ["Content-Length: 1", "Transfer-Encoding: chunked", "Host: b"]) {
    await rawClient(
      plane.port,
      `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n${trailer}\r\n\r\n`,
    ).closed();
    assert.deepEqual(await logged(), [400, "InvalidRequest"], trailer);
  }
  const head = [":method", "POST", ":scheme", "http", ":authority", "a", ":path", "/"];
  for (const trailers of [
    ["content-length", "1"],
    ["host", "b"],
  ]) {
    const client = frameClient(plane.port);
    client.send(headers(1, head, 0));
    client.send(frame(FRAME.data, 0, 1, "a"));
    client.send(headers(1, trailers));
    await client.until(({ type, stream }) => stream === 1 && (type === FRAME.headers || type === FRAME.reset));
    client.socket.destroy();
    assert.deepEqual(await logged(), [400, "InvalidRequest"], trailers[0]);
  }
  assert.deepEqual(upstream.take().requests, []);
});
