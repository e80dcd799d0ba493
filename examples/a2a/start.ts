/** `node examples/a2a/start.ts`: starts an agent and the gateway on loopback and says what to try. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { startEchoAgent } from "./echo-agent.ts";

/** The address in gateway.yaml. */
const AGENT_PORT = 9101;
const HERE = import.meta.dirname;

await startEchoAgent(AGENT_PORT);
const command = [
  join(HERE, "../../bin/gwproxy.mjs"),
  "up",
  "-f",
  join(HERE, "gateway.yaml"),
  "--bind-address",
  "127.0.0.1",
];
const gateway = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "inherit"] });
gateway.stdout.pipe(process.stdout);
gateway.stdout.once("data", () => setImmediate(printHints));
gateway.once("exit", (code) => process.exit(code ?? 1));
// Ctrl-C reaches both processes; a signal to this one alone is passed on.
process.on("SIGTERM", () => gateway.kill("SIGTERM"));
process.on("SIGINT", () => undefined);

function printHints(): void {
  process.stdout.write(`
  curl http://127.0.0.1:8080/echo/.well-known/agent-card.json
  curl http://127.0.0.1:8080/echo/rpc -H 'content-type: application/json' -H 'A2A-Version: 1.0' -d \\
    '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"Hi"}]}}}'
`);
}
