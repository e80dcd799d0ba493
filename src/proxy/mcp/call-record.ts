/**
 * Records one message of a client for logs, metrics and spans. The client side begins it, the target that is called adds
 * itself, and the answer its error.
 */
import { hash } from "node:crypto";
import { Attributes, readers } from "../exchange/attributes.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";
import type { McpCallInfo } from "../exchange/mcp-call-info.ts";
import type { CallLifetime } from "./call-lifetime.ts";
import type { McpError } from "./mcp-error.ts";
import type { Message } from "./message/message.ts";
import { findMember, textOf } from "./message/spans.ts";
import { CLIENT_NOTIFICATIONS, findMethod, type ItemKind, type Method } from "./methods.ts";

/** Names in the field `mcp.resource.type`. */
const TYPES: Readonly<Record<ItemKind, string>> = {
  tool: "tool",
  prompt: "prompt",
  resource: "resource",
  template: "templates",
  task: "task",
};

const DIGEST_DIGITS = 16;

class CallRecord implements McpCallInfo {
  readonly method: string;
  error: McpCallInfo["error"] = undefined;
  /** Set when the calls of the message do not end with the client; they end with the exchange otherwise. */
  lifetime: CallLifetime | undefined;
  readonly #message: Message;
  readonly #sessionId: string | undefined;
  readonly #row: Method | undefined;
  #item: McpCallInfo["item"] = undefined;

  constructor(message: Message, sessionId: string | undefined) {
    const { method = "" } = message;
    this.#message = message;
    this.#row = findMethod(method);
    // Clients may invent methods, and their names would fill logs and metrics.
    this.method = this.#row !== undefined || CLIENT_NOTIFICATIONS.has(method) ? method : "unknown";
    this.#sessionId = sessionId;
  }

  get session(): string | undefined {
    return this.#sessionId === undefined ? undefined : hash("sha256", this.#sessionId).slice(0, DIGEST_DIGITS);
  }

  get itemType(): string | undefined {
    return this.#row?.item === undefined ? undefined : TYPES[this.#row.item];
  }

  get item(): McpCallInfo["item"] {
    return this.#item;
  }

  get root(): unknown {
    return new Attributes(READERS, this);
  }

  /** @param name the target's own name of the item */
  called(target: string, name: string | undefined): void {
    if (this.#row?.route === "owner") this.#item = { target, name };
  }

  /** Notes the error of a response. */
  answered({ kind, bytes, payload }: Message): void {
    if (kind !== "error" || payload === undefined) return;
    const code = findMember(bytes, payload, "code");
    this.error = { code: code === undefined ? 0 : Number(textOf(bytes, code)), text: undefined };
  }

  failed({ rpcCode, message }: McpError): void {
    this.error = { code: rpcCode, text: message };
  }

  /** Parses the arguments of a tool when an expression asks for them. */
  get arguments(): unknown {
    const { bytes, payload } = this.#message;
    const found = payload === undefined ? undefined : findMember(bytes, payload, "arguments");
    return found === undefined ? undefined : JSON.parse(textOf(bytes, found));
  }
}

const READERS = readers<CallRecord>({
  methodName: ({ method }) => method,
  sessionId: ({ session }) => session,
  tool: (call) => itemOf(call, "tool", { arguments: call.itemType === "tool" ? call.arguments : undefined }),
  prompt: (call) => itemOf(call, "prompt"),
  resource: (call) => itemOf(call, "resource"),
  task: (call) => itemOf(call, "task"),
});

function itemOf({ itemType, item }: CallRecord, type: string, more: object = {}): unknown {
  if (itemType !== type || item?.name === undefined) return undefined;
  return { target: item.target, name: item.name, ...more };
}

/** Begins the record of a message, whose variables expressions for logs may read. */
export function recordCall(exchange: RoutedExchange, message: Message, sessionId: string | undefined): void {
  const call = new CallRecord(message, sessionId);
  exchange.mcpCall = call;
  exchange.setRoot("mcp", call.root);
}

/** Returns the record of the message that an exchange carries. */
export function callOf({ mcpCall }: Pick<RoutedExchange, "mcpCall">): CallRecord | undefined {
  return mcpCall instanceof CallRecord ? mcpCall : undefined;
}
