/** What the access log says about calls to a backend: the status of gRPC, and how often a request was tried again. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createAccessLog } from "../../../src/telemetry/access-log.ts";
import { startFlaky } from "../../support/servers/flaky.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { contextOf } from "../../support/proofs/prove.ts";

interface Logged {
  readonly gateway: TestGateway;
  /** The lines so far, parsed. */
  lines(): Record<string, unknown>[];
}

async function start(t: TestContext, port: number): Promise<Logged> {
  let written = "";
  const accessLog = createAccessLog({
    format: "json",
    write: (lines) => {
      written += lines;
      return true;
    },
  });
  t.after(() => accessLog.close());
  const policy = routePolicy("again", "web", "  traffic: {retry: {attempts: 2, codes: [503]}}");
  const manifests = documents(GATEWAY, staticBackend("web", port), route("web", "web"), policy);
  const gateway = await startGateway(contextOf(t), manifests, { telemetry: { accessLog } });
  return {
    gateway,
    lines() {
      accessLog.flush();
      return written
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    },
  };
}

test("a line says the gRPC status, that of the trailers before that of the headers, and nothing for other requests", async (t) => {
  const upstream = await startHttp2Upstream(t, (stream, headers) => {
    const head = { ":status": 200, "content-type": headers["content-type"], "grpc-status": "3" };
    if (headers[":path"] === "/headers") {
      stream.respond(head, { endStream: true });
      return;
    }
    stream.respond(head, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "7" }));
    stream.end("message");
  });
  const { gateway, lines } = await start(t, upstream.port);
  const session = await connectHttp2(gateway.url());
  t.after(() => session.destroy());
  for (const [path, type] of [
    ["/headers", "application/grpc"],
    ["/trailers", "application/grpc+proto"],
    ["/trailers", "text/plain"],
  ])
    await sendHttp2(
      session,
      { ":method": "POST", ":path": path, ":authority": "web", "content-type": type },
      { body: "x" },
    );
  assert.deepEqual(
    lines().map((line) => line["grpc.status"]),
    [3, 7, undefined],
  );
});

test("a line says how often a request was tried again, and nothing when it was not", async (t) => {
  const flaky = await startFlaky(contextOf(t), [503, 503, 200, 200]);
  const { gateway, lines } = await start(t, flaky.port);
  for (let asked = 0; asked < 2; asked++) assert.equal((await call(gateway.url())).status, 200);
  assert.deepEqual(
    lines().map((line) => line["retry.attempt"]),
    [2, undefined],
  );
});
