/** The official conformance suite of MCP with sessions: what a server passes alone, it passes through the gateway. */
import { test } from "node:test";
import { startSessionServer } from "../conformance/mcp/servers.ts";
import { assertNothingLost } from "../conformance/mcp/suite.ts";

/** The gateway itself asks again for a stream that breaks off, and gives clients no event ids. */
const DIFFERENT = [
  "server-sse-polling: server-sse-priming-event ServerSendsPrimingEvent",
  "server-sse-polling: server-sse-retry-field ServerSendsRetryField",
  "server-sse-polling: server-sse-disconnect-resume ServerDisconnectResume",
];

test("the conformance suite of 2025-11-25 loses nothing through the gateway", async (t) => {
  await assertNothingLost(t, await startSessionServer(t), {
    version: "2025-11-25",
    scenarios: 33,
    different: DIFFERENT,
  });
});
