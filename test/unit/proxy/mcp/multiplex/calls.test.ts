/** Calls: the owner of an item gets them under its own name, results are named for the client, refusals do not differ. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { McpPrefixMode } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { McpError } from "../../../../../src/proxy/mcp/mcp-error.ts";
import {
  readAll,
  scriptedTarget,
  testServer,
  type Behaviours,
  type TestServer,
} from "../../../../support/servers/scripted-target.ts";

const { NEVER } = McpPrefixMode;

/** Answers each method with its own params. */
const MIRROR: Behaviours = Object.fromEntries(
  ["tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete", "tasks/get"].map(
    (method) => [method, ({ params }) => ({ result: { got: params } })],
  ),
);

describe("a call", () => {
  const rows = [
    {
      method: "tools/call",
      seen: { name: "a_echo", arguments: { name: "a_x" } },
      own: { name: "echo", arguments: { name: "a_x" } },
    },
    { method: "prompts/get", seen: { name: "a_b_c" }, own: { name: "b_c" } },
    { method: "resources/read", seen: { uri: "a+file:///x" }, own: { uri: "file:///x" } },
    { method: "resources/subscribe", seen: { uri: "ui://a+x" }, own: { uri: "ui://x" } },
    { method: "tasks/get", seen: { taskId: "a+7" }, own: { taskId: "7" } },
    {
      method: "completion/complete",
      seen: { ref: { type: "ref/prompt", name: "a_p" }, argument: { name: "a_n", value: "" } },
      own: { ref: { type: "ref/prompt", name: "p" }, argument: { name: "a_n", value: "" } },
    },
    {
      method: "completion/complete",
      seen: { ref: { type: "ref/resource", uri: "a+file:///{x}" } },
      own: { ref: { type: "ref/resource", uri: "file:///{x}" } },
    },
  ];
  for (const { method, seen, own } of rows)
    it(`${method} reaches the owner of ${JSON.stringify(seen).slice(0, 40)} alone`, async () => {
      const [a, b] = [scriptedTarget("a", MIRROR), scriptedTarget("b", MIRROR)];
      const { result } = await testServer([a, b]).ask(method, seen);
      assert.deepEqual(result, { got: own });
      assert.equal(b.received.length, 0);
    });

  it("keeps the bytes of what it does not rename", async () => {
    const a = scriptedTarget("a", { "tools/call": () => ({ result: '{"n":12345678901234567890 ,"\\u0061":1}' }) });
    const server = testServer([a, scriptedTarget("b", {})]);
    const answer = await server.open("tools/call", { name: "a_x" });
    assert.equal(
      answer.only?.bytes.toString(),
      '{"jsonrpc":"2.0","id":1,"result":{"n":12345678901234567890 ,"\\u0061":1}}',
    );
  });

  it("finds owners by lists where names have no target", async () => {
    const lists = (...names: string[]): Behaviours => ({
      ...MIRROR,
      "tools/list": () => ({ result: { tools: names.map((name) => ({ name })) } }),
    });
    const [a, b] = [scriptedTarget("a", lists("x", "both")), scriptedTarget("b", lists("both", "y"))];
    const server = testServer([a, b], { mode: NEVER });
    assert.deepEqual((await server.ask("tools/call", { name: "y" })).result, { got: { name: "y" } });
    assert.deepEqual((await server.ask("tools/call", { name: "x" })).result, { got: { name: "x" } });
    assert.equal(methods(a).filter((method) => method === "tools/list").length, 1);
    await assert.rejects(server.ask("tools/call", { name: "both" }), { message: "Ambiguous tool: both" });
    await assert.rejects(server.ask("tools/call", { name: "z" }), { message: "Unknown tool: z" });
    const strict = testServer([a, b], { mode: NEVER, authorize: () => (_kind, target) => target === "b" });
    assert.deepEqual((await strict.ask("tools/call", { name: "both" })).result, { got: { name: "both" } });
  });

  it("finds the owner of a name that came after the lists were read, and after list_changed", async () => {
    let names = ["x"];
    const changed = { method: "notifications/tools/list_changed" };
    const a = scriptedTarget("a", {
      "tools/list": () => ({ result: { tools: names.map((name) => ({ name })) } }),
      "tools/call": ({ params }) => ({ result: { got: params }, before: [changed] }),
    });
    const server = testServer([a, scriptedTarget("b", {})], { mode: NEVER });
    await server.request("tools/call", { name: "x" });
    names = ["y"];
    const [, response] = await server.request("tools/call", { name: "y" });
    assert.deepEqual(response?.result, { got: { name: "y" } });
    await assert.rejects(server.ask("tools/call", { name: "x" }), { message: "Unknown tool: x" });
  });
});

function methods({ received }: { readonly received: readonly { readonly method?: string }[] }): (string | undefined)[] {
  return received.map(({ method }) => method);
}

describe("a result", () => {
  const link = { type: "resource_link", uri: "file:///x", name: "x" };
  const embedded = { type: "resource", resource: { uri: "ui://x", text: "uri" } };
  const text = { type: "text", text: "uri" };
  const seenLink = { ...link, uri: "a+file:///x" };
  const seenEmbedded = { type: "resource", resource: { uri: "ui://a+x", text: "uri" } };
  const related = { "io.modelcontextprotocol/related-task": { taskId: "7" } };
  const seenRelated = { "io.modelcontextprotocol/related-task": { taskId: "a+7" } };
  const rows = [
    {
      method: "tools/call",
      params: { name: "a_x" },
      result: { content: [link, text, embedded], structuredContent: link },
      seen: { content: [seenLink, text, seenEmbedded], structuredContent: link },
    },
    {
      method: "tasks/result",
      params: { taskId: "a+7" },
      result: { content: [link], _meta: related },
      seen: { content: [seenLink], _meta: seenRelated },
    },
    {
      method: "prompts/get",
      params: { name: "a_x" },
      result: {
        messages: [
          { role: "user", content: embedded },
          { role: "user", content: [link, text] },
        ],
      },
      seen: {
        messages: [
          { role: "user", content: seenEmbedded },
          { role: "user", content: [seenLink, text] },
        ],
      },
    },
    {
      method: "resources/read",
      params: { uri: "a+file:///x" },
      result: { contents: [{ uri: "file:///x", text: "" }, { uri: "relative" }] },
      seen: { contents: [{ uri: "a+file:///x", text: "" }, { uri: "relative" }] },
    },
    {
      method: "tools/call",
      params: { name: "a_x", task: {} },
      result: { task: { taskId: "7", status: "working" } },
      seen: { task: { taskId: "a+7", status: "working" } },
    },
    {
      method: "tasks/cancel",
      params: { taskId: "a+7" },
      result: { taskId: "7", status: "cancelled" },
      seen: { taskId: "a+7", status: "cancelled" },
    },
    {
      method: "tasks/get",
      params: { taskId: "a+7" },
      result: { resultType: "complete", taskId: "7", ttlMs: 5, result: { content: [link] } },
      seen: { resultType: "complete", taskId: "a+7", ttlMs: 5, result: { content: [seenLink] } },
      version: "2026-07-28",
    },
    {
      method: "tools/call",
      params: { name: "a_x" },
      result: { resultType: "task", taskId: "7" },
      seen: { resultType: "task", taskId: "a+7" },
      version: "2026-07-28",
    },
    {
      method: "resources/read",
      params: { uri: "a+x:y" },
      result: { contents: [], ttlMs: 9 },
      seen: { resultType: "complete", cacheScope: "private", contents: [], ttlMs: 0 },
      version: "2026-07-28",
    },
    {
      method: "tools/call",
      params: { name: "a_x" },
      result: { resultType: "complete", ttlMs: 9, content: [], cacheScope: "public" },
      seen: { content: [] },
    },
    {
      method: "tools/call",
      params: { name: "a_x" },
      result: { resultType: "input_required", inputRequests: { q: { method: "roots/list" } }, requestState: "s" },
      seen: { resultType: "input_required", inputRequests: { q: { method: "roots/list" } }, requestState: "s" },
      version: "2026-07-28",
    },
  ];
  for (const [index, { method, params, result, seen, version = "2025-11-25" }] of rows.entries())
    it(`of ${method} names what clients can use (${index + 1})`, async () => {
      const a = scriptedTarget("a", { [method]: () => ({ result }) });
      const server = testServer([a, scriptedTarget("b", {})], { version });
      assert.deepEqual((await server.ask(method, params)).result, seen);
    });

  it("has URIs with a target also where there is one target, and ids of tasks as they are", async () => {
    const a = scriptedTarget("a", { "tools/call": () => ({ result: { content: [link], task: { taskId: "7" } } }) });
    const { result } = await testServer([a]).ask("tools/call", { name: "x" });
    assert.deepEqual(result, { content: [seenLink], task: { taskId: "7" } });
  });
});

describe("an item that cannot be used", () => {
  const absent = { error: { code: -32_602, message: "Tool nothing not found" } };
  const target = () =>
    scriptedTarget("a", {
      "tools/list": () => ({ result: { tools: [{ name: "open" }, { name: "secret" }] } }),
      "prompts/list": () => ({ result: { prompts: [{ name: "open" }, { name: "secret" }] } }),
      "tools/call": ({ params }) =>
        params?.["name"] === "open"
          ? { error: { code: -32_602, message: "Invalid arguments" } }
          : { result: { isError: true, content: [{ type: "text", text: "Tool nothing not found" }] } },
      "prompts/get": () => absent,
      "resources/read": () => ({ error: { code: -32_002, message: "no such file" } }),
      "resources/subscribe": () => ({
        status: 400,
        text: '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}',
      }),
      "tasks/get": () => absent,
    });
  const calls = [
    { method: "tools/call", hidden: { name: "a_secret" }, absent: { name: "a_nothing" }, text: "Unknown tool: " },
    { method: "prompts/get", hidden: { name: "a_secret" }, absent: { name: "a_nothing" }, text: "Unknown prompt: " },
    {
      method: "resources/read",
      hidden: { uri: "a+x:secret" },
      absent: { uri: "a+x:nothing" },
      text: "Resource not found: ",
    },
    {
      method: "resources/subscribe",
      hidden: { uri: "a+x:secret" },
      absent: { uri: "a+x:nothing" },
      text: "Resource not found: ",
    },
    { method: "tasks/get", hidden: { taskId: "a+secret" }, absent: { taskId: "a+nothing" }, text: "Task not found: " },
  ];
  for (const { method, hidden, absent: missing, text } of calls)
    for (const version of ["2025-03-26", "2025-11-25", "2026-07-28"])
      it(`${method} answers alike for hidden and absent ones in ${version}`, async () => {
        const a = target();
        const authorize: TestServer["options"]["authorize"] = () => (_kind, _target, name) => !name.includes("secret");
        const server = testServer([a, scriptedTarget("b", {})], { version, authorize });
        const isResource = text.startsWith("Resource");
        const code = isResource && version < "2026-07-28" ? -32_002 : -32_602;
        const status = version < "2025-06-18" ? 400 : 200;
        const refused = await refusalOf(server, method, hidden);
        assert.equal(a.received.length, 0, "a refused call reaches nobody");
        for (const params of [missing, withTarget(missing, "z")]) {
          const [name] = Object.values(params);
          assert.deepEqual(await refusalOf(server, method, params), { code, status, message: `${text}${name}` });
        }
        assert.deepEqual(refused, { code, status, message: `${text}${Object.values(hidden)[0]}` });
      });

  const prompt = { ref: { type: "ref/prompt", name: "a_nothing" } };
  const template = { ref: { type: "ref/resource", uri: "a+x:{nothing}" } };
  const nothing = { result: { completion: { values: [], hasMore: false } } };
  const ofPython = { error: { code: 0, message: "no such thing" } };
  const unserved = { error: { code: -32_601, message: "Method not found" } };
  for (const [index, { method, params, answer, code = -32_602 }] of [
    { method: "prompts/get", params: { name: "a_nothing" }, answer: ofPython },
    { method: "prompts/get", params: { name: "a_nothing" }, answer: unserved },
    { method: "resources/read", params: { uri: "a+x:nothing" }, answer: ofPython, code: -32_002 },
    { method: "resources/subscribe", params: { uri: "a+x:nothing" }, answer: ofPython, code: -32_002 },
    { method: "completion/complete", params: prompt, answer: nothing },
    { method: "completion/complete", params: prompt, answer: { result: { completion: { values: ["a"] } } } },
    { method: "completion/complete", params: prompt, answer: unserved },
    { method: "completion/complete", params: template, answer: nothing, code: -32_002 },
    { method: "completion/complete", params: template, answer: unserved, code: -32_002 },
  ].entries())
    it(`${method} answers for absent ones as for hidden ones, however servers do (${index + 1})`, async () => {
      const a = target();
      a.behaviours = { ...a.behaviours, "resources/read": () => answer, [method]: () => answer };
      const server = testServer([a, scriptedTarget("b", {})], { authorize: () => () => true });
      const refused = await refusalOf(server, method, params);
      assert.deepEqual([refused.code, refused.status], [code, 200]);
      assert.match(refused.message, /^(?:Unknown prompt: a_|Resource not found: a\+x:)\W?nothing\W?$/);
    });

  it("keeps the completion of an item that exists", async () => {
    const a = target();
    const resourceTemplates = [{ uriTemplate: "x:{open}" }];
    a.behaviours = {
      ...a.behaviours,
      "resources/templates/list": () => ({ result: { resourceTemplates } }),
      "completion/complete": () => nothing,
    };
    const server = testServer([a, scriptedTarget("b", {})], { authorize: () => () => true });
    for (const ref of [
      { type: "ref/prompt", name: "a_open" },
      { type: "ref/resource", uri: "a+x:{open}" },
    ])
      assert.deepEqual((await server.ask("completion/complete", { ref })).result, nothing.result);
  });

  it("keeps the answer of a target about an item that exists", async () => {
    const server = testServer([target(), scriptedTarget("b", {})], { authorize: () => () => true });
    const { error } = await server.ask("tools/call", { name: "a_open" });
    assert.deepEqual(error, { code: -32_602, message: "Invalid arguments" });
  });

  it("keeps the answers of targets where no rules are configured", async () => {
    const server = testServer([target(), scriptedTarget("b", {})]);
    assert.deepEqual((await server.ask("prompts/get", { name: "a_nothing" })).error, absent.error);
    const refused = await server.open("resources/subscribe", { uri: "a+x:y" });
    assert.equal(refused.status, 400);
  });
});

function withTarget(params: Record<string, string>, target: string): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([member, text]) => [member, text.replace(/^a/, target)]));
}

async function refusalOf(server: TestServer, method: string, params: unknown) {
  try {
    await server.open(method, params).then(readAll);
  } catch (error) {
    assert.ok(error instanceof McpError);
    return { code: error.rpcCode, status: error.status, message: error.message };
  }
  return assert.fail("the call was not refused");
}

describe("requests that two parsers could read differently", () => {
  const rows = [
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_x","name":"a_secret"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_x","Name":"a_secret"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_secret"},"params":{"name":"a_x"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_x"},"Params":{"name":"a_secret"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_x"},"param\\u017f":{"name":"a_secret"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
  ];
  for (const text of rows)
    it(text.slice(34), async () => {
      const a = scriptedTarget("a", MIRROR);
      for (const targets of [[a], [a, scriptedTarget("b", {})]])
        await assert.rejects(testServer(targets).openText(text), (error) => error instanceof McpError);
      assert.equal(a.received.length, 0);
    });
});
