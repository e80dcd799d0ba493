/**
 * Maps URLs in agent cards to the gateway, so that a client that reads a card keeps coming through the gateway. A card
 * names URLs as the agent knows itself; a client needs the ones that its route leads to:
 *
 *     route /team, rewritten to /     client   https://api.example.com/team/.well-known/agent-card.json
 *                                     agent    http://10.0.0.8:9000/.well-known/agent-card.json
 *     the card lists                           http://10.0.0.8:9000/rpc?v=2
 *     the client gets                          https://api.example.com/team/rpc?v=2
 */
import { pathOf } from "../../lib/network/request-target.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";

export interface CardAddress {
  /** Scheme and authority that the client used. */
  readonly origin: string;
  /** Path of the agent for clients, without a slash at its end. */
  readonly outside: string;
  /** Path of the same place at the agent. */
  readonly inside: string;
  /** Prefix that the route matched and the one that it put in its place; undefined when it put none. */
  readonly prefix: { readonly matched: string; readonly replacement: string } | undefined;
  /** Path of the card at the agent, for URLs that are relative to it. */
  readonly cardPath: string;
}

type AddressedExchange = Pick<
  RoutedExchange,
  | "originalTarget"
  | "originalHost"
  | "originalScheme"
  | "target"
  | "requestHeaders"
  | "matchedPrefix"
  | "replacementPrefix"
>;

/**
 * Returns the address of a card that a client asked for by a path of its own.
 * @param suffix of that path, below which the agent is
 * @param agentSuffix the same of the path at the agent
 */
export function addressOfCard(exchange: AddressedExchange, suffix: string, agentSuffix: string = suffix): CardAddress {
  const outside = pathOf(exchange.originalTarget);
  const inside = pathOf(exchange.target);
  return {
    ...commonAddress(exchange),
    outside: withoutEnd(outside, suffix),
    inside: withoutEnd(inside, agentSuffix),
  };
}

/**
 * Returns the address of a card that is the result of a call. The call came by an interface that the card itself lists,
 * so the agent is where the path of that interface begins.
 * @param interfacePaths paths of the interfaces in the card, as the agent knows them
 */
export function addressOfCall(
  exchange: AddressedExchange,
  suffix: string,
  interfacePaths: readonly string[],
): CardAddress {
  const outside = withoutEnd(pathOf(exchange.originalTarget), suffix);
  const inside = withoutEnd(pathOf(exchange.target), suffix);
  const [called] = interfacePaths
    .map((path) => path.replace(/\/+$/, ""))
    .filter((path) => outside.endsWith(path) && inside.endsWith(path))
    .sort((a, b) => b.length - a.length);
  const shared = called ?? sharedEnd(outside, inside);
  return { ...commonAddress(exchange), outside: withoutEnd(outside, shared), inside: withoutEnd(inside, shared) };
}

/** Returns the segments that two paths end with. */
function sharedEnd(one: string, other: string): string {
  const segments = one.split("/");
  const others = other.split("/");
  let count = 0;
  while (count < segments.length - 1 && count < others.length - 1 && segments.at(-1 - count) === others.at(-1 - count))
    count++;
  return segments
    .slice(segments.length - count)
    .map((segment) => `/${segment}`)
    .join("");
}

function commonAddress(exchange: AddressedExchange): Pick<CardAddress, "origin" | "prefix" | "cardPath"> {
  const { matchedPrefix: matched, replacementPrefix: replacement } = exchange;
  return {
    origin: `${schemeOf(exchange)}://${exchange.originalHost}`,
    prefix:
      matched === undefined || replacement === undefined
        ? undefined
        : { matched, replacement: withoutSlashes(replacement) },
    cardPath: pathOf(exchange.target),
  };
}

/** The listener has written x-forwarded-proto itself, unless it trusts the peer that sent it. */
function schemeOf({ requestHeaders, originalScheme }: AddressedExchange): string {
  const forwarded = (requestHeaders.get("x-forwarded-proto") ?? "").split(",", 1)[0]?.trim().toLowerCase();
  return forwarded === "http" || forwarded === "https" ? forwarded : originalScheme;
}

function withoutEnd(path: string, end: string): string {
  return withoutSlashes(end !== "" && path.endsWith(end) ? path.slice(0, -end.length) : path);
}

function withoutSlashes(path: string): string {
  return path.replace(/\/+$/, "");
}

/** A URL of HTTP in a card. */
export interface InterfaceUrl {
  /** Path as the agent knows it; empty for a URL that names a host only. */
  readonly path: string;
  /** Query with its question mark. */
  readonly query: string;
}

/** Host and port without a scheme, as gRPC clients take them. */
const BARE_AUTHORITY = /^[^/?#\s]+:\d{1,5}$/;
const NAMES_HOST_ONLY = /^[a-z]+:[/\\]{2}[^/\\?#]+(?:[?#]|$)/i;

/**
 * Reads a URL in the way in which clients do (WHATWG URL), so that no spelling of an address gets past the gateway.
 * @param text in a card
 * @returns undefined for what is not a URL of HTTP
 */
export function readInterfaceUrl(text: string, cardPath: string): InterfaceUrl | undefined {
  const trimmed = text.trim();
  if (trimmed === "" || BARE_AUTHORITY.test(trimmed)) return undefined;
  const base = `http://agent${cardPath}`;
  if (!URL.canParse(trimmed, base)) return undefined;
  const url = new URL(trimmed, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  return { path: NAMES_HOST_ONLY.test(trimmed) ? "" : url.pathname.replace(/^\/+/, "/"), query: url.search };
}

/** Returns the URL by which clients reach an interface. */
export function printInterfaceUrl({ path, query }: InterfaceUrl, address: CardAddress): string {
  return `${address.origin}${mapPath(path, address)}${query}`;
}

function mapPath(path: string, { outside, inside, prefix }: CardAddress): string {
  const replaced = prefix === undefined ? undefined : restBelow(path, prefix.replacement);
  if (prefix !== undefined && replaced !== undefined) return prefix.matched + replaced;
  return outside + (restBelow(path, inside) ?? path);
}

/**
 * Returns what a path has below another one. It compares whole segments, `/agent` is above `/agent/x` and not above
 * `/agents`, however they are percent-encoded.
 */
function restBelow(path: string, base: string): string | undefined {
  if (path === base || path.startsWith(`${base}/`)) return path.slice(base.length);
  const above = base.split("/");
  const segments = path.split("/");
  if (segments.length < above.length) return undefined;
  const isBelow = above.every((segment, at) => decodeSegment(segment) === decodeSegment(segments[at] ?? ""));
  return isBelow
    ? segments
        .slice(above.length)
        .map((segment) => `/${segment}`)
        .join("")
    : undefined;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // Broken percent-encoding equals only itself.
    return segment;
  }
}
