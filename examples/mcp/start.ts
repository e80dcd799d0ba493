/** `node examples/mcp/start.ts`: starts two MCP servers and the gateway on loopback and says what to try. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { startToolServer } from "./tool-server.ts";
import { TOOLS } from "./tools.ts";

/** The address of the first server in gateway.yaml; the second has the next port. */
const FIRST_PORT = 9102;
const HERE = import.meta.dirname;

await Promise.all(TOOLS.map((tool, index) => startToolServer(FIRST_PORT + index, tool)));
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
  npx @modelcontextprotocol/inspector --cli http://127.0.0.1:8080/mcp --transport http --method tools/list
  npx @modelcontextprotocol/inspector --cli http://127.0.0.1:8080/mcp --transport http --method tools/call \\
    --tool-name dice_roll
`);
}
