/** What several targets say of themselves in `initialize` and `server/discover`, as one server. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { McpError } from "../../../../../src/proxy/mcp/mcp-error.ts";
import { scriptedTarget, testServer, type Behaviour } from "../../../../support/servers/scripted-target.ts";

describe("the introduction of several targets", () => {
  const initialized = (version: string, capabilities: unknown, instructions?: string) => () => ({
    result: { protocolVersion: version, capabilities, serverInfo: { name: "x", version: "1" }, instructions },
  });

  it("unites capabilities, takes the lowest version and keeps all instructions", async () => {
    const a = scriptedTarget("a", {
      initialize: initialized(
        "2025-06-18",
        { logging: {}, tools: { listChanged: false }, extensions: { e: { v: 1 }, f: {} } },
        "Use x.",
      ),
    });
    const b = scriptedTarget("b", {
      initialize: initialized("2025-11-25", {
        completions: {},
        tasks: { list: {} },
        extensions: { e: { v: 2 } },
        __proto__: { x: 1 },
      }),
    });
    const params = { protocolVersion: "2025-11-25", capabilities: { roots: {}, sampling: {}, x: 1 }, clientInfo: {} };
    const { result } = await testServer([a, b]).ask("initialize", params);
    const { instructions, serverInfo, ...rest } = result as Record<string, unknown>;
    assert.deepEqual(rest, {
      protocolVersion: "2025-06-18",
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        logging: {},
        extensions: { e: {}, f: {} },
        completions: {},
        tasks: { list: {} },
      },
    });
    assert.equal((serverInfo as { name: string }).name, "gwproxy");
    assert.match(String(instructions), /\n\n\[a\]\nUse x\.$/);
    assert.deepEqual(a.received[0]?.params, params);
    const stateless = testServer([a, b], { stateless: true });
    const answer = (await stateless.ask("initialize", params)).result as { capabilities: { resources: unknown } };
    assert.deepEqual(answer.capabilities.resources, { listChanged: true });
  });

  it("ends the sessions that some targets have opened when another one fails", async () => {
    const error = { code: -32_000, message: "no" };
    const failures: Behaviour[] = [
      { error },
      { error, before: [{ method: "notifications/message" }] },
      { status: 503, text: "" },
    ];
    for (const failure of failures) {
      const a = scriptedTarget("a", { initialize: initialized("2025-11-25", {}) });
      const b = scriptedTarget("b", { initialize: () => failure });
      await testServer([a, b])
        .request("initialize", {})
        .catch((thrown: unknown) => assert.ok(thrown instanceof McpError));
      assert.equal(a.ended, 1);
    }
  });

  it("is that of the only target where there is one", async () => {
    const introduction = initialized("2025-06-18", { x: 1 }, "Use x.");
    const { result } = await testServer([scriptedTarget("a", { initialize: introduction })]).ask("initialize", {});
    assert.deepEqual(result, introduction().result);
  });

  const discovered =
    (...supportedVersions: string[]) =>
    () => ({
      result: { resultType: "complete", supportedVersions, capabilities: { tools: {} }, ttlMs: 5 },
    });

  it("is discovered with the versions that all targets know", async () => {
    const a = scriptedTarget("a", { "server/discover": discovered("2026-07-28", "2025-11-25") });
    const b = scriptedTarget("b", { "server/discover": discovered("2027-01-01", "2026-07-28") });
    const { result } = await testServer([a, b], { version: "2026-07-28" }).ask("server/discover", {});
    assert.deepEqual((result as Record<string, unknown>)["supportedVersions"], ["2026-07-28"]);
    assert.deepEqual((result as Record<string, unknown>)["ttlMs"], 0);
  });

  it("is not discovered when a target cannot be, so that clients initialize", async () => {
    const a = scriptedTarget("a", { "server/discover": discovered("2026-07-28") });
    const others = [
      scriptedTarget("b", {}),
      scriptedTarget("b", { "server/discover": () => ({ status: 400, text: "no session" }) }),
      scriptedTarget("b", { "server/discover": discovered("2027-01-01") }),
    ];
    for (const b of others)
      for (const failOpen of [true, false])
        await assert.rejects(
          testServer([a, b], { version: "2026-07-28", failOpen }).request("server/discover", {}),
          (error) => error instanceof McpError && error.rpcCode === -32_601 && error.status === 404,
        );
  });
});
