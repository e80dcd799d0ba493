/**
 * The client side of HTTP+SSE (2024-11-05, "HTTP with SSE"): GET opens the stream that carries everything the client is
 * told, and names the address to post to; posts are accepted, and answered on the stream. A post may arrive at any thread
 * of the replica: that thread does the call, and hands what comes of it to the thread of the stream. The handler creates
 * one for each backend and place.
 */
import { pathOf } from "../../../lib/network/request-target.ts";
import type { Reply, RoutedExchange } from "../../exchange/exchange.ts";
import { CallLifetime } from "../call-lifetime.ts";
import { callOf, recordCall } from "../call-record.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import { findMethod } from "../methods.ts";
import type { Session } from "../session/session.ts";
import type { SessionOwner } from "../session/sessions.ts";
import { subjectOf } from "../session/subject.ts";
import type { McpAnswer } from "../targets/target.ts";
import { checkOrigin } from "./check-origin.ts";
import { clientStreamsOf, openStreamId, sealStreamId, type ClientStreams, type StreamPlace } from "./client-streams.ts";
import { negotiatedVersion, readInitialize } from "./initialize.ts";
import { InvalidMessage, readPost, requireEventStream } from "./read-post.ts";
import { unknownMethod } from "./routing-headers.ts";
import type { ClientSideOptions } from "./streamable-http.ts";
import { ASSUMED_VERSION, checkVersion, claimedVersionOf, isModern } from "../versions.ts";
import { acceptedReply, EventBody, eventReply, failureReply, methodRefused, printFailure } from "./write-answer.ts";

const PATH = "/sse";
/** Requests of one stream that one thread may have in progress. */
const MAX_RUNNING = 256;
/** Interval at which a call looks whether its client is still there. */
const LOOK_MS = 15_000;

/** Whether a request is for this transport: its path tells, after rewrites. */
export function isLegacySse({ target }: Pick<RoutedExchange, "target">): boolean {
  return pathOf(target) === PATH;
}

/** A post with the stream that it belongs to. */
interface Inbound {
  readonly exchange: RoutedExchange;
  readonly place: StreamPlace;
  readonly owner: SessionOwner;
  /** undefined before `initialize`. */
  readonly session: Session | undefined;
  readonly version: string;
}

export class LegacySse {
  readonly #options: ClientSideOptions;
  readonly #streams: ClientStreams;
  /** Numbers of requests in progress, by key of the stream. */
  readonly #running = new Map<string, number>();

  constructor(options: ClientSideOptions) {
    this.#options = options;
    this.#streams = clientStreamsOf(options.sessions);
  }

  /** @throws ProxyError when the exchange ended */
  async answer(exchange: RoutedExchange): Promise<Reply> {
    try {
      checkOrigin(exchange);
      if (exchange.method === "POST") return await this.#post(exchange);
      return exchange.method === "GET" && !this.#options.isStateless ? this.#get(exchange) : methodRefused("GET, POST");
    } catch (error) {
      if (error instanceof McpError) callOf(exchange)?.failed(error);
      if (error instanceof McpError) return failureReply(error, error instanceof InvalidMessage ? error.id : undefined);
      throw error;
    }
  }

  #get(exchange: RoutedExchange): Reply {
    const { sessions, multiplexer } = this.#options;
    requireEventStream(exchange.requestHeaders);
    const owner = this.#ownerOf(exchange);
    const stream = this.#streams.open({
      owner,
      listen: (id) => {
        const session = sessions.resume(id, owner);
        if (session === undefined) throw lost();
        return multiplexer.listen(session, exchange);
      },
      end: (id) => {
        const session = sessions.resume(id, owner);
        if (session === undefined) return;
        sessions.end(session);
        void multiplexer.end(session, exchange);
      },
    });
    exchange.onDone(() => stream.close());
    const id = sealStreamId(sessions.seal, { thread: sessions.threads.own, key: stream.key });
    const { originalTarget } = exchange;
    const address = `${originalTarget}${originalTarget.includes("?") ? "&" : "?"}sessionId=${id}`;
    const view = ({ bytes }: Message): Buffer => bytes;
    const head = Buffer.from(`event: endpoint\ndata: ${address}\n\n`);
    const how = { view, printFailure: undefined, cancel: () => stream.close(), lifetime: undefined, head };
    return eventReply(new EventBody(stream.queue, how));
  }

  async #post(exchange: RoutedExchange): Promise<Reply> {
    const { sessions, isStateless } = this.#options;
    const id = new URLSearchParams(exchange.target.slice(PATH.length)).getAll("sessionId").at(-1);
    if (id === undefined) throw new McpError(ERROR_CODES.invalidRequest, "sessionId is missing", { status: 422 });
    const place = isStateless ? undefined : openStreamId(sessions.seal, id);
    const owner = this.#ownerOf(exchange);
    const found = place && (await sessions.threads.ask(place.thread, "findClient", { key: place.key, owner }));
    if (found === undefined || place === undefined) throw lost();
    const header = checkVersion(claimedVersionOf(exchange.requestHeaders));
    if (header !== undefined && isModern(header))
      throw new McpError(ERROR_CODES.invalidRequest, "this version does not use this transport", { status: 400 });
    const post = await readPost(exchange, false);
    const session = found.session === undefined ? undefined : sessions.resume(found.session, owner);
    if (found.session !== undefined && session === undefined) throw lost();
    const version = header ?? session?.client.version ?? ASSUMED_VERSION;
    const [message] = post.messages;
    if (message === undefined || post.isBatch)
      throw new McpError(ERROR_CODES.invalidRequest, "this transport has no batches", { status: 400 });
    if (message.method !== undefined) recordCall(exchange, message, undefined);
    await this.#accept(message, { exchange, place, owner, session, version });
    return acceptedReply();
  }

  /** Starts a request, or passes on anything else. @throws McpError, ProxyError */
  async #accept(message: Message, inbound: Inbound): Promise<void> {
    const { session, exchange, version, place } = inbound;
    if (message.kind === "request") return this.#start(message, inbound);
    // Before `initialize` no target is there to be told anything.
    if (session === undefined) return;
    await this.#options.multiplexer.notify({ message, session, exchange, version, isModern: false });
    if (message.method === "notifications/initialized")
      await this.#options.sessions.threads.ask(place.thread, "listenForClient", { key: place.key });
  }

  /** @throws McpError when too many requests are in progress */
  #start(message: Message, inbound: Inbound): void {
    const { key } = inbound.place;
    const running = this.#running.get(key) ?? 0;
    if (running >= MAX_RUNNING)
      throw new McpError(ERROR_CODES.invalidRequest, "too many requests are in progress", { status: 429 });
    this.#running.set(key, running + 1);
    const lifetime = new CallLifetime(inbound.exchange, true);
    const call = callOf(inbound.exchange);
    if (call !== undefined) call.lifetime = lifetime;
    lifetime.onDone(() => {
      const left = (this.#running.get(key) ?? 1) - 1;
      if (left === 0) this.#running.delete(key);
      else this.#running.set(key, left);
    });
    void this.#run(message, inbound, lifetime).finally(() => lifetime.end());
  }

  /** Tells the client what comes of a request, while its stream is open. */
  async #run(message: Message, inbound: Inbound, lifetime: CallLifetime): Promise<void> {
    const { threads } = this.#options.sessions;
    const { thread, key } = inbound.place;
    const look = async (): Promise<void> => {
      const found = await threads.ask(thread, "findClient", { key, owner: inbound.owner });
      if (found === undefined) lifetime.cancel();
    };
    const timer = setInterval(() => void look(), LOOK_MS).unref();
    try {
      for await (const bytes of this.#print(message, inbound))
        if ((await threads.ask(thread, "tellClient", { key, bytes })) !== true) return;
    } finally {
      clearInterval(timer);
    }
  }

  /** Yields the messages for the client; the last is the response. */
  async *#print(message: Message, inbound: Inbound): AsyncGenerator<Buffer> {
    const call = callOf(inbound.exchange);
    let answer: McpAnswer | undefined;
    try {
      answer = await (message.method === "initialize"
        ? this.#initialize(message, inbound)
        : this.#request(message, inbound));
      if (answer.body !== undefined) yield refusalOf(answer.body, message);
      for await (const each of answer.messages) {
        call?.answered(each);
        yield each.bytes;
      }
    } catch (error) {
      if (error instanceof McpError) call?.failed(error);
      yield printFailure(error, message.id);
    } finally {
      answer?.cancel();
    }
  }

  #request(message: Message, { session, exchange, version }: Inbound): Promise<McpAnswer> {
    const method = findMethod(message.method ?? "");
    if (method === undefined || !method.inSessions) throw unknownMethod(200);
    if (session === undefined) throw new McpError(ERROR_CODES.invalidRequest, "the session is not initialized");
    return this.#options.multiplexer.request({ message, method, session, exchange, version, isModern: false });
  }

  async #initialize(received: Message, inbound: Inbound): Promise<McpAnswer> {
    const { sessions, multiplexer } = this.#options;
    const { exchange, owner, place } = inbound;
    const method = findMethod("initialize");
    if (inbound.session !== undefined || method === undefined)
      throw new McpError(ERROR_CODES.invalidRequest, "the session is initialized already");
    const { message, client } = readInitialize(received, false);
    const session = sessions.begin(client, owner);
    const { version } = client;
    const answer = await multiplexer.request({ message, method, session, exchange, version, isModern: false });
    const messages: Message[] = [];
    for await (const each of answer.messages) messages.push(each);
    const response = messages.at(-1);
    if (response?.kind !== "result") return { ...answer, messages };
    const registered = sessions.register(session, negotiatedVersion(response) ?? version);
    const body = { key: place.key, session: registered.id ?? "" };
    // The stream ends the session when it closes; one that has closed meanwhile cannot.
    if ((await sessions.threads.ask(place.thread, "enterClient", body)) !== true) {
      sessions.end(registered);
      await multiplexer.end(registered, exchange);
    }
    return { ...answer, messages };
  }

  #ownerOf(exchange: RoutedExchange): SessionOwner {
    return { backend: this.#options.backend, subject: subjectOf(exchange) };
  }
}

function lost(): McpError {
  return new McpError(ERROR_CODES.invalidRequest, "Session not found", { status: 404 });
}

/** Prints the response of a target that refused the request: its own, or an error where it sent none. */
function refusalOf(body: Buffer, { id }: Message): Buffer {
  const message = readMessage(body);
  if ("kind" in message && message.kind === "error" && message.id === id) return message.bytes;
  return printFailure(new McpError(ERROR_CODES.internal, "the server refused the request"), id);
}
