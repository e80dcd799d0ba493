/** What targets say to clients besides responses, and what clients answer: order, ids, streams, failures, cancelling. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { McpError } from "../../../../../src/proxy/mcp/mcp-error.ts";
import {
  MessageChannel,
  readAll,
  openReader,
  scriptedTarget,
  testServer,
  testSession,
} from "../../../../support/servers/scripted-target.ts";

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
    const ask = async (name: string) => openReader(await server.open("tools/call", { name }));
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
