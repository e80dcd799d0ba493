/** `node examples/mcp/start.ts`: starts two MCP servers and the gateway on loopback and says what to try. */
import { join } from "node:path";
import { startGateway } from "../shared/start-gateway.ts";
import { startToolServer } from "./tool-server.ts";
import { TOOLS } from "./tools.ts";

/** The address of the first server in gateway.yaml; the second has the next port. */
const FIRST_PORT = 9102;

await Promise.all(TOOLS.map((tool, index) => startToolServer(FIRST_PORT + index, tool)));
startGateway(
  join(import.meta.dirname, "gateway.yaml"),
  `
  npx @modelcontextprotocol/inspector --cli http://127.0.0.1:8080/mcp --transport http --method tools/list
  npx @modelcontextprotocol/inspector --cli http://127.0.0.1:8080/mcp --transport http --method tools/call \\
    --tool-name dice_roll
`,
);
