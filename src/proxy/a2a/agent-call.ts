/**
 * What reports say about one call of an agent. The handler creates it with the call and hands it the reply, whose body it
 * reads in passing; an answer in one piece is parsed only when a report asks for it.
 */
import { isUtf8 } from "node:buffer";
import type { HeaderList } from "../../lib/header-list.ts";
import type { Reply } from "../exchange/exchange.ts";
import type { AgentCallInfo, AgentResult } from "../exchange/agent-call-info.ts";
import { WatchedBody } from "../exchange/watched-body.ts";
import { NOT_JSON, skipSpace, skipValue } from "../mcp/message/scan.ts";
import { isJsonType } from "./card-reply.ts";
import { ReadEvents } from "./read-events.ts";
import { NO_RESULT, readResult } from "./result.ts";

/** How a call is written: `path` is HTTP+JSON. */
type Binding = "json-rpc" | "path" | "grpc";

const MAX_VERSION = 64;

export class AgentCall implements AgentCallInfo {
  readonly method: string;
  readonly version: string | undefined;
  readonly binding: Binding;
  #status = 0;
  #body: WatchedBody | Buffer | undefined;
  #result: AgentResult = NO_RESULT;

  constructor(method: string, binding: Binding, requestHeaders: HeaderList) {
    this.method = method;
    this.binding = binding;
    this.version = requestHeaders.get("a2a-version")?.slice(0, MAX_VERSION);
  }

  /** Reads the reply while it is forwarded. It must not have been sent yet. */
  watch(reply: Reply, limitBytes: number): void {
    const { body, headers, status } = reply;
    this.#status = status;
    if (body === null || headers.has("content-encoding")) return;
    if (isJsonType(headers)) {
      this.#body = Buffer.isBuffer(body) ? body : new WatchedBody(body, () => limitBytes);
      reply.body = this.#body;
    } else if (!Buffer.isBuffer(body) && isEventStream(headers))
      reply.body = new ReadEvents(body, (bytes) => this.#readEvent(bytes));
  }

  get result(): AgentResult {
    const bytes = this.#body instanceof WatchedBody ? this.#body.body : this.#body;
    this.#body = undefined;
    if (bytes !== undefined && bytes !== null) this.#readEvent(bytes);
    return this.#result;
  }

  /** Adds what one answer says: the last state wins, and an error stays. */
  #readEvent(bytes: Buffer): void {
    const start = skipSpace(bytes, 0);
    const end = skipValue(bytes, start);
    if (end <= NOT_JSON || !isUtf8(bytes)) return;
    const read = readResult(bytes, { start, end }, this.binding === "json-rpc" ? undefined : this.#status);
    const before = this.#result;
    this.#result = {
      outcome: before.outcome === "error" ? "error" : read.outcome,
      errorCode: read.errorCode ?? before.errorCode,
      kind: read.kind ?? before.kind,
      state: read.state ?? before.state,
      contextId: read.contextId ?? before.contextId,
    };
  }
}

function isEventStream(headers: HeaderList): boolean {
  const type = headers.get("content-type") ?? "";
  return type.split(";", 1)[0]?.trim().toLowerCase() === "text/event-stream";
}
