/**
 * Replaces the card in the reply of an agent by one that points at the gateway: decodes the body, edits its JSON, and
 * drops the fields that describe the former body. `handler.ts` uses it for cards and for calls whose result is a card.
 */
import { isUtf8 } from "node:buffer";
import type { HeaderList } from "../../lib/header-list.ts";
import { holdStart } from "../exchange/buffering.ts";
import { collect } from "../exchange/collect.ts";
import { codingOf, forgetBody, unpack } from "../exchange/content-coding.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Reply, RoutedExchange } from "../exchange/exchange.ts";
import { NOT_JSON, skipSpace, skipValue } from "../mcp/message/scan.ts";
import { eachElement, findMember, wholeOf, type Span } from "../mcp/message/spans.ts";
import { splice, type Edit } from "../mcp/message/splice.ts";
import { addressOfCall, addressOfCard, printInterfaceUrl, readInterfaceUrl, type CardAddress } from "./card-address.ts";
import { editCard, findCard, looksLikeCard } from "./card.ts";

/** Returns the edits of a body. @throws ProxyError a2a_card_invalid */
type EditBody = (bytes: Buffer, whole: Span) => Edit[];

const CONDITIONS = [
  "if-match",
  "if-none-match",
  "if-modified-since",
  "if-unmodified-since",
  "if-range",
  "range",
] as const;

/**
 * Removes conditions and ranges from a request for a card: the validators and positions that they name belong to the
 * text of the agent, which the client has never seen.
 */
export function dropConditions(headers: HeaderList): void {
  for (const name of CONDITIONS) headers.remove(name);
}

/**
 * Rewrites a body that is a card; a redirect is pointed at the gateway.
 * @param suffix what the path of the client has after that of the agent
 * @param agentSuffix the same of the path at the agent
 */
export function rewriteCard(
  reply: Reply,
  exchange: RoutedExchange,
  suffix: string,
  agentSuffix: string,
): Promise<Reply> {
  const address = addressOfCard(exchange, suffix, agentSuffix);
  if (isRedirect(reply)) return Promise.resolve(mapLocation(reply, address));
  return rewriteBody(reply, exchange, (bytes, whole) =>
    editCard(bytes, findCard(bytes, whole, address.cardPath), address),
  );
}

/** Rewrites a body that is the result of a call in the HTTP+JSON binding. @param suffix path of the operation */
export function rewritePathResult(reply: Reply, exchange: RoutedExchange, suffix: string): Promise<Reply> {
  if (isRedirect(reply)) return Promise.resolve(mapLocation(reply, addressOfCall(exchange, suffix, [])));
  return rewriteBody(reply, exchange, (bytes, whole) => editResult(bytes, whole, exchange, suffix));
}

/** Rewrites the `result` of a call in the JSON-RPC binding; an error passes. */
export function rewriteResult(reply: Reply, exchange: RoutedExchange): Promise<Reply> {
  if (isRedirect(reply)) return Promise.resolve(mapLocation(reply, addressOfCall(exchange, "", [])));
  return rewriteBody(reply, exchange, (bytes, whole) => {
    const result = findMember(bytes, whole, "result");
    return result === undefined ? [] : editResult(bytes, result, exchange, "");
  });
}

/**
 * Rewrites what may be a card in the answer of a call whose method could not be read. An answer that is longer than the
 * limit, or is not JSON, passes as it is.
 */
export async function rewritePossibleCards(reply: Reply, exchange: RoutedExchange): Promise<Reply> {
  const { body } = reply;
  if (!isJsonType(reply.headers) || body === null || !isSuccess(reply)) return reply;
  if (!Buffer.isBuffer(body)) {
    const held = await holdStart(body, exchange.responseLimitBytes);
    reply.body = held.body;
    if (!held.complete) return reply;
  }
  return rewriteBody(reply, exchange, (bytes, whole) => {
    const answers = bytes[whole.start] === OPEN_BRACKET ? [...eachElement(bytes, whole)] : [whole];
    return answers.flatMap((answer) => {
      const result = findMember(bytes, answer, "result");
      return result !== undefined && looksLikeCard(bytes, result) ? editResult(bytes, result, exchange, "") : [];
    });
  });
}

const EMPTY = Buffer.alloc(0);
const OPEN_BRACKET = 0x5b;
const JSON_TYPE = /^application\/(?:json|[^\s;]+\+json)\s*(?:;|$)/i;

/** Tests for `application/json` and types that end in `+json`, such as `application/a2a+json` of 1.0. */
export function isJsonType(headers: HeaderList): boolean {
  return JSON_TYPE.test(headers.get("content-type")?.trim() ?? "");
}

function isSuccess({ status }: Reply): boolean {
  return status >= 200 && status < 300;
}

function isRedirect({ status, headers }: Reply): boolean {
  return status >= 300 && status < 400 && headers.has("location");
}

/** A client that follows a redirect must not read the card of the agent past the gateway, with the URLs of the agent. */
function mapLocation(reply: Reply, address: CardAddress): Reply {
  const { headers } = reply;
  const url = readInterfaceUrl(headers.get("location") ?? "", address.cardPath);
  if (url !== undefined) headers.set("location", printInterfaceUrl(url, address));
  return reply;
}

function editResult(bytes: Buffer, result: Span, exchange: RoutedExchange, suffix: string): Edit[] {
  const { cardPath } = addressOfCard(exchange, suffix);
  const card = findCard(bytes, result, cardPath);
  const paths = card.urls.map(({ url }) => url.path);
  return editCard(bytes, card, addressOfCall(exchange, suffix, paths));
}

/** @throws ProxyError a2a_card_invalid */
async function rewriteBody(
  reply: Reply,
  { method, responseLimitBytes }: RoutedExchange,
  edit: EditBody,
): Promise<Reply> {
  if (!isSuccess(reply)) return reply;
  const { headers } = reply;
  if (method === "HEAD") {
    forgetBody(headers);
    return reply;
  }
  const received = await readWhole(reply.body, responseLimitBytes);
  const bytes = await decode(received, headers, responseLimitBytes);
  if (!isJson(bytes)) throw unusable("not JSON");
  const edits = edit(bytes, wholeOf(bytes));
  // A card that needs no change is forwarded as it came, with its signatures and its content coding.
  if (edits.length === 0) return { ...reply, body: received };
  forgetBody(headers);
  return { ...reply, body: splice(bytes, edits) };
}

async function readWhole(body: Reply["body"], limitBytes: number): Promise<Buffer> {
  const whole = body === null || Buffer.isBuffer(body) ? (body ?? EMPTY) : await collect(body, limitBytes);
  if (whole === undefined || whole.length > limitBytes) throw unusable("too large");
  return whole;
}

async function decode(bytes: Buffer, headers: HeaderList, limitBytes: number): Promise<Buffer> {
  const coding = codingOf(headers.getAll("content-encoding").join(","));
  if (coding === null) return bytes;
  if (coding === undefined) throw unusable("unknown content coding");
  const decoded = await unpack(bytes, coding, limitBytes).catch((cause: unknown) => {
    throw unusable("broken content coding", cause);
  });
  if (decoded === undefined) throw unusable("too large when it is decoded");
  return decoded;
}

function isJson(bytes: Buffer): boolean {
  if (!isUtf8(bytes)) return false;
  const end = skipValue(bytes, skipSpace(bytes, 0));
  return end > NOT_JSON && skipSpace(bytes, end) === bytes.length;
}

function unusable(detail: string, cause?: unknown): ProxyError {
  return new ProxyError("a2a_card_invalid", { detail, cause });
}
