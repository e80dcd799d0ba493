/** `gwproxy trace` follows one request through a data plane. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { TraceOptions } from "../trace/trace.ts";
import { addPodOptions } from "./pod-options.ts";

const EXAMPLES = `
Examples:
  gwproxy trace gateway/edge -n team                              the next request
  gwproxy trace gateway/edge --expression 'request.path.startsWith("/pay")'
  gwproxy trace --port 80 -- http://shop.example/cart -H 'x-user: 1'
  gwproxy trace --local --raw > trace.jsonl
  gwproxy trace -f trace.jsonl

Steps are listed with time, kind and severity, and with what they changed of the request. --raw, or an output that is no
terminal, prints one event a line, as JSON. After -- stand a URL and -H, -X, -d, -k as with curl; the URL's host becomes
the Host header.
`;

export function addTraceCommand(program: Command, terminal: Terminal): void {
  addPodOptions(program.command("trace"))
    .description("follow the next request through a data plane, step by step")
    .argument("[request...]", "after --: a URL and arguments as for curl")
    .addOption(
      new Option("--port <port>", "port of the listener that the request after -- is sent to")
        .argParser(listenerPort)
        .default(0, "none"),
    )
    .option("--raw", "print events as JSON, one a line")
    .option("--expression <cel>", "follow the next request for which this is true")
    .option("-f, --file <file>", "show events that were recorded with --raw")
    .addHelpText("after", EXAMPLES)
    .action(async (first: string | undefined, rest: readonly string[], options: TraceOptions) => {
      const { runTrace } = await import("../trace/trace.ts");
      // Without a resource, the first word after -- takes its place.
      const isWord = first !== undefined && /^(https?:\/\/|-)/.test(first);
      await runTrace(isWord ? undefined : first, isWord ? [first, ...rest] : rest, options, terminal);
    });
}

function listenerPort(text: string): number {
  const number = Number(text);
  if (/^\d{1,5}$/.test(text) && number <= 65_535) return number;
  throw new InvalidArgumentError("give a port from 1 to 65535");
}
