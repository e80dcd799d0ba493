/** Starts the practice provider by hand: `node --import tsx examples/practice-provider/main.ts --port 9100`. */
import { parseArgs } from "node:util";
import { startPracticeProvider } from "./practice-provider.ts";

const HELP = `Usage: practice-provider [--port PORT] [--key KEY]...

A small LLM provider on 127.0.0.1 to practise with.

  --port PORT   port to listen on; 0 picks a free one (default 9100)
  --key KEY     a key that is let in; may be repeated (default practice-key)
  --help        print this text

Endpoints: POST /v1/chat/completions  Authorization: Bearer KEY
           POST /v1/messages          x-api-key: KEY, anthropic-version: 2023-06-01
`;

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "9100" },
    key: { type: "string", multiple: true, default: ["practice-key"] },
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
  const provider = await startPracticeProvider({ port, keys: values.key });
  process.stdout.write(`practice provider on http://127.0.0.1:${provider.port}\n`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void provider.stop());
}
