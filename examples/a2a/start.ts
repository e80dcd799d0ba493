/** `node examples/a2a/start.ts`: starts an agent and the gateway on loopback and says what to try. */
import { join } from "node:path";
import { startGateway } from "../shared/start-gateway.ts";
import { startEchoAgent } from "./echo-agent.ts";

/** The address in gateway.yaml. */
const AGENT_PORT = 9101;

await startEchoAgent(AGENT_PORT);
startGateway(
  join(import.meta.dirname, "gateway.yaml"),
  `
  curl http://127.0.0.1:8080/echo/.well-known/agent-card.json
  curl http://127.0.0.1:8080/echo/rpc -H 'content-type: application/json' -H 'A2A-Version: 1.0' -d \\
    '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"Hi"}]}}}'
`,
);
