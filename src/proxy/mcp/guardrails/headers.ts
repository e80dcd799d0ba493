/** Headers between guardrails and requests: those of a client that a service is shown, and those that it changes. */
import { create } from "@bufbuild/protobuf";
import {
  HeaderSchema,
  type Header,
  type HeaderMutation,
} from "../../../../generated/proto/gwproxy/dev/ext_mcp/ext_mcp_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";

export interface HeaderChoice {
  /** In lower case; empty for all. */
  readonly allowed: ReadonlySet<string>;
  /** Wins over `allowed`. */
  readonly disallowed: ReadonlySet<string>;
}

/** Lists the headers of the client's request that a service is sent, pseudo-headers of HTTP/2 (RFC 9113 §8.3) included. */
export function listHeaders(exchange: RoutedExchange, { allowed, disallowed }: HeaderChoice): Header[] {
  const { method, originalScheme, host, target, requestHeaders } = exchange;
  const all = [
    ":method",
    method,
    ":scheme",
    originalScheme,
    ":authority",
    host,
    ":path",
    target,
    ...requestHeaders.raw,
  ];
  const shown: Header[] = [];
  for (let at = 0; at < all.length; at += 2) {
    const key = (all[at] as string).toLowerCase();
    if (disallowed.has(key) || (allowed.size > 0 && !allowed.has(key))) continue;
    // Header lists hold one character per byte.
    shown.push(create(HeaderSchema, { key, value: Buffer.from(all[at + 1] as string, "latin1") }));
  }
  return shown;
}

const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
/** Visible characters, space, tab and bytes above ASCII (RFC 9110 §5.5). */
// oxlint-disable-next-line no-control-regex -- the tab is the one control character that is allowed
const VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;

/** Fields that frame the request, or by which target and session are known: a service must not change these. */
const FIXED: ReadonlySet<string> = new Set(
  (
    "host connection keep-alive proxy-connection te trailer transfer-encoding upgrade expect content-length content-type " +
    "content-encoding accept accept-encoding cdn-loop mcp-session-id mcp-protocol-version mcp-method mcp-name last-event-id"
  ).split(" "),
);

/** Applies what a service asked for; names and values that no field can have are skipped. */
export function applyMutation(headers: HeaderList, { set, remove }: HeaderMutation): void {
  const values = new Map<string, string[]>();
  for (const { key, value } of set) {
    const name = key.toLowerCase();
    const text = Buffer.from(value).toString("latin1").trim();
    if (!isChangeable(name) || !VALUE.test(text)) continue;
    values.set(name, [...(values.get(name) ?? []), text]);
  }
  for (const [name, list] of values) {
    headers.remove(name);
    for (const value of list) headers.add(name, value);
  }
  for (const key of remove) {
    const name = key.toLowerCase();
    if (isChangeable(name)) headers.remove(name);
  }
}

function isChangeable(name: string): boolean {
  return NAME.test(name) && !FIXED.has(name);
}
