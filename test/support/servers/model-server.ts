/**
 * A simulated model server, as a replica of an InferencePool: chat completions as JSON and as server-sent events, and the
 * metrics that endpoint pickers read, under the names of vLLM. The length of its queue is what a test says.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { ProofContext } from "../proofs/prove.ts";
import { printCompletion, printError, streamCompletion } from "./llm/openai-answers.ts";

type Fields = Record<string, unknown>;

const MODEL = "llama";

export class ModelServer {
  /** "address:port", which is also the `x-served-by` of its answers. */
  readonly name: string;
  readonly address: string;
  /** Number of waiting requests that the metrics report. */
  queue = 0;
  /** Share of the cache in use that the metrics report. */
  cacheUsage = 0.1;
  /** Number of chats that were answered. */
  served = 0;
  readonly #server: Server;
  readonly #port: number;
  #running = 0;
  #isEnding = false;

  constructor(address: string, port: number) {
    this.address = address;
    this.name = `${address}:${port}`;
    this.#port = port;
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  async start(): Promise<void> {
    this.#server.listen(this.#port, this.address);
    await once(this.#server, "listening");
  }

  /** Completes the responses in progress, then stops. */
  async stop(): Promise<void> {
    this.#isEnding = true;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeIdleConnections();
    await closed;
  }

  /** Stops at once, as in a crash. */
  crash(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    if (this.#isEnding) response.setHeader("connection", "close");
    response.setHeader("x-served-by", this.name);
    const place = `${request.method} ${request.url}`;
    if (place === "GET /metrics") response.setHeader("content-type", "text/plain; version=0.0.4").end(this.#metrics());
    else if (place === "GET /v1/models")
      send(response, 200, { object: "list", data: [{ id: MODEL, object: "model" }] });
    else if (place === "POST /v1/chat/completions") await this.#chat(Buffer.concat(chunks), response);
    else send(response, 404, printError({ type: "invalid_request_error", message: `no such place: ${place}` }));
  }

  async #chat(bytes: Buffer, response: ServerResponse): Promise<void> {
    const body = parseChat(bytes);
    if (body === undefined)
      return send(response, 400, printError({ type: "invalid_request_error", message: "not a chat of this model" }));
    this.#running++;
    response.once("close", () => this.#running--);
    const answer = { text: `${this.name} says hello.` };
    if (body["stream"] === true) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const showsUsage = (body["stream_options"] as Fields | undefined)?.["include_usage"] === true;
      for (const event of streamCompletion(answer, MODEL, showsUsage)) {
        response.write(event);
        // Yield to the event loop between tokens, so that they are not sent as one chunk.
        await new Promise(setImmediate);
      }
      response.end();
    } else send(response, 200, printCompletion(answer, MODEL));
    this.served++;
  }

  #metrics(): string {
    const gauge = (name: string, labels: string, value: number): string =>
      `# HELP vllm:${name} Of a simulated model.\n# TYPE vllm:${name} gauge\nvllm:${name}{${labels}} ${value}\n`;
    const model = `model_name="${MODEL}"`;
    return [
      gauge("num_requests_waiting", model, this.queue),
      gauge("num_requests_running", model, this.#running),
      gauge("gpu_cache_usage_perc", model, this.cacheUsage),
      gauge("kv_cache_usage_perc", model, this.cacheUsage),
      gauge("lora_requests_info", `max_lora="4",running_lora_adapters="tales",waiting_lora_adapters=""`, 1_700_000_000),
      gauge("cache_config_info", `block_size="16",num_gpu_blocks="2048"`, 1),
    ].join("");
  }
}

/** @param address of 127.0.0.0/8: replicas of a pool differ in their addresses and share the port */
export async function startModelServer(
  context: Pick<ProofContext, "after">,
  address: string,
  port: number,
): Promise<ModelServer> {
  const server = new ModelServer(address, port);
  await server.start();
  context.after(() => server.crash());
  return server;
}

function parseChat(bytes: Buffer): Fields | undefined {
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
  if (typeof body !== "object" || body === null) return undefined;
  const { model, messages } = body as Fields;
  return model === MODEL && Array.isArray(messages) && messages.length > 0 ? (body as Fields) : undefined;
}

function send(response: ServerResponse, status: number, body: Fields): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
