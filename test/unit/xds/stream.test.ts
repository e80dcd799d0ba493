import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import type { Resource } from "../../../src/ir/resource.ts";
import { createXdsClient, type XdsClient, type XdsClientOptions } from "../../../src/xds/client/connection.ts";
import type { RejectedResource } from "../../../src/xds/nack.ts";
import { createXdsServer, type XdsServer, type XdsServerOptions } from "../../../src/xds/server/discovery.ts";
import { SEND_ORDER, typeUrlOf } from "../../../src/xds/codec.ts";
import type { AckedResource } from "../../../src/xds/server/session.ts";
import { selfSigned } from "./certificate.ts";
import { backend, dataPlane, endpoints, keysOf, listener, policy, quiet, route, testFeed, watch } from "./resources.ts";
import type { DataPlane, TestFeed } from "./resources.ts";

const GATEWAY = "a/gw";

interface Answers {
  readonly acked: AckedResource[];
  readonly nacked: RejectedResource[];
  until(condition: () => boolean): Promise<void>;
}

interface Running extends Answers {
  readonly server: XdsServer;
  readonly port: number;
}

async function serve(t: TestContext, feed: TestFeed, more: Partial<XdsServerOptions> = {}, port = 0): Promise<Running> {
  const acked: AckedResource[] = [];
  const nacked: RejectedResource[] = [];
  const watched = watch();
  const server = createXdsServer({
    log: quiet,
    feed,
    onAck(_gateway, resources) {
      acked.push(...resources);
      watched.changed();
    },
    onNack(_gateway, refused) {
      nacked.push(...refused);
      watched.changed();
    },
    ...more,
  });
  t.after(() => server.stop());
  return { server, port: await server.listen({ host: "127.0.0.1", port }), acked, nacked, until: watched.until };
}

function follow(t: TestContext, port: number, plane: DataPlane, more: Partial<XdsClientOptions> = {}): XdsClient {
  const client = createXdsClient({
    address: `127.0.0.1:${port}`,
    gateway: GATEWAY,
    log: quiet,
    apply: plane.apply,
    backoff: { initialMs: 5, maxMs: 20 },
    ...more,
  });
  t.after(() => client.stop());
  client.start();
  return client;
}

const everyType = (): Resource[] => [
  route("r"),
  listener("http"),
  policy("p"),
  endpoints("s", "10.0.0.1"),
  backend("b"),
];

test("the first state of every type is applied as one update, and everything in it is acknowledged", async (t) => {
  const resources = everyType();
  const running = await serve(t, testFeed({ [GATEWAY]: resources }));
  const plane = dataPlane();
  const client = follow(t, running.port, plane);
  await client.ready;
  assert.equal(plane.updates.length, 1);
  assert.deepEqual(
    new Map([...plane.state].sort()),
    new Map(resources.map(({ type, key, version }): [string, string] => [`${type} ${key}`, version]).sort()),
  );
  await running.until(() => running.acked.length === resources.length);
  assert.deepEqual(
    running.acked.map(({ key, version }) => `${key} ${version}`).sort(),
    resources.map(({ key, version }) => `${key} ${version}`).sort(),
  );
  assert.equal(client.connected(), true);
  assert.equal(running.server.connected(GATEWAY), 1);
});

test("a controller that takes connections and never answers is tried again", async (t) => {
  const held = new Set<Socket>();
  const silent = createServer((socket) => held.add(socket)).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo; // of a server that listens on a port
  const reasons: unknown[] = [];
  const log = { ...quiet, warn: (_: string, { reason }: { reason?: unknown } = {}) => void reasons.push(reason) };
  const client = follow(t, port, dataPlane(), { log, connectWithinMs: 20 });
  while (held.size < 2) await once(silent, "connection");
  for (const socket of held) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
  await serve(t, testFeed(), {}, port);
  await client.ready;
  assert.equal(reasons[0], "no connection within 20 ms");
});

test("an empty state makes a data plane ready too", async (t) => {
  const running = await serve(t, testFeed());
  const plane = dataPlane();
  await follow(t, running.port, plane).ready;
  assert.deepEqual(plane.updates, [{ set: [], removed: [] }]);
});

test("a change of one route sends that route and nothing else", async (t) => {
  const feed = testFeed({ [GATEWAY]: everyType() });
  const running = await serve(t, feed);
  const plane = dataPlane();
  await follow(t, running.port, plane).ready;
  const changed = route("r", "/v2");
  feed.change(GATEWAY, [changed]);
  await plane.until(() => plane.updates.length === 2);
  assert.deepEqual(keysOf(plane.updates[1]), { set: [changed.key], removed: [] });
  assert.equal(plane.state.get(`HttpRoute ${changed.key}`), changed.version);
});

test("a removal is sent by name, after everything that replaces it", async (t) => {
  const feed = testFeed({ [GATEWAY]: [backend("old"), route("r", "/old")] });
  const running = await serve(t, feed);
  const plane = dataPlane();
  await follow(t, running.port, plane).ready;
  feed.change(GATEWAY, [route("r", "/new"), backend("new")], [{ type: "Backend", key: "backend/a/old" }]);
  await plane.until(() => !plane.state.has("Backend backend/a/old"));
  const order = plane.updates.slice(1).flatMap((update) => {
    const { set, removed } = keysOf(update);
    return [...set, ...removed.map((key) => `-${key}`)];
  });
  assert.deepEqual(order, ["backend/a/new", "httproute/a/r", "-backend/a/old"]);
});

test("a data plane of another Gateway sees nothing of it", async (t) => {
  const feed = testFeed({ [GATEWAY]: everyType(), "b/gw": [backend("theirs")] });
  const running = await serve(t, feed);
  const [mine, theirs] = [dataPlane(), dataPlane()];
  await follow(t, running.port, mine).ready;
  await follow(t, running.port, theirs, { gateway: "b/gw" }).ready;
  assert.deepEqual([...theirs.state.keys()], ["Backend backend/a/theirs"]);
  feed.change(GATEWAY, [route("r", "/v2")]);
  feed.change("b/gw", [backend("theirs", "10.0.0.9")]);
  await Promise.all([mine.until(() => mine.updates.length === 2), theirs.until(() => theirs.updates.length === 2)]);
  assert.deepEqual(keysOf(theirs.updates[1]).set, ["backend/a/theirs"]);
  assert.deepEqual(keysOf(mine.updates[1]).set, ["httproute/a/r"]);
});

test("a refused resource is named to the controller, and the rest of the response is acknowledged", async (t) => {
  const feed = testFeed({ [GATEWAY]: [policy("good"), policy("bad"), route("r")] });
  const running = await serve(t, feed);
  const plane = dataPlane();
  plane.refuses.set("policy/a/bad", "units[0]: the expression does not compile\nline 2");
  const client = follow(t, running.port, plane);
  await client.ready;
  await running.until(() => running.nacked.length > 0 && running.acked.length === 2);
  assert.deepEqual(running.nacked, [
    { type: "Policy", key: "policy/a/bad", reason: "units[0]: the expression does not compile\nline 2" },
  ]);
  assert.deepEqual(running.acked.map(({ key }) => key).sort(), ["httproute/a/r", "policy/a/good"]);
  const [connected, ...others] = running.server.dataPlanes();
  assert.deepEqual([connected?.gateway, others.length], [GATEWAY, 0]);
  const policies = connected?.sync[typeUrlOf("Policy")];
  assert.deepEqual([policies?.resources, policies?.unanswered], [2, 0]);
  assert.notEqual(policies?.acknowledgedAt, null);
  assert.deepEqual(
    policies?.refused.map(({ key, reason }) => [key, reason]),
    [["policy/a/bad", "units[0]: the expression does not compile\nline 2"]],
  );
  assert.equal(connected?.sync[typeUrlOf("Bind")]?.acknowledgedAt, null, "nothing of this type was acknowledged");

  plane.refuses.clear();
  const mended = policy("bad", 7n);
  feed.change(GATEWAY, [mended]);
  await running.until(() => running.acked.some(({ version }) => version === mended.version));
  assert.deepEqual(running.server.dataPlanes()[0]?.sync[typeUrlOf("Policy")]?.refused, []);
});

test("when apply throws, every resource of the update is refused", async (t) => {
  const running = await serve(t, testFeed({ [GATEWAY]: [route("r")] }));
  const plane = dataPlane();
  follow(t, running.port, plane, { apply: () => Promise.reject(new Error("the workers are gone")) });
  await running.until(() => running.nacked.length > 0);
  assert.deepEqual(running.nacked, [{ type: "HttpRoute", key: "httproute/a/r", reason: "the workers are gone" }]);
  assert.deepEqual(running.acked, []);
});

test("a data plane without its controller goes on, and a reconnect sends only what differs", async (t) => {
  const feed = testFeed({ [GATEWAY]: [backend("same"), backend("gone"), route("r", "/1"), policy("bad")] });
  const first = await serve(t, feed);
  const plane = dataPlane();
  plane.refuses.set("policy/a/bad", "no");
  const client = follow(t, first.port, plane);
  await client.ready;
  await first.until(() => first.nacked.length === 1);
  first.server.stop();
  feed.change(GATEWAY, [route("r", "/2"), route("new")], [{ type: "Backend", key: "backend/a/gone" }]);
  assert.equal(plane.updates.length, 1);

  const second = await serve(t, feed, {}, first.port);
  await plane.until(() => plane.updates.length === 2);
  assert.deepEqual(
    { set: keysOf(plane.updates[1]).set.sort(), removed: keysOf(plane.updates[1]).removed },
    { set: ["httproute/a/new", "httproute/a/r", "policy/a/bad"], removed: ["backend/a/gone"] },
  );
  await second.until(() => second.acked.length === 3 && second.nacked.length === 1);
  assert.deepEqual(
    second.acked.map(({ key }) => key).sort(),
    ["backend/a/same", "httproute/a/new", "httproute/a/r"],
    "what was kept counts as acknowledged to a controller that has just started",
  );
});

test("changes of one tick travel together", async (t) => {
  const feed = testFeed();
  const running = await serve(t, feed);
  const plane = dataPlane();
  await follow(t, running.port, plane).ready;
  for (let index = 0; index < 50; index += 1) feed.change(GATEWAY, [route(`r${index}`)]);
  feed.change(GATEWAY, [route("r0", "/last")]);
  await plane.until(() => plane.updates.length > 1);
  assert.equal(plane.updates[1]?.set.length, 50);
  assert.equal(plane.state.get("HttpRoute httproute/a/r0"), route("r0", "/last").version);
});

test("what arrives while an update is being applied waits and is applied as one update", async (t) => {
  const feed = testFeed();
  const running = await serve(t, feed);
  const plane = dataPlane();
  const held = Promise.withResolvers<void>();
  let busy = 0;
  const client = follow(t, running.port, plane, {
    async apply(update) {
      busy += 1;
      assert.equal(busy, 1, "apply is never entered twice");
      if (update.set.some(({ key }) => key === "httproute/a/slow")) await held.promise;
      busy -= 1;
      return plane.apply(update);
    },
  });
  await client.ready;
  feed.change(GATEWAY, [route("slow")]);
  await plane.until(() => plane.updates.length === 1);
  feed.change(GATEWAY, [policy("p")]);
  feed.change(GATEWAY, [route("slow", "/2")]);
  held.resolve();
  await plane.until(() => plane.state.get("HttpRoute httproute/a/slow") === route("slow", "/2").version);
  assert.equal(plane.state.has("Policy policy/a/p"), true);
});

test("a stream without a valid token is refused, and its data plane is not ready", async (t) => {
  const asked = watch();
  const tokens: (string | undefined)[] = [];
  const running = await serve(t, testFeed({ [GATEWAY]: everyType() }), {
    async authorize({ gateway, token }) {
      tokens.push(token);
      asked.changed();
      return token === "valid" && gateway === GATEWAY ? { allowed: true } : { allowed: false, reason: "not that one" };
    },
  });
  const stranger = dataPlane();
  let token = "wrong";
  const client = follow(t, running.port, stranger, { token: () => token });
  await asked.until(() => tokens.length >= 2);
  assert.deepEqual(stranger.updates, []);
  assert.equal(client.connected(), false);
  assert.equal(running.server.connected(GATEWAY), 0);
  token = "valid";
  await client.ready;
  assert.equal(stranger.updates.length, 1);
});

test("when the token cannot be reviewed nothing is sent", async (t) => {
  const asked = watch();
  let reviews = 0;
  const running = await serve(t, testFeed({ [GATEWAY]: everyType() }), {
    authorize() {
      reviews += 1;
      asked.changed();
      return Promise.reject(new Error("the API server is away"));
    },
  });
  const plane = dataPlane();
  follow(t, running.port, plane, { token: () => "valid" });
  await asked.until(() => reviews >= 2);
  assert.deepEqual(plane.updates, []);
});

test("a data plane that leaves is forgotten", async (t) => {
  const feed = testFeed({ [GATEWAY]: everyType() });
  const closed = watch();
  const running = await serve(t, {
    ...feed,
    subscribe(gateway, listener) {
      const end = feed.subscribe(gateway, listener);
      return () => {
        end();
        closed.changed();
      };
    },
  });
  const client = follow(t, running.port, dataPlane());
  await client.ready;
  assert.equal(feed.listeners(), 1);
  await client.stop();
  await closed.until(() => feed.listeners() === 0);
  await closed.until(() => running.server.dataPlanes().length === 0);
  assert.deepEqual([...running.server.connections()], []);
});

test("over TLS the controller is verified, and its certificate can be replaced while it runs", async (t) => {
  const [one, two] = [selfSigned("localhost"), selfSigned("localhost")];
  const feed = testFeed({ [GATEWAY]: everyType() });
  const running = await serve(t, feed, { tls: one });
  const address = `https://localhost:${running.port}`;
  const first = dataPlane();
  await follow(t, running.port, first, { address, tls: { ca: one.certificate } }).ready;
  running.server.replaceCertificate(two);
  await follow(t, running.port, dataPlane(), { address, tls: { ca: two.certificate } }).ready;
  feed.change(GATEWAY, [route("after")]);
  await first.until(() => first.state.has("HttpRoute httproute/a/after"));
});

test("with both on one port, data planes connect with TLS and without", async (t) => {
  const certificate = selfSigned("localhost");
  const running = await serve(t, testFeed({ [GATEWAY]: everyType() }), { tls: certificate, alsoPlaintext: true });
  const [secure, plain] = [dataPlane(), dataPlane()];
  const address = `https://localhost:${running.port}`;
  await follow(t, running.port, secure, { address, tls: { ca: certificate.certificate } }).ready;
  await follow(t, running.port, plain).ready;
  assert.deepEqual(secure.state, plain.state);
  assert.equal(running.server.connected(GATEWAY), 2);
});

test("a certificate that is not trusted leaves the data plane without a state", async (t) => {
  const [served, trusted] = [selfSigned("localhost"), selfSigned("localhost")];
  const refused = watch();
  let attempts = 0;
  const running = await serve(t, testFeed({ [GATEWAY]: everyType() }), { tls: served });
  const plane = dataPlane();
  const client = follow(t, running.port, plane, {
    address: `https://localhost:${running.port}`,
    tls: { ca: trusted.certificate },
    token() {
      attempts += 1;
      refused.changed();
      return "valid";
    },
  });
  await refused.until(() => attempts >= 2);
  assert.equal(client.connected(), false);
  assert.deepEqual(plane.updates, []);
});

test("messages are counted with their bytes, and each end of a stream with its reason", async (t) => {
  const first = await serve(t, testFeed({ [GATEWAY]: everyType() }));
  const ends: string[] = [];
  const messages = new Map<string, number>();
  const watched = watch();
  const meter = {
    message(typeUrl: string, bytes: number) {
      messages.set(typeUrl, (messages.get(typeUrl) ?? 0) + bytes);
    },
    ended(reason: string) {
      ends.push(reason);
      watched.changed();
    },
  };
  const client = follow(t, first.port, dataPlane(), { meter });
  await client.ready;
  // Each type is answered, also where there is nothing of it.
  assert.equal(messages.size, SEND_ORDER.length);
  for (const bytes of messages.values()) assert.ok(bytes > 10);
  assert.equal(ends.length, 0);
  await first.server.stop();
  await watched.until(() => ends.includes("ConnectionError"));
  assert.notEqual(ends[0], "ConnectionError");
});
