/**
 * The headers of a request to an MCP target: those of the client, without what belongs to its own connection, body and
 * session, and with what the protocol asks for.
 */
import { HeaderList } from "../../../lib/header-list.ts";
import { appendPass } from "../../exchange/cdn-loop.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { isModern } from "../versions.ts";
import { encodeHeaderValue } from "../message/header-value.ts";

/** The client's fields that never reach a target, besides those of one connection (RFC 9110 §7.6.1). */
const DROPPED: ReadonlySet<string> = new Set(
  (
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade " +
    "host expect cdn-loop accept accept-encoding content-type content-length content-encoding content-md5 " +
    "content-digest repr-digest digest last-event-id mcp-session-id mcp-protocol-version mcp-method mcp-name"
  ).split(" "),
);

/** What the protocol wants to know of a request besides its body. */
export interface RoutingHeaders {
  readonly accept: string;
  readonly hasBody: boolean;
  /** undefined for `initialize`, which negotiates it. */
  readonly version: string | undefined;
  readonly sessionId: string | undefined;
  readonly method: string | undefined;
  readonly name: string | undefined;
  readonly lastEventId: string | undefined;
}

/** For a request that only asks for a stream. */
export const NO_ROUTING: RoutingHeaders = {
  accept: "text/event-stream",
  hasBody: false,
  version: undefined,
  sessionId: undefined,
  method: undefined,
  name: undefined,
  lastEventId: undefined,
};

/**
 * Longest name in a header that a server may do without. Servers limit the head of a request to a few kilobytes, and a
 * URI can be longer than that.
 */
const MAX_NAME = 2_048;

/** Calls of session-less versions carry headers about arguments, which session-era servers do not know. */
export function headersOfCall(caller: RoutedExchange, authority: string, routing: RoutingHeaders): HeaderList {
  const { raw } = caller.requestHeaders;
  const out = ["host", caller.hostChoice === "keep" ? caller.host : authority];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    if (!DROPPED.has(name) && !DROPPED.has(name.toLowerCase())) out.push(name, raw[at + 1] as string);
  }
  out.push("accept", routing.accept);
  if (routing.hasBody) out.push("content-type", "application/json");
  // Answers are read, so an encoded one would only have to be decoded.
  out.push("accept-encoding", "identity");
  if (routing.version !== undefined) out.push("mcp-protocol-version", routing.version);
  if (routing.sessionId !== undefined) out.push("mcp-session-id", routing.sessionId);
  if (routing.method !== undefined) out.push("mcp-method", encodeHeaderValue(routing.method));
  const name = routing.name === undefined ? undefined : encodeHeaderValue(routing.name);
  if (name !== undefined && (name.length <= MAX_NAME || isModern(routing.version ?? ""))) out.push("mcp-name", name);
  if (routing.lastEventId !== undefined) out.push("last-event-id", routing.lastEventId);
  out.push("cdn-loop", appendPass(caller.cdnLoop));
  return new HeaderList(out);
}
