/** `mcp.authorization`: what callers may see and use of an MCP backend, through real sockets. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../../src/admission/validate.ts";
import type { KubeObject } from "../../../src/api/object.ts";
import { askMcp, connectMcp, type McpResponse } from "../../support/clients/mcp.ts";
import { gatewayPolicy } from "../../support/gateway/gateway.ts";
import { startMcpGateway } from "../../support/gateway/mcp.ts";
import { BLOCK_PLACES } from "../../support/proofs/block-places.ts";
import { contextOf, prove } from "../../support/proofs/prove.ts";

const deny = (...rules: string[]): string =>
  `authorization: {action: Deny, policy: {matchExpressions: ['${rules.join("', '")}']}}`;

function namesOf({ result, body }: McpResponse, list: "tools" | "prompts" | "resources"): string[] {
  const items = (result as Readonly<Record<string, { name: string }[] | undefined>> | undefined)?.[list];
  assert.ok(items, body);
  return items.map(({ name }) => name).sort();
}

for (const place of BLOCK_PLACES)
  prove(
    [place.field("mcp.authorization.action"), place.field("mcp.authorization.policy.matchExpressions[]")],
    `items that a rule denies are in no list, and calls of them are answered as if they did not exist (${place.kind})`,
    async (context) => {
      const block = deny('mcp.tool.target == "one" && mcp.tool.name == "count"');
      const { url, server } = await startMcpGateway(context, place, block);
      assert.deepEqual(namesOf(await askMcp(url, "tools/list"), "tools"), ["ask", "echo"]);
      assert.deepEqual(namesOf(await askMcp(url, "prompts/list"), "prompts"), ["greet"]);
      assert.deepEqual(namesOf(await askMcp(url, "resources/list"), "resources"), ["note"]);
      assert.equal((await askMcp(url, "tools/call", { name: "echo", arguments: { text: "x" } })).error, undefined);
      const before = server.calls.length;
      const denied = await askMcp(url, "tools/call", { name: "count", arguments: { to: 1 } });
      assert.deepEqual([denied.status, denied.error], [200, { code: -32_602, message: "Unknown tool: count" }]);
      assert.equal(server.calls.length, before, "a refused call reaches nobody");
      const absent = await askMcp(url, "tools/call", { name: "nothing", arguments: { to: 1 } });
      assert.equal(absent.body.replace("nothing", "count"), denied.body);
    },
  );

test("a subscription tells no hidden resource from one that no server has", async (t) => {
  const [inBackend] = BLOCK_PLACES;
  assert.ok(inBackend);
  const block = deny('mcp.resource.name == "page://test/1"');
  const { url, server } = await startMcpGateway(contextOf(t), inBackend, block);
  for (const method of ["resources/subscribe", "resources/unsubscribe"]) {
    const denied = await askMcp(url, method, { uri: "one+page://test/1" });
    assert.deepEqual(denied.error, { code: -32_002, message: "Resource not found: one+page://test/1" });
    const absent = await askMcp(url, method, { uri: "one+none://test/1" });
    assert.equal(absent.body.replace("none", "page"), denied.body);
  }
  assert.equal((await askMcp(url, "resources/subscribe", { uri: "one+note://test/1" })).error, undefined);
  assert.ok(!server.calls.some(({ messages }) => JSON.stringify(messages).includes("page://")));
  const subscribed = server.methods().filter((method) => method === "resources/subscribe");
  assert.equal(subscribed.length, 1, "what does not exist is not subscribed to");
});

test("rules of all levels count together, and a change of them holds for a session in progress", async (t) => {
  const [inBackend] = BLOCK_PLACES;
  assert.ok(inBackend);
  const above = gatewayPolicy("above", `  backend: {mcp: {${deny('mcp.tool.name == "ask"')}}}`);
  const context = contextOf(t);
  const own = deny('mcp.tool.name == "count"');
  const { gateway, url, manifests } = await startMcpGateway(context, inBackend, own, above);
  const { client } = await connectMcp(context, url);
  const listed = async (): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name).sort();
  assert.deepEqual(await listed(), ["echo"]);
  await gateway.change(manifests("authorization: {policy: {matchExpressions: ['mcp.tool.name == \"count\"']}}"));
  assert.deepEqual(await listed(), ["count"]);
  await assert.rejects(client.callTool({ name: "echo", arguments: { text: "x" } }), /Unknown tool: echo/);
  // Rules about tools alone leave nothing of other kinds.
  assert.deepEqual((await client.listPrompts()).prompts, []);
});

test("the objects of the page on who may use a server are valid", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/mcp-security.md"), "utf8");
  const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = ""]) => text);
  assert.equal(blocks.length, 3);
  for (const text of blocks) {
    const object = applyDefaults("gwproxy.dev/GwPolicy", parse(text) as KubeObject);
    assert.deepEqual(
      validate(object).filter(({ severity }) => severity === "error"),
      [],
    );
  }
});
