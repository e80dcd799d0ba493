/**
 * The realtime side of OpenAI: sessions over WebSocket, and Responses over one. It answers each `response.create` with a
 * text and its usage, and records how sessions were opened.
 */
import type { IncomingMessage } from "node:http";
import { WebSocketServer, type WebSocket } from "ws";
import type { ProofContext } from "../../proofs/prove.ts";
import { OPENAI_KEY } from "./openai.ts";

export interface RealtimeServer {
  readonly port: number;
  /** Requests that opened a session, oldest first. */
  readonly opened: readonly IncomingMessage[];
  /** Events of the clients, oldest first. */
  readonly received: readonly { readonly type: string }[];
  /** Code of the close frame that ends the first session. */
  readonly closed: Promise<number>;
  /** Sets the events that answer the next `response.create`; undefined for a text and its usage. */
  says: readonly object[] | undefined;
}

export async function startRealtime(context: Pick<ProofContext, "after">): Promise<RealtimeServer> {
  const opened: IncomingMessage[] = [];
  const received: { type: string }[] = [];
  const { promise: closed, resolve: close } = Promise.withResolvers<number>();
  const realtime: RealtimeServer & { port: number } = { port: 0, opened, received, closed, says: undefined };
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: { threshold: 0 } });
  server.on("connection", (socket: WebSocket, request: IncomingMessage) => {
    if (request.headers.authorization !== `Bearer ${OPENAI_KEY}`) return socket.close(1008, "invalid key");
    opened.push(request);
    socket.on("close", close);
    const isRealtime = request.url?.startsWith("/v1/realtime?") === true;
    socket.on("message", (data: Buffer) => {
      const event = JSON.parse(data.toString()) as { type: string };
      received.push(event);
      if (realtime.says === undefined) answer(socket, event, isRealtime);
      else if (event.type === "response.create") for (const said of realtime.says) socket.send(JSON.stringify(said));
    });
  });
  await new Promise((resolve) => server.on("listening", resolve));
  context.after(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  realtime.port = server.address().port;
  return realtime;
}

const REALTIME_USAGE = {
  total_tokens: 30,
  input_tokens: 20,
  output_tokens: 10,
  input_token_details: { cached_tokens: 4, text_tokens: 15, audio_tokens: 5 },
  output_token_details: { text_tokens: 4, audio_tokens: 6 },
};
const RESPONSE_USAGE = { total_tokens: 30, input_tokens: 20, output_tokens: 10 };

function answer(socket: WebSocket, { type }: { readonly type: string }, isRealtime: boolean): void {
  if (type !== "response.create") return;
  const send = (event: object): void => socket.send(JSON.stringify(event));
  send({ type: "response.output_text.delta", event_id: "e1", delta: "Hello" });
  const response = {
    id: "resp_1",
    object: isRealtime ? "realtime.response" : "response",
    model: "gpt-9",
    status: "completed",
    output: [],
  };
  const usage = isRealtime ? REALTIME_USAGE : RESPONSE_USAGE;
  const event = JSON.stringify({
    type: isRealtime ? "response.done" : "response.completed",
    event_id: "e2",
    response: { ...response, usage },
  });
  // The service may cut a message into fragments.
  socket.send(event.slice(0, 40), { fin: false });
  socket.ping(Buffer.from("between"));
  socket.send(event.slice(40), { fin: true });
}
