/** The official conformance suite of MCP 2026-07-28: what a server passes alone, it passes through the gateway. */
import { test } from "node:test";
import { startRequestServer } from "./servers.ts";
import { assertNothingLost } from "./suite.ts";

test("the conformance suite of 2026-07-28 loses nothing through the gateway", async (t) => {
  await assertNothingLost(t, await startRequestServer(t), { version: "2026-07-28", scenarios: 40 });
});
