import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { TunnelRelay } from "../../../../src/proxy/listeners/tunnel-relay.ts";

const HALF_CLOSED_MS = 30_000;

interface Pair {
  /** In a test's hands. */
  readonly far: Socket;
  /** The other end, for the joint. */
  readonly near: Socket;
}

async function pair(t: TestContext): Promise<Pair> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const far = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true });
  const [near] = (await once(server, "connection")) as [Socket];
  server.close();
  for (const socket of [far, near]) {
    socket.on("error", () => undefined);
    t.after(() => void socket.destroy());
  }
  return { far, near };
}

async function heard(socket: Socket, text: string): Promise<void> {
  let all = "";
  for (;;) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    all += chunk.toString();
    if (all.includes(text)) return;
  }
}

test("each direction ends for itself, and the counts are those of both", async (t) => {
  const [client, upstream] = [await pair(t), await pair(t)];
  const over = Promise.withResolvers<TunnelRelay>();
  new TunnelRelay(client.near, upstream.near, over.resolve).start();
  client.far.end("hello");
  await heard(upstream.far, "hello");
  upstream.far.resume();
  upstream.far.write("still ");
  upstream.far.end("here");
  await heard(client.far, "still here");
  const { fromClient, fromUpstream } = await over.promise;
  assert.deepEqual([fromClient, fromUpstream], [5, 10]);
});

test("when one direction has ended the other has half a minute", async (t) => {
  const [client, upstream] = [await pair(t), await pair(t)];
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const over = Promise.withResolvers<TunnelRelay>();
  new TunnelRelay(client.near, upstream.near, over.resolve).start();
  upstream.far.resume();
  client.far.end();
  await once(upstream.far, "end");
  t.mock.timers.tick(HALF_CLOSED_MS - 1);
  upstream.far.write("in time");
  await heard(client.far, "in time");
  t.mock.timers.tick(1);
  await over.promise;
  assert.ok(client.near.destroyed && upstream.near.destroyed);
});

test("a side that is gone takes the other with it, whatever that one still says", async (t) => {
  const [client, upstream] = [await pair(t), await pair(t)];
  const over = Promise.withResolvers<TunnelRelay>();
  new TunnelRelay(client.near, upstream.near, over.resolve).start();
  upstream.far.on("end", () => upstream.far.end("x".repeat(1_000_000)));
  upstream.far.resume();
  client.far.end();
  await once(upstream.far, "end");
  client.far.destroy();
  await over.promise;
  assert.ok(upstream.near.destroyed);
});
