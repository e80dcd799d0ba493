/** Sessions over WebSocket with prompt guards between a client and a fake of OpenAI's realtime service. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { WebSocket } from "ws";
import type { ProxyOptions } from "../../../src/proxy/proxy.ts";
import { expectEvent } from "../proofs/expect-event.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { OPENAI_KEY } from "../servers/llm/openai.ts";
import { startRealtime, type RealtimeServer } from "../servers/llm/openai-realtime.ts";
import { documents, GATEWAY, route, startGateway } from "./gateway.ts";

export interface SessionEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** The client of a session; it records the events that it receives in order. */
class SessionClient {
  readonly socket: WebSocket;
  readonly #events: SessionEvent[] = [];
  #wake: () => void = () => undefined;

  constructor(url: string) {
    this.socket = new WebSocket(url, [], { perMessageDeflate: false });
    this.socket.on("message", (data: Buffer) => {
      this.#events.push(JSON.parse(data.toString()) as SessionEvent);
      this.#wake();
    });
  }

  send(event: object): void {
    this.socket.send(JSON.stringify(event));
  }

  /** Resolves with all events up to the first one of this type, and forgets them. */
  async until(type: string): Promise<SessionEvent[]> {
    for (;;) {
      const at = this.#events.findIndex((event) => event.type === type);
      if (at !== -1) return this.#events.splice(0, at + 1);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

export interface Session {
  readonly client: SessionClient;
  readonly realtime: RealtimeServer;
}

interface SessionOptions {
  readonly path?: "realtime" | "responses";
  readonly objects?: readonly string[];
  readonly telemetry?: ProxyOptions["telemetry"];
}

/** @param guards members of `promptGuard` in flow YAML */
export async function openSession(
  context: ProofContext,
  guards: string,
  { path = "realtime", objects = [], telemetry }: SessionOptions = {},
): Promise<Session> {
  const realtime = await startRealtime(context);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {llma: {}, host: 127.0.0.1, port: ${realtime.port}}}
  policies: {auth: {key: ${OPENAI_KEY}}, ai: {promptGuard: {streaming: Enabled, ${guards}}}}
`;
  const manifests = documents(GATEWAY, backend, route("ai", "ai"), ...objects);
  const gateway = await startGateway(context, manifests, telemetry === undefined ? {} : { telemetry });
  const query = path === "realtime" ? "?model=gpt-9" : "";
  const client = new SessionClient(`${gateway.url().replace("http", "ws")}/v1/${path}${query}`);
  context.after(() => client.socket.terminate());
  const failed = once(client.socket, "error").then(([error]) => assert.fail(String(error)));
  await expectEvent(context, Promise.race([once(client.socket, "open"), failed]), "an open session");
  failed.catch(() => undefined);
  return { client, realtime };
}

export const ADDRESS = "bob@example.com";
/** Returns an event with which a user says something. */
export function message(...content: readonly object[]): object {
  return { type: "conversation.item.create", item: { type: "message", role: "user", content } };
}

/** Names of the parts of an answer. */
export const IDS = { response_id: "resp_1", item_id: "item_1", output_index: 0, content_index: 0 };

/** The events of an answer whose text comes in pieces. */
export function answerOf(pieces: readonly string[], kind = "output_text", ids: typeof IDS = IDS): SessionEvent[] {
  const whole = pieces.join("");
  const member = kind === "output_text" ? "text" : "transcript";
  const item = {
    id: ids.item_id,
    type: "message",
    role: "assistant",
    content: [{ type: "output_audio", transcript: whole }],
  };
  return [
    { type: "response.created", response: { id: ids.response_id, status: "in_progress", output: [] } },
    ...pieces.map((delta) => ({ type: `response.${kind}.delta`, ...ids, delta })),
    { type: `response.${kind}.done`, ...ids, [member]: whole },
    { type: "response.output_item.done", response_id: ids.response_id, item },
    {
      type: "response.done",
      response: { id: ids.response_id, object: "realtime.response", status: "completed", output: [item], usage: {} },
    },
  ];
}
