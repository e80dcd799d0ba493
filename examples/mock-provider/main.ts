/** Starts the mock provider by hand: `node --import tsx examples/mock-provider/main.ts --port 9100`. */
import { parseArgs } from "node:util";
import { serveMockProvider } from "./mock-provider.ts";

const HELP = `Usage: mock-provider [--port PORT] [--key KEY]...

A small LLM provider on 127.0.0.1 to practise with.

  --port PORT   port to listen on; 0 picks a free one (default 9100)
  --key KEY     a key that is let in; may be repeated (default mock-key)
  --help        print this text

Endpoints: POST /v1/chat/completions  Authorization: Bearer KEY
           POST /v1/messages          x-api-key: KEY, anthropic-version: 2023-06-01
`;

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "9100" },
    key: { type: "string", multiple: true, default: ["mock-key"] },
    help: { type: "boolean", default: false },
  },
});

if (values.help) {
  process.stdout.write(HELP);
} else {
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    process.stderr.write(`not a port: ${values.port}\n`);
    process.exit(2);
  }
  const provider = await serveMockProvider({ port, keys: values.key });
  process.stdout.write(`mock provider on http://127.0.0.1:${provider.port}\n`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void provider.stop());
}
