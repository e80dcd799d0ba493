/**
 * Enters sessions with a target on behalf of a client that has initialised already: a target that came after the session
 * began, one that has lost its session (404), and each request of `sessionRouting: Stateless`. Calls that need the
 * session meanwhile wait for the same attempt.
 */
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import { nextOwnId } from "../message/own-id.ts";
import { stringAt, textOf, findMember } from "../message/spans.ts";
import type { ClientInfo, Session, TargetSession } from "../session/session.ts";
import type { TargetAnswer } from "./read-answer.ts";
import type { TargetMessage } from "./target.ts";

type Post = (out: TargetMessage, own: TargetSession, caller: RoutedExchange) => Promise<TargetAnswer>;

/** Ends a session with the target, and leaves that of the client alone. */
type Leave = (own: Readonly<TargetSession>, session: Session, caller: RoutedExchange) => Promise<void>;

/** Time for which a target that issued no session id is not entered again for requests that stand for themselves. */
const SESSIONLESS_MS = 60_000;

/** Subscriptions that are kept per session and target for healing; further ones are lost with a target's session. */
const MAX_SUBSCRIPTIONS = 1_024;

/** The session is gone for good: clients then begin a new one. */
export function sessionLost(): McpError {
  return new McpError(ERROR_CODES.invalidRequest, "Session not found", { status: 404 });
}

export class EnteringTarget {
  readonly #name: string;
  readonly #post: Post;
  readonly #leave: Leave;
  /** Until when requests that stand for themselves need not be entered: the target issues no session ids. */
  #sessionlessUntilMs = 0;

  constructor(name: string, post: Post, leave: Leave) {
    this.#name = name;
    this.#post = post;
    this.#leave = leave;
  }

  /** Enters the session unless it is entered. @param isGone whether the endpoint of the session is gone */
  async ensure(session: Session, own: TargetSession, caller: RoutedExchange, isGone: boolean): Promise<void> {
    if (isGone) return void (await this.heal(session, own, caller, own.id));
    if (session.id === undefined && performance.now() < this.#sessionlessUntilMs) own.entered = true;
    try {
      while (!own.entered) await this.#enterOnce(session, own, caller);
    } catch (error) {
      throw own.isLost && error instanceof McpError ? sessionLost() : error;
    }
  }

  /**
   * Enters the session anew and repeats what the client set in it.
   * @param lostId the id that the target no longer knows; another call or thread may have healed the session since
   * @returns whether the session is new; the one of another thread may be lost too
   */
  async heal(
    session: Session,
    own: TargetSession,
    caller: RoutedExchange,
    lostId: string | undefined,
  ): Promise<boolean> {
    if (own.id !== lostId || !own.entered) {
      await this.ensure(session, own, caller, false);
      return false;
    }
    if (session.refresh(this.#name)) {
      await this.#restore(session, own, caller);
      return false;
    }
    own.entered = false;
    own.id = undefined;
    own.endpoint = undefined;
    own.isLost = true;
    await this.ensure(session, own, caller, false);
    const entered = { ...own };
    // What a server says to its client must have one session to come from, so of threads that enter at once one stays.
    const isNew = session.publish(this.#name, lostId);
    if (!isNew) await this.#leave(entered, session, caller);
    // Threads know different settings of the client.
    await this.#restore(session, own, caller);
    return isNew;
  }

  /** The target refused a request without a session: the next one enters again. */
  forgetSessionless(): void {
    this.#sessionlessUntilMs = 0;
  }

  /** Notes what a client set in its session and the target would forget with it. */
  remember({ message }: TargetMessage, session: Session): void {
    const { method, bytes, payload } = message;
    if (method === undefined || payload === undefined) return;
    if (method === "logging/setLevel") {
      const level = findMember(bytes, payload, "level");
      if (level !== undefined) session.logLevel = textOf(bytes, level);
      return;
    }
    if (method !== "resources/subscribe" && method !== "resources/unsubscribe") return;
    const uri = stringAt(bytes, payload, "uri");
    if (uri === undefined) return;
    const known = session.subscriptions.get(this.#name) ?? new Set();
    if (method === "resources/unsubscribe") known.delete(uri);
    else if (known.size < MAX_SUBSCRIPTIONS) known.add(uri);
    session.subscriptions.set(this.#name, known);
  }

  async #enterOnce(session: Session, own: TargetSession, caller: RoutedExchange): Promise<void> {
    const others = own.entering;
    if (others !== undefined) {
      // It fails for the caller that began it; this call then tries for itself.
      await others.catch(() => undefined);
      return;
    }
    own.entering = this.#enter(session, own, caller);
    try {
      await own.entering;
    } finally {
      own.entering = undefined;
    }
  }

  async #enter(session: Session, own: TargetSession, caller: RoutedExchange): Promise<void> {
    const { client } = session;
    const message = ownMessage(initializeText(client));
    const answer = await this.#post({ message, version: client.version, name: undefined }, own, caller);
    const response = await responseIn(answer, message.id);
    if (response?.kind !== "result")
      throw new McpError(ERROR_CODES.internal, "the server refused a session", { status: 500 });
    own.entered = true;
    own.isLost = false;
    await this.#tell(INITIALIZED, session, own, caller);
    if (session.id === undefined && own.id === undefined) this.#sessionlessUntilMs = performance.now() + SESSIONLESS_MS;
  }

  async #restore(session: Session, own: TargetSession, caller: RoutedExchange): Promise<void> {
    if (session.logLevel !== undefined) {
      const params = `{"level":${session.logLevel}}`;
      await this.#tell(requestText("logging/setLevel", params), session, own, caller);
    }
    for (const uri of session.subscriptions.get(this.#name) ?? [])
      await this.#tell(requestText("resources/subscribe", `{"uri":${JSON.stringify(uri)}}`), session, own, caller);
  }

  /** Sends a message of our own whose answer changes nothing. */
  async #tell(text: string, session: Session, own: TargetSession, caller: RoutedExchange): Promise<void> {
    const message = ownMessage(text);
    const answer = await this.#post({ message, version: session.client.version, name: undefined }, own, caller);
    if (message.kind === "request") await responseIn(answer, message.id);
    else if (answer.kind === "events") await answer.events.return();
  }
}

const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';

function initializeText({ version, capabilities, name, clientVersion }: ClientInfo): string {
  const info = `{"name":${JSON.stringify(name)},"version":${JSON.stringify(clientVersion)}}`;
  const protocol = JSON.stringify(version);
  const params = `{"protocolVersion":${protocol},"capabilities":${capabilities},"clientInfo":${info}}`;
  return requestText("initialize", params);
}

function requestText(method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":${nextOwnId("enter")},"method":"${method}","params":${params}}`;
}

function ownMessage(text: string): Message {
  const message = readMessage(Buffer.from(text));
  if ("code" in message) throw new McpError(ERROR_CODES.internal, "internal error", { detail: message.reason });
  return message;
}

/** Reads an answer up to the response with this id. */
async function responseIn(answer: TargetAnswer, id: string | undefined): Promise<Message | undefined> {
  if (answer.kind === "message") return answer.message.id === id ? answer.message : undefined;
  if (answer.kind !== "events") return undefined;
  for await (const message of answer.events) {
    if (message.method !== undefined || message.id !== id) continue;
    answer.events.finish();
    return message;
  }
  return undefined;
}
