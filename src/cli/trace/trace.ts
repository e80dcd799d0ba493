/** `gwproxy trace`: follows the next request of a data plane, or shows a recorded trace. */
import { readFile } from "node:fs/promises";
import { FatalError, messageOf } from "../../lib/errors.ts";
import type { Terminal } from "../../lib/terminal.ts";
import { withAdmins, type AdminClient, type PodOptions } from "../pods/admin-client.ts";
import type { TraceEvent } from "../../console/model/trace.ts";
import { parseEvent, readStream } from "./events.ts";
import { parseRequest, sendRequest, type RequestToSend } from "./send-request.ts";
import { summarize, TraceView } from "./view.ts";

export interface TraceOptions extends PodOptions {
  /** Port of the listener for the request to send; 0 when none is sent. */
  readonly port: number;
  readonly raw?: boolean | undefined;
  readonly expression?: string | undefined;
  readonly file?: string | undefined;
}

/** Shows events as they arrive. */
interface Display {
  event(line: string, at: string): void;
  end(): void;
}

/** @param words what follows `--`: a URL and arguments like those of curl */
export async function runTrace(
  resource: string | undefined,
  words: readonly string[],
  options: TraceOptions,
  terminal: Terminal,
): Promise<void> {
  const asked = parseRequest(words);
  checkOptions(resource, asked, options);
  // A program that reads the output gets events, and people get the view.
  const display = options.raw === true || !process.stdout.isTTY ? rawDisplay(terminal) : textDisplay(terminal);
  if (options.file !== undefined) return showFile(options.file, options.raw === true ? display : textDisplay(terminal));
  await withAdmins(resource, options, "first", (client) => follow(client, asked, options, { display, terminal }));
}

function checkOptions(resource: string | undefined, asked: RequestToSend | undefined, options: TraceOptions): void {
  const { file, local, expression, port } = options;
  if (
    file !== undefined &&
    (resource !== undefined || local === true || expression !== undefined || asked !== undefined)
  )
    throw new FatalError("-f shows a recorded trace; leave the resource, --local, --expression and the URL out", 2);
  if ((asked === undefined) !== (port === 0))
    throw new FatalError(
      "--port and a URL after -- belong together: gwproxy trace --port 80 -- http://shop.example/",
      2,
    );
}

async function showFile(file: string, display: Display): Promise<void> {
  const lines = (await readFile(file, "utf8")).split("\n");
  const events = lines
    .map((line, at) => ({ line, at: `line ${at + 1} of ${file}` }))
    .filter(({ line }) => line.trim() !== "");
  if (events.length === 0) throw new FatalError(`${file} holds no event; record a trace with gwproxy trace --raw`);
  for (const { line, at } of events) display.event(line, at);
  display.end();
}

interface Output {
  readonly display: Display;
  readonly terminal: Terminal;
}

async function follow(
  client: AdminClient,
  asked: RequestToSend | undefined,
  { expression, port }: TraceOptions,
  { display, terminal }: Output,
): Promise<void> {
  const query = expression === undefined ? "" : `?${new URLSearchParams({ expression })}`;
  const stream = await client.open(`/debug/trace${query}`);
  let sent: Promise<void> | undefined;
  for await (const part of readStream(stream)) {
    if ("line" in part) display.event(part.line, `an event of ${client.name}`);
    else if (asked === undefined) terminal.err(`waiting for the next request of ${client.name}\n`);
    else sent = send(client, asked, port, terminal);
  }
  display.end();
  await sent;
}

/** Reports the outcome on stderr, so that stdout holds events alone. */
async function send(client: AdminClient, asked: RequestToSend, port: number, { err }: Terminal): Promise<void> {
  try {
    const forwarded = await client.forward(port);
    err(`${asked.method} ${asked.url.href}: ${await sendRequest(asked, forwarded.port)}\n`);
  } catch (error) {
    err(`${asked.method} ${asked.url.href}: ${messageOf(error)}; is --port the port of a listener?\n`);
  }
}

function rawDisplay(terminal: Terminal): Display {
  return {
    event(line, at) {
      parseEvent(line, at);
      terminal.out(`${line}\n`);
    },
    end: () => undefined,
  };
}

function textDisplay(terminal: Terminal): Display {
  const view = new TraceView(terminal);
  const events: TraceEvent[] = [];
  return {
    event(line, at) {
      const event = parseEvent(line, at);
      events.push(event);
      view.step(event);
    },
    end: () => terminal.out(`\n${summarize(events)}`),
  };
}
