/** Chats as clients send them, whole and streamed, over connections that stay open; and a load of them that goes on. */
import assert from "node:assert/strict";
import { Agent, request, type IncomingMessage } from "node:http";
import { parseJson } from "./http.ts";

export interface Chat {
  readonly stream?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ChatAnswer {
  readonly status: number;
  /** Of the gateway, in its log too. */
  readonly requestId: string;
  readonly headers: IncomingMessage["headers"];
  /** What the model says; undefined in an error. */
  readonly text: string | undefined;
  readonly body: string;
}

const TURN = { model: "llama", messages: [{ role: "user", content: "hello" }] };

/** Sends chats to one gateway. */
export class ChatClient {
  readonly #url: string;
  readonly #agent: Agent;

  /** @param url "http://127.0.0.1:port" */
  constructor(url: string, connections: number) {
    this.#url = `${url}/v1/chat/completions`;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  ask({ stream = false, headers = {} }: Chat = {}): Promise<ChatAnswer> {
    return new Promise((resolve, reject) => {
      const options = {
        method: "POST",
        agent: this.#agent,
        headers: { "content-type": "application/json", ...headers },
      };
      const outgoing = request(this.#url, options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => resolve(answerOf(response, Buffer.concat(chunks).toString())));
      });
      outgoing.on("error", reject);
      outgoing.end(JSON.stringify(stream ? { ...TURN, stream } : TURN));
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function answerOf({ statusCode: status = 0, headers }: IncomingMessage, body: string): ChatAnswer {
  const isStream = headers["content-type"]?.startsWith("text/event-stream") === true;
  const text = status !== 200 ? undefined : isStream ? textOfStream(body) : textOf(body);
  return { status, requestId: String(headers["x-request-id"]), headers, text, body };
}

function textOf(body: string): string {
  const { choices } = parseJson(body) as { choices: { message: { content: string } }[] }; // as the format has it
  return choices.map(({ message }) => message.content).join("");
}

function textOfStream(body: string): string {
  const events = body.split("\n\n").filter((event) => event !== "");
  assert.equal(events.pop(), "data: [DONE]", "the stream is whole");
  return events
    .flatMap((event) => {
      const { choices } = parseJson(event.slice("data: ".length)) as { choices: { delta: { content?: string } }[] }; // as the format has it
      return choices.map(({ delta }) => delta.content ?? "");
    })
    .join("");
}

interface LoadOptions {
  /** Chats that are under way at any time. */
  readonly clients: number;
  /** @param number of chats that were begun before */
  readonly chat: (number: number) => Chat;
}

/**
 * Runs the steps under a load: each client sends one chat after the other.
 * @returns all answers
 * @throws what the steps or a client throw
 */
export async function withChatLoad(
  client: ChatClient,
  options: LoadOptions,
  steps: (load: ChatLoad) => Promise<void>,
): Promise<readonly ChatAnswer[]> {
  const load = new ChatLoad(client, options);
  try {
    await steps(load);
  } finally {
    await load.stop();
  }
  return load.answers;
}

export class ChatLoad {
  readonly answers: ChatAnswer[] = [];
  readonly #clients: readonly number[];
  readonly #running: Promise<unknown>;
  #isOver = false;
  /** Clients that have not answered a chat since the last call of `turned`. */
  #behind: Set<number> = new Set();
  #onTurned: () => void = () => undefined;

  constructor(client: ChatClient, { clients, chat }: LoadOptions) {
    this.#clients = Array.from({ length: clients }, (_, at) => at);
    let begun = 0;
    const run = async (at: number): Promise<void> => {
      while (!this.#isOver) {
        // A call of `turned` makes a new set, so that a chat that began before does not count.
        const behind = this.#behind;
        this.answers.push(await client.ask(chat(begun++)));
        if (behind === this.#behind && behind.delete(at) && behind.size === 0) this.#onTurned();
      }
    };
    this.#running = Promise.all(this.#clients.map(run));
  }

  /** Resolves when each client has the answer to a chat that it began after this call. */
  async turned(): Promise<void> {
    this.#behind = new Set(this.#clients);
    await Promise.race([new Promise<void>((done) => (this.#onTurned = done)), this.#running]);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }
}
