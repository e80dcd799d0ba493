/** The official conformance suite of MCP with sessions: what a server passes alone, it passes through the gateway. */
import { test } from "node:test";
import { startSessionServer } from "../conformance/mcp/servers.ts";
import { assertNothingLost } from "../conformance/mcp/suite.ts";

test("the conformance suite of 2025-11-25 loses nothing through the gateway", async (t) => {
  await assertNothingLost(t, "2025-11-25", await startSessionServer(t), 30);
});
