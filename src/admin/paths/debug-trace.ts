/**
 * `/debug/trace`: the steps of the next request, as server-sent events (HTML Living Standard §9.2). The stream begins
 * with a comment that says it waits, and a comment each second shows that it is alive; it ends with the request.
 */
import { getQuery, type H3Event } from "h3";
import { text } from "../http.ts";
import type { AdminContext, AdminPath, TraceReader } from "./admin-path.ts";

const KEEPALIVE_MS = 1_000;

export const debugTrace: AdminPath = {
  help: "the steps of the next request (?expression=CEL: the next one for which it is true), as server-sent events",
  get: streamTrace,
  post: streamTrace,
};

async function streamTrace(event: H3Event, { watch }: AdminContext): Promise<Response> {
  const { expression, secrets } = getQuery(event);
  const asked = {
    expression: expression === undefined ? undefined : String(expression),
    showsSecrets: secrets === "1",
  };
  const opened = await watch(asked);
  if (opened.ok)
    return new Response(new ReadableStream(new TraceSource(opened.reader), { highWaterMark: 1 }), {
      headers: { "content-type": "text/event-stream", "cache-control": "no-cache" },
    });
  if (opened.code === "invalid_expression") return text(`invalid expression: ${opened.reason}\n`, 400);
  return text(`${opened.reason}\n`, 503);
}

/** Pulls events only while the client reads, so that a client that does not read costs the queue of its watch alone. */
class TraceSource implements UnderlyingDefaultSource<Uint8Array> {
  readonly #reader: TraceReader;
  #isReady = false;
  #pending: Promise<readonly string[] | undefined> | undefined;

  constructor(reader: TraceReader) {
    this.#reader = reader;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (!this.#isReady) {
      this.#isReady = true;
      controller.enqueue(Buffer.from(": ready\n\n"));
      return;
    }
    const lines = await this.#readOrWait();
    if (lines === "waiting") controller.enqueue(Buffer.from(": keepalive\n\n"));
    else if (lines === undefined) this.#end(controller);
    else controller.enqueue(Buffer.from(lines.map((line) => `data: ${line}\n\n`).join("")));
  }

  cancel(): void {
    this.#reader.close();
  }

  #end(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#reader.close();
    controller.close();
  }

  /** @returns "waiting" when a second has passed without an event */
  async #readOrWait(): Promise<readonly string[] | undefined | "waiting"> {
    const pending = (this.#pending ??= this.#reader.read());
    const { promise, resolve } = Promise.withResolvers<"waiting">();
    const timer = setTimeout(resolve, KEEPALIVE_MS, "waiting");
    try {
      const lines = await Promise.race([pending, promise]);
      if (lines !== "waiting") this.#pending = undefined;
      return lines;
    } finally {
      clearTimeout(timer);
    }
  }
}
