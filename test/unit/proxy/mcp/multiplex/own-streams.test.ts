/** What targets send on their own: the merged GET stream, and the notifications that a client subscribed to. */
import assert from "node:assert/strict";
import { syncBuiltinESMExports } from "node:module";
import { describe, it } from "node:test";
import { McpPrefixMode } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { McpError } from "../../../../../src/proxy/mcp/mcp-error.ts";
import { Naming } from "../../../../../src/proxy/mcp/multiplex/naming/names.ts";
import { createVirtualServer } from "../../../../../src/proxy/mcp/multiplex/virtual-server.ts";
import type { McpAnswer } from "../../../../../src/proxy/mcp/targets/target.ts";
import {
  MessageChannel,
  openReader,
  scriptedTarget,
  testServer,
  testSession,
} from "../../../../support/servers/scripted-target.ts";

/** Resolves when everything that waits for no timer has run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("the stream of messages that targets send on their own", () => {
  const updated = (uri: string) => ({ method: "notifications/resources/updated", params: { uri } });

  it("merges the streams of all targets that offer one", async () => {
    const [a, b] = [new MessageChannel(), new MessageChannel()];
    const targets = ["a", "b", "c"].map((name) => scriptedTarget(name, {}));
    const [first, second] = targets;
    assert.ok(first && second);
    first.streams = [a];
    second.streams = [b];
    const answer = await testServer(targets).listen();
    const next = openReader(answer);
    b.send(updated("x:1"));
    assert.deepEqual((await next())?.params, { uri: "b+x:1" });
    a.send({ id: 1, method: "roots/list" });
    assert.equal((await next())?.id, "gw_a_n_1");
    answer.cancel();
    assert.deepEqual([first.cancelled, second.cancelled], [1, 1]);
    assert.equal(await next(), undefined);
  });

  it("is not offered when no target offers one", async () => {
    const targets = ["a", "b"].map((name) => scriptedTarget(name, {}));
    assert.equal((await testServer(targets).listen()).status, 405);
    assert.equal((await testServer(targets.slice(1)).listen()).status, 405);
  });

  it("begins before servers answer that send no head without a message", async () => {
    const late = Promise.withResolvers<McpAnswer>();
    const [a, b] = ["a", "b"].map((name) => scriptedTarget(name, {}));
    assert.ok(a && b);
    const channel = new MessageChannel();
    a.streams = [channel];
    const slow = { ...b, listen: () => late.promise };
    const answer = await testServer([a, slow]).listen();
    const next = openReader(answer);
    channel.send(updated("x:1"));
    assert.deepEqual((await next())?.params, { uri: "a+x:1" });
    const another = new MessageChannel();
    b.streams = [another];
    late.resolve(b.listen(testSession(), {} as Parameters<typeof b.listen>[1]));
    another.send(updated("x:2"));
    assert.deepEqual((await next())?.params, { uri: "b+x:2" });
    answer.cancel();
  });

  it("fails with a server that fails, unless such servers are left out", async () => {
    const [a, b] = ["a", "b"].map((name) => scriptedTarget(name, {}));
    assert.ok(a && b);
    const broken = { ...b, listen: () => Promise.reject(new McpError(-32_603, "broken", { status: 500 })) };
    await assert.rejects(testServer([broken, a]).listen(), { message: "broken" });
    const channel = new MessageChannel();
    a.streams = [channel];
    const answer = await testServer([broken, a], { failOpen: true }).listen();
    channel.send(updated("x:1"));
    assert.deepEqual((await openReader(answer)())?.params, { uri: "a+x:1" });
    answer.cancel();
  });

  it("keeps one announcement for a client that does not read", async () => {
    const [a, b] = ["a", "b"].map((name) => scriptedTarget(name, {}));
    assert.ok(a && b);
    Object.assign(a, { streams: [new MessageChannel()] });
    const { options, listen } = testServer([a]);
    const answer = await listen();
    for (const targets of [[a, b], [a], [a, b], [a]])
      createVirtualServer({ ...options, naming: new Naming(McpPrefixMode.UNSPECIFIED, targets) });
    const next = openReader(answer);
    for (const list of ["tools", "prompts", "resources"])
      assert.equal((await next())?.method, `notifications/${list}/list_changed`);
    answer.cancel();
    assert.equal(await next(), undefined);
  });

  it("asks a target less and less often that ends its streams at once", async (context) => {
    context.mock.timers.enable({ apis: ["setTimeout"] });
    // Modules that import the timers by name see the change of a built-in module only then.
    syncBuiltinESMExports();
    context.after(() => {
      context.mock.timers.reset();
      syncBuiltinESMExports();
    });
    let nowMs = 0;
    context.mock.method(performance, "now", () => nowMs);
    let channel = new MessageChannel();
    let opened = 0;
    const a = scriptedTarget("a", {});
    const counting = {
      ...a,
      listen: (...parameters: Parameters<typeof a.listen>) => {
        opened++;
        a.streams = [(channel = new MessageChannel())];
        return a.listen(...parameters);
      },
    };
    const answer = await testServer([counting, scriptedTarget("b", {})]).listen();
    const next = openReader(answer);
    let message = next();
    await settle();
    /** Ends the stream and returns after how many milliseconds the target was asked for another one. */
    const reopen = async (): Promise<number> => {
      const before = opened;
      channel.end();
      await settle();
      for (let waitedMs = 0; waitedMs < 60_000; waitedMs += 500) {
        if (opened > before) return waitedMs;
        context.mock.timers.tick(500);
        nowMs += 500;
        await settle();
      }
      return Infinity;
    };
    const waits: number[] = [];
    for (let round = 0; round < 7; round++) waits.push(await reopen());
    assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    channel.send(updated("x:1"));
    assert.deepEqual((await message)?.params, { uri: "a+x:1" });
    message = next();
    assert.deepEqual([await reopen(), await reopen()], [1_000, 2_000], "a message shows that streams are of use");
    nowMs += 30_001;
    assert.deepEqual([await reopen(), await reopen()], [1_000, 2_000], "so does a stream that lasts");
    answer.cancel();
    assert.equal(await message, undefined);
  });

  it("tells of targets that come and go, and goes on with the others", async () => {
    const [a, b, c] = [new MessageChannel(), new MessageChannel(), new MessageChannel()];
    const targets = ["a", "b", "c"].map((name) => scriptedTarget(name, {}));
    for (const [index, channel] of [a, b, c].entries()) Object.assign(targets[index] ?? {}, { streams: [channel] });
    const { options, listen } = testServer(targets.slice(0, 2));
    const answer = await listen();
    const next = openReader(answer);
    createVirtualServer({ ...options, naming: new Naming(McpPrefixMode.UNSPECIFIED, targets.slice(1)) });
    const changes = [await next(), await next(), await next()].map((message) => message?.method);
    assert.deepEqual(
      changes,
      ["tools", "prompts", "resources"].map((list) => `notifications/${list}/list_changed`),
    );
    assert.equal(targets[0]?.cancelled, 1);
    c.send(updated("x:1"));
    assert.deepEqual((await next())?.params, { uri: "c+x:1" });
    b.send(updated("x:2"));
    assert.deepEqual((await next())?.params, { uri: "b+x:2" });
    createVirtualServer({ ...options, naming: new Naming(McpPrefixMode.UNSPECIFIED, targets.slice(1)) });
    b.send(updated("x:3"));
    assert.deepEqual((await next())?.params, { uri: "b+x:3" }, "the same targets are no change");
    answer.cancel();
  });
});

describe("subscriptions/listen", () => {
  const ID = "io.modelcontextprotocol/subscriptionId";
  const ack = (notifications: unknown) => ({
    method: "notifications/subscriptions/acknowledged",
    params: { notifications },
  });

  it("asks each target for its part and acknowledges once", async () => {
    const channels = [new MessageChannel(), new MessageChannel(), new MessageChannel()];
    const targets = channels.map((stream, index) =>
      scriptedTarget(`t${index}`, {
        "subscriptions/listen": () => ({ stream }),
        "resources/read": ({ params }) =>
          params?.["uri"] === "x:8"
            ? { error: { code: -32_602, message: "no such resource" } }
            : { result: { contents: [{ uri: params?.["uri"], text: "" }] } },
      }),
    );
    const server = testServer(targets, {
      version: "2026-07-28",
      // Where rules are configured, resources that are absent are left out like those that are hidden.
      authorize: () => (_kind, _target, name) => name !== "x:9",
    });
    const resourceSubscriptions = ["t0+x:1", "t1+x:8", "t1+x:2", "t1+x:9", "t2+x:8", "t3+x:3"];
    const opened = server.open("subscriptions/listen", { notifications: { resourceSubscriptions } }, "s");
    channels[1]?.send(ack({ resourceSubscriptions: ["x:2"] }));
    channels[0]?.send(ack({ resourceSubscriptions: ["x:1"] }));
    const answer = await opened;
    const next = openReader(answer);
    assert.deepEqual((await next())?.params, {
      notifications: { resourceSubscriptions: ["t0+x:1", "t1+x:2"] },
      _meta: { [ID]: "s" },
    });
    assert.deepEqual(
      targets.map(({ received }) => received.find(({ method }) => method === "subscriptions/listen")?.params),
      [
        { notifications: { resourceSubscriptions: ["x:1"] } },
        { notifications: { resourceSubscriptions: ["x:2"] } },
        undefined,
      ],
    );
    channels[1]?.send({ method: "notifications/resources/updated", params: { uri: "x:2", _meta: { [ID]: "s" } } });
    assert.deepEqual((await next())?.params, { uri: "t1+x:2", _meta: { [ID]: "s" } });
    channels[0]?.send({ id: "s", result: { resultType: "complete", _meta: { [ID]: "s" } } });
    const last = await next();
    assert.deepEqual([last?.id, last?.result], ["s", { resultType: "complete", _meta: { [ID]: "s" } }]);
    assert.deepEqual(
      targets.map(({ cancelled }) => cancelled),
      [1, 1, 0],
    );
  });

  it("announces targets that come and go to clients that asked for it", async () => {
    const targets = ["a", "b"].map((name) =>
      scriptedTarget(name, { "subscriptions/listen": () => ({ result: {}, before: [ack({})] }) }),
    );
    const { options, open } = testServer([...targets, scriptedTarget("c", {})], { version: "2026-07-28" });
    const answer = await open("subscriptions/listen", {
      notifications: { toolsListChanged: true, promptsListChanged: false },
    });
    const next = openReader(answer);
    assert.deepEqual((await next())?.params, { notifications: { toolsListChanged: true }, _meta: { [ID]: 1 } });
    createVirtualServer({ ...options, naming: new Naming(McpPrefixMode.UNSPECIFIED, targets) });
    const change = await next();
    assert.deepEqual([change?.method, change?.params], ["notifications/tools/list_changed", { _meta: { [ID]: 1 } }]);
    answer.cancel();
  });
});
