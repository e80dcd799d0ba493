/**
 * The client side of Streamable HTTP: what a client posts is checked and read, gets its session, and goes to the
 * multiplexer; GET opens the stream of messages that targets send on their own, and DELETE ends the session. The handler
 * creates one for each backend and place.
 */
import { VERSION } from "../../../lib/version.ts";
import type { Reply, RoutedExchange } from "../../exchange/exchange.ts";
import { CallLifetime } from "../call-lifetime.ts";
import { callOf, recordCall } from "../call-record.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import { findMethod, type Method } from "../methods.ts";
import type { Multiplexer } from "../multiplex/multiplexer.ts";
import type { ClientInfo, Session } from "../session/session.ts";
import { withoutSession, type LiveSession, type SessionOwner, type Sessions } from "../session/sessions.ts";
import { subjectOf } from "../session/subject.ts";
import type { McpAnswer } from "../targets/target.ts";
import { answerBatch } from "./batch.ts";
import { checkOrigin } from "./check-origin.ts";
import { negotiatedVersion, readInitialize } from "./initialize.ts";
import { InvalidMessage, readPost, requireEventStream, type Post } from "./read-post.ts";
import { checkModernNotification, checkModernRequest, refuseOtherVersion, unknownMethod } from "./routing-headers.ts";
import { ASSUMED_VERSION, checkVersion, claimedVersionOf, HIGHEST_SESSION_VERSION, isModern } from "../versions.ts";
import {
  acceptedReply,
  answerReply,
  COMMENT,
  EventBody,
  failureReply,
  methodRefused,
  printFailure,
} from "./write-answer.ts";

const SESSION_HEADER = "mcp-session-id";

export interface ClientSideOptions {
  readonly multiplexer: Multiplexer;
  readonly sessions: Sessions;
  /** Key of the backend. */
  readonly backend: string;
  readonly isStateless: boolean;
  /** Whether a client can do without a session: the one target is not pinned and need not issue an id. */
  readonly isSessionOptional: boolean;
  /** Whether the id of a session is needed for what the targets issued. */
  readonly needsSession: (session: Session) => boolean;
}

/** A message with what was found out about its request. */
interface Inbound {
  readonly exchange: RoutedExchange;
  readonly version: string;
  readonly isModern: boolean;
  readonly session: Session;
}

export class StreamableHttp {
  readonly #options: ClientSideOptions;

  constructor(options: ClientSideOptions) {
    this.#options = options;
  }

  /** @throws ProxyError when the exchange ended */
  async answer(exchange: RoutedExchange): Promise<Reply> {
    try {
      checkOrigin(exchange);
      switch (exchange.method) {
        case "POST":
          return await this.#post(exchange);
        case "GET":
          return await this.#get(exchange);
        case "DELETE":
          return await this.#delete(exchange);
        default:
          return this.#refuseMethod();
      }
    } catch (error) {
      if (error instanceof McpError) return failureReply(error, error instanceof InvalidMessage ? error.id : undefined);
      throw error;
    }
  }

  async #post(exchange: RoutedExchange): Promise<Reply> {
    const claimed = claimedVersionOf(exchange.requestHeaders);
    const post = await readPost(exchange);
    const [first] = post.messages;
    const id = post.isBatch ? undefined : first?.id;
    const hasSession = !this.#options.isStateless && (claimed === undefined || !isModern(claimed));
    if (first?.method !== undefined)
      recordCall(exchange, first, hasSession ? exchange.requestHeaders.get(SESSION_HEADER) : undefined);
    try {
      const isInitialize = first?.method === "initialize" && first.kind === "request" && !post.isBatch;
      const header = checkVersion(claimed, isInitialize);
      if (header !== undefined && isModern(header)) return await this.#modern(post, header, exchange);
      for (const message of post.messages) refuseOtherVersion(message, header);
      if (isInitialize) return await this.#initialize(first, exchange);
      return await this.#inSession(post, header, exchange);
    } catch (error) {
      if (error instanceof McpError) callOf(exchange)?.failed(error);
      // A response has an id of the server's own, which no error may name.
      if (error instanceof McpError) return failureReply(error, first?.kind === "request" ? id : undefined);
      throw error;
    }
  }

  async #modern({ messages, isBatch }: Post, version: string, exchange: RoutedExchange): Promise<Reply> {
    const [message] = messages;
    if (message === undefined || isBatch || message.method === undefined)
      throw new McpError(ERROR_CODES.invalidRequest, "this version has single requests and notifications only", {
        status: 400,
      });
    const session = withoutSession({ ...OWN_INFO, version }, true);
    const inbound = { exchange, version, isModern: true, session };
    if (message.kind === "notification") {
      checkModernNotification(message, version, exchange.requestHeaders);
      await this.#options.multiplexer.notify({ message, ...inbound });
      return acceptedReply();
    }
    const method = checkModernRequest(message, version, exchange.requestHeaders);
    return this.#reply(message, exchange, await this.#options.multiplexer.request({ message, method, ...inbound }));
  }

  async #initialize(received: Message, exchange: RoutedExchange): Promise<Reply> {
    const { sessions, multiplexer, isStateless, needsSession } = this.#options;
    if (!isStateless && exchange.requestHeaders.has(SESSION_HEADER)) {
      this.#requireSession(exchange);
      throw new McpError(ERROR_CODES.invalidRequest, "the session is initialized already", { status: 400 });
    }
    const { message, client } = readInitialize(received, isStateless);
    const begun = isStateless ? undefined : sessions.begin(client, this.#ownerOf(exchange));
    const session = begun ?? withoutSession(client, true);
    if (isStateless) this.#endAfter(exchange, session);
    const inbound = { exchange, version: client.version, isModern: false, session };
    const answer = await multiplexer.request({ message, method: methodOf("initialize"), ...inbound });
    if (answer.body !== undefined) return this.#reply(message, exchange, answer);
    // The id of the session is a header, so the whole answer has to be known first.
    const messages: Message[] = [];
    for await (const each of answer.messages) messages.push(each);
    const response = messages.at(-1);
    const only = messages.length === 1 ? response : undefined;
    const reply = this.#reply(message, exchange, { ...answer, only, messages });
    if (response?.kind !== "result" || begun === undefined || !needsSession(session)) return reply;
    const { id } = sessions.register(begun, negotiatedVersion(response) ?? client.version);
    if (id !== undefined) reply.headers.set(SESSION_HEADER, id);
    return reply;
  }

  /** A client that leaves has not cancelled its requests. */
  async #inSession(post: Post, header: string | undefined, exchange: RoutedExchange): Promise<Reply> {
    const call = callOf(exchange);
    if (call === undefined) return this.#answer(post, header, exchange);
    call.lifetime = new CallLifetime(exchange);
    let reply: Reply | undefined;
    try {
      return (reply = await this.#answer(post, header, exchange));
    } finally {
      // A stream ends the calls when it has been read.
      if (!(reply?.body instanceof EventBody)) call.lifetime.endAbandoned();
    }
  }

  async #answer(post: Post, header: string | undefined, exchange: RoutedExchange): Promise<Reply> {
    const session = this.#findSession(header, exchange);
    const version = header ?? session.client.version;
    post.checkBatch(version);
    const inbound: Inbound = { exchange, version, isModern: false, session };
    const handle = (message: Message): Promise<McpAnswer | undefined> => this.#handle(message, inbound);
    if (post.isBatch) return answerBatch(post.messages, handle, printFailure, callOf(exchange)?.lifetime);
    const [message] = post.messages;
    if (message === undefined) return acceptedReply();
    const answer = await handle(message);
    return answer === undefined ? acceptedReply() : this.#reply(message, exchange, answer);
  }

  /** @returns undefined for notifications and responses */
  async #handle(message: Message, inbound: Inbound): Promise<McpAnswer | undefined> {
    const { multiplexer, isStateless } = this.#options;
    if (message.kind === "request") {
      const method = findMethod(message.method ?? "");
      if (method === undefined || !method.inSessions) throw unknownMethod(200);
      if (method.name === "initialize")
        throw new McpError(ERROR_CODES.invalidRequest, "initialize cannot be part of a batch", { status: 400 });
      return multiplexer.request({ message, method, ...inbound });
    }
    // Without a session no target waits for a notification or a response.
    if (!isStateless) await multiplexer.notify({ message, ...inbound });
    return undefined;
  }

  async #get(exchange: RoutedExchange): Promise<Reply> {
    const header = checkVersion(claimedVersionOf(exchange.requestHeaders));
    if (this.#options.isStateless || (header !== undefined && isModern(header))) return this.#refuseMethod();
    requireEventStream(exchange.requestHeaders);
    const session = this.#findSession(header, exchange);
    const answer = await this.#options.multiplexer.listen(session, exchange);
    // A stream of a target that breaks off ends without a word: no request waits for an error.
    return answerReply(answer, { view: bytesOf, printFailure: undefined, lifetime: undefined, head: COMMENT });
  }

  async #delete(exchange: RoutedExchange): Promise<Reply> {
    const { isStateless, sessions, multiplexer } = this.#options;
    const header = checkVersion(claimedVersionOf(exchange.requestHeaders));
    if (isStateless || (header !== undefined && isModern(header))) return this.#refuseMethod();
    if (!exchange.requestHeaders.has(SESSION_HEADER)) throw missingSession();
    const session = this.#resume(exchange);
    // A session that is unknown here has nothing to end, and the answer tells no one whether it exists.
    if (session === undefined) return acceptedReply();
    sessions.end(session);
    await multiplexer.end(session, exchange);
    return acceptedReply();
  }

  /** @throws McpError when the client must have a session and has none, or one that is unknown */
  #findSession(header: string | undefined, exchange: RoutedExchange): Session {
    const { isStateless, isSessionOptional } = this.#options;
    if (isStateless) {
      const session = withoutSession({ ...OWN_INFO, version: header ?? HIGHEST_SESSION_VERSION }, false);
      this.#endAfter(exchange, session);
      return session;
    }
    if (exchange.requestHeaders.has(SESSION_HEADER)) return this.#requireSession(exchange);
    if (!isSessionOptional) throw missingSession();
    return withoutSession({ ...OWN_INFO, version: header ?? ASSUMED_VERSION }, true);
  }

  #requireSession(exchange: RoutedExchange): Session {
    const session = this.#resume(exchange);
    if (session === undefined) throw new McpError(ERROR_CODES.invalidRequest, "Session not found", { status: 404 });
    return session;
  }

  /** @returns undefined when the session is unknown; several fields name none */
  #resume(exchange: RoutedExchange): LiveSession | undefined {
    const [id = "", ...others] = exchange.requestHeaders.getAll(SESSION_HEADER);
    return others.length > 0 ? undefined : this.#options.sessions.resume(id, this.#ownerOf(exchange));
  }

  #ownerOf(exchange: RoutedExchange): SessionOwner {
    return { backend: this.#options.backend, subject: subjectOf(exchange) };
  }

  /** Ends the sessions of one request when its answer was sent. */
  #endAfter(exchange: RoutedExchange, session: Session): void {
    const end = (): void => void this.#options.multiplexer.end(session, exchange);
    (callOf(exchange)?.lifetime ?? exchange).onDone(end);
  }

  #reply({ id }: Message, exchange: RoutedExchange, answer: McpAnswer): Reply {
    const call = callOf(exchange);
    const view = (message: Message): Buffer => {
      call?.answered(message);
      return message.bytes;
    };
    const print = (error: unknown): Buffer => {
      if (error instanceof McpError) call?.failed(error);
      return printFailure(error, id);
    };
    return answerReply(answer, { view, printFailure: print, lifetime: call?.lifetime });
  }

  #refuseMethod(): Reply {
    const allow = this.#options.isStateless ? "POST" : "POST, GET, DELETE";
    return methodRefused(allow);
  }
}

/** What the gateway says of itself where it opens sessions on its own. */
const OWN_INFO: ClientInfo = {
  version: HIGHEST_SESSION_VERSION,
  capabilities: "{}",
  name: "gwproxy",
  clientVersion: VERSION,
};

function bytesOf({ bytes }: Message): Buffer {
  return bytes;
}

function methodOf(name: string): Method {
  const method = findMethod(name);
  if (method === undefined) throw unknownMethod(200);
  return method;
}

function missingSession(): McpError {
  return new McpError(ERROR_CODES.invalidRequest, "Bad Request: Mcp-Session-Id is required", { status: 400 });
}
