/**
 * What guardrails do with one request of a client. The multiplexer calls it where the names of an item are those of its
 * target, and for requests to several targets once. `guardrails.ts` implements it.
 */
import type { HeaderList } from "../../../lib/header-list.ts";
import type { Item } from "../item-scope.ts";
import type { Message } from "../message/message.ts";

/** Where a request goes. */
export interface GuardedTargets {
  /** Names of the targets. */
  readonly targets: readonly string[];
  /** The item of a call; undefined for requests to all targets, whose params are not shown. */
  readonly item: Item | undefined;
}

export interface GuardedRequest {
  /**
   * Checks a request before it is authorized and sent.
   * @returns the request to send in its place
   * @throws McpError when a service rejects it, or fails where that rejects it
   */
  checkRequest(message: Message, about: GuardedTargets): Promise<Message>;
  /** Checks a result before the client gets it. @returns the response to send in its place, an error included */
  checkResult(message: Message, about: GuardedTargets): Promise<Message>;
  /** Edits the headers of an HTTP request to a target, as services asked for. */
  editHeaders(headers: HeaderList): void;
}
