/**
 * The interface of one configured MCP server to the multiplexer. `http-target.ts` implements it for Streamable HTTP,
 * `sse-target.ts` for HTTP+SSE.
 */
import type { HeaderList } from "../../../lib/header-list.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import type { Message } from "../message/message.ts";
import type { Session } from "../session/session.ts";

/** One message on its way to a target. */
export interface TargetMessage {
  /** As the target shall read it: with its own names, URIs and ids. */
  readonly message: Message;
  /** Protocol version of the request. */
  readonly version: string;
  /** Value of Mcp-Name: the target's own name of the item; undefined when the method names none. */
  readonly name: string | undefined;
  /** Edits the headers of the HTTP request last, as guardrails ask for. */
  readonly editHeaders?: ((headers: HeaderList) => void) | undefined;
}

/** The answer of a target, or of several that were merged. */
export interface McpAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  /**
   * Set when there is exactly one message and it is known already, as with a JSON body; `messages` then yields it.
   * Clients get it as JSON, and everything else as a stream.
   */
  readonly only: Message | undefined;
  /** Messages in order of arrival. For a request the response to it is the last one. Read at most once. */
  readonly messages: AsyncIterable<Message> | Iterable<Message>;
  /** Body of an answer with an error status, to be passed on; it then has no messages. */
  readonly body: Buffer | undefined;
  /** Stops reading; also closes the request to the target. */
  cancel(): void;
}

export interface Target {
  readonly name: string;
  /** Whether a session stays on the endpoint that answered first, as with Services. */
  readonly isPinned: boolean;
  /**
   * Sends one message on behalf of a client. The session is entered first, and healed when the target has lost it.
   * Answers to notifications and responses have no messages.
   * @throws McpError when the target cannot be reached or its answer is not usable; ProxyError when the exchange ended
   */
  send(message: TargetMessage, session: Session, caller: RoutedExchange): Promise<McpAnswer>;
  /** Opens the stream of messages that the target sends on its own (GET). @throws McpError, ProxyError */
  listen(session: Session, caller: RoutedExchange): Promise<McpAnswer>;
  /** Ends the session with the target (DELETE). @throws McpError, ProxyError */
  end(session: Session, caller: RoutedExchange): Promise<void>;
}
