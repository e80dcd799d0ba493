/**
 * The seam between the client side and the targets of an MCP backend: the handler reads and checks what clients send,
 * the multiplexer decides which targets get it and makes one answer of theirs.
 */
import type { RoutedExchange } from "../../exchange/exchange.ts";
import type { GuardedRequest } from "../guardrails/guarded-request.ts";
import type { Message } from "../message/message.ts";
import type { Method } from "../methods.ts";
import type { Session } from "../session/session.ts";
import type { McpAnswer } from "../targets/target.ts";

/** A message of a client that passed the checks of the client side. */
export interface ClientMessage {
  readonly message: Message;
  /** Protocol version of the request: of its header, or of the session. */
  readonly version: string;
  /** From 2026-07-28 on: no session, and routing headers that agree with the body. */
  readonly isModern: boolean;
  readonly session: Session;
  readonly exchange: RoutedExchange;
}

export interface ClientRequest extends ClientMessage {
  readonly method: Method;
  /** Set by the multiplexer: the services that check the request. */
  readonly guarded?: GuardedRequest | undefined;
}

export interface Multiplexer {
  /** Answers a request; the last message is the response. @throws McpError, ProxyError */
  request(request: ClientRequest): Promise<McpAnswer>;
  /** Passes on a notification, or a response to a request of a target. @throws McpError, ProxyError */
  notify(message: ClientMessage): Promise<void>;
  /** Opens the stream of messages that targets send on their own. @throws McpError, ProxyError */
  listen(session: Session, exchange: RoutedExchange): Promise<McpAnswer>;
  /** Ends the sessions with all targets. @throws McpError, ProxyError */
  end(session: Session, exchange: RoutedExchange): Promise<void>;
}
