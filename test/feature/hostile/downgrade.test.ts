/** Requests of HTTP/2 that mean to be more than one request of HTTP/1.1, through a gateway to an upstream that reads strictly. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpVersion } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { endpoints, listener, route, serviceBackend, startDataPlane, to } from "../../support/gateway/data-plane.ts";
import {
  codeOf,
  END_STREAM,
  FRAME,
  frame,
  frameClient,
  headers,
  statusOf,
} from "../../support/clients/http2-frames.ts";
import { startStrictUpstream } from "../../support/servers/strict-upstream.ts";
import { HOSTILE_STREAMS, type HostileStream } from "./streams.ts";

const PROBE = [":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/probe"];
const PROTOCOL_ERROR = 1;

async function play(port: number, { fields, data, trailers }: HostileStream): Promise<HostileStream["outcome"]> {
  const client = frameClient(port);
  const bare = data === undefined && trailers === undefined;
  client.send(headers(1, fields, bare ? END_STREAM : 0));
  if (data !== undefined) client.send(frame(FRAME.data, trailers === undefined ? END_STREAM : 0, 1, data));
  if (trailers !== undefined) client.send(headers(1, trailers));
  const found = await client.until(
    ({ type, stream }) => type === FRAME.goaway || (stream === 1 && (type === FRAME.headers || type === FRAME.reset)),
  );
  if (found === undefined || found.type === FRAME.goaway) {
    await client.closed;
    return "ended";
  }
  client.send(headers(3, PROBE));
  const next = await client.until(({ type, stream }) => type === FRAME.headers && stream === 3);
  assert.ok(next !== undefined, "the connection has not outlived the stream");
  assert.equal(statusOf(next), 200);
  client.socket.destroy();
  if (found.type === FRAME.headers) return statusOf(found);
  assert.equal(codeOf(found), PROTOCOL_ERROR);
  return "reset";
}

test("a request of HTTP/2 becomes one request of HTTP/1.1, or none", async (t) => {
  const upstream = await startStrictUpstream(t);
  const backend = serviceBackend("backend/default/b", upstream.port, HttpVersion.HTTP1);
  const found = endpoints("backend/default/b", [upstream.port]);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), backend, found]);
  t.after(() => plane.proxy.close());
  for (const row of HOSTILE_STREAMS) {
    await t.test(row.name, { timeout: 30_000 }, async () => {
      upstream.take();
      const outcome = await play(plane.port, row);
      const { requests, faults } = upstream.take();
      const seen = requests
        .filter(({ target }) => target !== "/probe")
        .map(({ bytes }) => bytes.replace(/(?<=\r\nx-(?:request-id|forwarded-port): )[0-9a-f-]+(?=\r\n)/g, "*"))
        .filter((bytes) => bytes !== row.mayReach);
      assert.deepEqual(faults, []);
      assert.equal(outcome, row.outcome);
      assert.deepEqual(seen, row.upstream);
    });
  }
});
