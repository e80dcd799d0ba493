/** What targets say to clients besides responses, and what clients answer: order, ids, streams, failures, cancelling. */
import assert from "node:assert/strict";
import { syncBuiltinESMExports } from "node:module";
import { describe, it } from "node:test";
import { Naming } from "../../../../../src/proxy/mcp/multiplex/naming/names.ts";
import { createVirtualServer } from "../../../../../src/proxy/mcp/multiplex/virtual-server.ts";
import { McpPrefixMode } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { McpError } from "../../../../../src/proxy/mcp/mcp-error.ts";
import type { McpAnswer } from "../../../../../src/proxy/mcp/targets/target.ts";
import {
  MessageChannel,
  parse,
  readAll,
  scriptedTarget,
  testServer,
  testSession,
  type Received,
} from "../../../../support/servers/scripted-target.ts";

/** Reads messages of an answer one by one. */
function reader({ messages }: McpAnswer): () => Promise<(Received & Record<string, unknown>) | undefined> {
  async function* all() {
    yield* messages;
  }
  const iterator = all();
  return async () => {
    const { value } = await iterator.next();
    return value === undefined ? undefined : parse(value);
  };
}

/** Resolves when everything that waits for no timer has run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const LOG = { method: "notifications/message", params: { level: "info", data: "x" } };

describe("the stream of a call", () => {
  it("has notifications and requests of the target before the response", async () => {
    const question = { id: 7, method: "elicitation/create", params: { message: "?", _meta: { progressToken: 3 } } };
    const named = { id: "q", method: "roots/list" };
    const a = scriptedTarget("a", { "tools/call": () => ({ result: {}, before: [LOG, question, named] }) });
    const messages = await testServer([a, scriptedTarget("b", {})]).request("tools/call", { name: "a_x" });
    assert.deepEqual(
      messages.map(({ id, method, params }) => ({ id, method, params })),
      [
        { id: undefined, ...LOG },
        {
          id: "gw_a_n_7",
          method: "elicitation/create",
          params: { message: "?", _meta: { progressToken: "gw_a_n_3" } },
        },
        { id: "gw_a_s_q", method: "roots/list", params: undefined },
        { id: 1, method: undefined, params: undefined },
      ],
    );
    const [, single] = await testServer([a]).request("tools/call", { name: "x" });
    assert.equal(single?.id, 7);
  });

  it("names resources, tasks and cancelled requests as clients know them", async () => {
    const before = [
      { method: "notifications/resources/updated", params: { uri: "file:///x" } },
      { method: "notifications/tasks/status", params: { taskId: "7", status: "working" } },
      { method: "notifications/cancelled", params: { requestId: 7 } },
    ];
    const a = scriptedTarget("a", { "tools/call": () => ({ result: {}, before }) });
    const messages = await testServer([a, scriptedTarget("b", {})]).request("tools/call", { name: "a_x" });
    assert.deepEqual(
      messages.slice(0, 3).map(({ params }) => params),
      [{ uri: "a+file:///x" }, { taskId: "a+7", status: "working" }, { requestId: "gw_a_n_7" }],
    );
  });

  it("is held under rules only while nothing tells that the item exists", async () => {
    const channel = new MessageChannel();
    const a = scriptedTarget("a", {
      "tools/list": () => ({ result: { tools: [{ name: "open" }] } }),
      "tools/call": () => ({ stream: channel }),
    });
    const server = testServer([a, scriptedTarget("b", {})], { authorize: () => () => true });
    const ask = async (name: string) => reader(await server.open("tools/call", { name }));
    channel.send(LOG);
    const listed = await ask("a_open");
    assert.equal((await listed())?.method, LOG.method, "a server lists the tool, and has not responded yet");
    const question = { id: 7, method: "roots/list" };
    for (const message of [LOG, LOG, question]) channel.send(message);
    const unlisted = await ask("a_dynamic");
    const messages = [await unlisted(), await unlisted(), await unlisted()].map((message) => message?.method);
    assert.deepEqual(messages, [LOG.method, LOG.method, question.method], "a question passes without a response");
  });

  it("fails when a target asks a client that cannot answer", async () => {
    const question = { id: 7, method: "elicitation/create", params: { message: "?" } };
    const a = scriptedTarget("a", {
      "tools/call": () => ({ result: {}, before: [{ id: 8, method: "ping" }, question] }),
    });
    for (const options of [{ version: "2026-07-28" }, { stateless: true }])
      await assert.rejects(
        testServer([a], options).request("tools/call", { name: "x" }),
        (error) => error instanceof McpError && error.rpcCode === -32_603,
      );
  });

  it("does not tell of items that the caller may not see", async () => {
    const before = [
      { method: "notifications/resources/updated", params: { uri: "x:secret" } },
      { method: "notifications/resources/updated", params: { uri: "x:open" } },
    ];
    const a = scriptedTarget("a", { "tools/call": () => ({ result: {}, before }) });
    const server = testServer([a], { authorize: () => (_kind, _target, name) => name !== "x:secret" });
    const messages = await server.request("tools/call", { name: "x" });
    assert.deepEqual(
      messages.map(({ params }) => params),
      [{ uri: "a+x:open" }, undefined],
    );
  });
});

describe("what a client sends without waiting", () => {
  it("reaches the target whose request it answers, on a thread that never saw the request", async () => {
    const [a, b] = [scriptedTarget("a", {}), scriptedTarget("b", {})];
    const server = testServer([a, b]);
    await server.notify({ id: "gw_b_n_12345678901234567890", result: { action: "accept" } });
    await server.notify({ id: "gw_a_s_q", error: { code: -1, message: "no" } });
    assert.deepEqual(b.received, [
      { jsonrpc: "2.0", id: Number("12345678901234567890"), result: { action: "accept" } },
    ]);
    assert.deepEqual(a.received, [{ jsonrpc: "2.0", id: "q", error: { code: -1, message: "no" } }]);
  });

  it("is dropped when it answers nothing that several targets could have asked", async () => {
    const [a, b] = [scriptedTarget("a", {}), scriptedTarget("b", {})];
    const server = testServer([a, b]);
    for (const id of [7, "x", "gw_c_n_7", "gw_a_n_x"]) await server.notify({ id, result: {} });
    await server.notify({ error: { code: -1, message: "no" } });
    assert.deepEqual([...a.received, ...b.received], []);
    await testServer([a]).notify({ id: 7, result: {} });
    assert.equal(a.received.length, 1);
  });

  it("cancels a request at its owner, and at all targets where the owner is not known", async () => {
    const channel = new MessageChannel();
    const a = scriptedTarget("a", { "tools/call": () => ({ stream: channel }), ping: () => ({ result: {} }) });
    const b = scriptedTarget("b", { ping: () => ({ result: {} }) });
    const server = testServer([a, b]);
    await server.ask("ping");
    const answer = await server.open("tools/call", { name: "a_x" }, "call");
    const cancel = { method: "notifications/cancelled", params: { requestId: "call" } };
    await server.notify(cancel);
    assert.deepEqual([a.received.length, b.received.length], [3, 1]);
    answer.cancel();
    channel.end();
    await server.notify(cancel);
    assert.deepEqual([a.received.length, b.received.length], [4, 2]);
  });

  it("reports progress to the target that asked for it", async () => {
    const [a, b] = [scriptedTarget("a", {}), scriptedTarget("b", {})];
    const server = testServer([a, b]);
    await server.notify({ method: "notifications/progress", params: { progressToken: "gw_b_n_3", progress: 1 } });
    assert.deepEqual(b.received[0]?.params, { progressToken: 3, progress: 1 });
    assert.equal(a.received.length, 0);
  });

  it("goes to all targets that the client has entered", async () => {
    const [a, b] = [scriptedTarget("a", { initialize: () => ({ result: {} }) }), scriptedTarget("b", {})];
    const session = testSession();
    session.target("a").entered = true;
    await testServer([a, b], { session }).notify({ method: "notifications/roots/list_changed" });
    assert.deepEqual([a.received.length, b.received.length], [1, 0]);
  });
});

describe("a request to all targets", () => {
  const failing = (status = 503) => scriptedTarget("b", { "tools/list": () => ({ status, text: "" }) });
  const serving = () =>
    scriptedTarget("a", { "tools/list": () => ({ result: { tools: [{ name: "x" }] }, before: [LOG] }) });

  it("passes on what targets say before they respond", async () => {
    const messages = await testServer([serving(), scriptedTarget("b", {})]).request("tools/list");
    assert.deepEqual(
      messages.map(({ method }) => method),
      [LOG.method, undefined],
    );
    assert.deepEqual(messages[1]?.result, { tools: [{ name: "a_x" }] });
  });

  it("fails when a target fails, unless such targets are left out", async () => {
    const targets = [serving(), failing()];
    await assert.rejects(
      testServer(targets).request("tools/list"),
      (error) => error instanceof McpError && error.status === 500,
    );
    const [, response] = await testServer(targets, { failOpen: true }).request("tools/list");
    assert.deepEqual(response?.result, { tools: [{ name: "a_x" }] });
    await assert.rejects(testServer([failing(), failing()], { failOpen: true }).request("tools/list"));
  });

  it("answers with the error of a target, or leaves it out", async () => {
    const error = { code: -32_000, message: "broken" };
    const targets = [serving(), scriptedTarget("b", { "tools/list": () => ({ error }) })];
    assert.deepEqual((await testServer(targets).request("tools/list")).at(-1)?.error, error);
    const open = await testServer(targets, { failOpen: true }).request("tools/list");
    assert.deepEqual(open.at(-1)?.result, { tools: [{ name: "a_x" }] });
  });

  it("answers the request with the error of a target that has refused to read it", async () => {
    const error = { code: -32_700, message: "Parse error" };
    for (const id of [{ id: null }, {}, { id: 9 }]) {
      const text = JSON.stringify({ jsonrpc: "2.0", error, ...id });
      const refusing = scriptedTarget("b", { ping: () => ({ status: 400, text }) });
      const answer = await testServer([scriptedTarget("a", { ping: () => ({ result: {} }) }), refusing]).ask("ping");
      assert.deepEqual(answer, { jsonrpc: "2.0", id: 1, error });
    }
  });

  it("needs a target, unless failing ones are left out", async () => {
    await assert.rejects(
      testServer([]).request("tools/list"),
      (error) => error instanceof McpError && error.status === 503,
    );
    const server = testServer([], { failOpen: true });
    assert.deepEqual((await server.ask("tools/list")).result, { tools: [] });
    await assert.rejects(server.ask("tools/call", { name: "x" }), { message: "Unknown tool: x" });
  });

  it("closes the requests to targets when it is given up", async () => {
    const channels = [new MessageChannel(), new MessageChannel()];
    const targets = channels.map((stream, index) => scriptedTarget(`t${index}`, { "tools/list": () => ({ stream }) }));
    const answer = await testServer(targets).open("tools/list");
    answer.cancel();
    for (const channel of channels) channel.end();
    assert.deepEqual(
      targets.map(({ cancelled }) => cancelled),
      [1, 1],
    );
    assert.deepEqual(await readAll(answer), []);
  });
});

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
    const next = reader(answer);
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
    const next = reader(answer);
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
    assert.deepEqual((await reader(answer)())?.params, { uri: "a+x:1" });
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
    const next = reader(answer);
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
    const next = reader(answer);
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
    const next = reader(answer);
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
    const next = reader(answer);
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
    const next = reader(answer);
    assert.deepEqual((await next())?.params, { notifications: { toolsListChanged: true }, _meta: { [ID]: 1 } });
    createVirtualServer({ ...options, naming: new Naming(McpPrefixMode.UNSPECIFIED, targets) });
    const change = await next();
    assert.deepEqual([change?.method, change?.params], ["notifications/tools/list_changed", { _meta: { [ID]: 1 } }]);
    answer.cancel();
  });
});
