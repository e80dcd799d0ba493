/**
 * Points the URLs of an agent card at the gateway, in cards of A2A 1.0, 0.3 and before. It edits the JSON text in place:
 * what it does not know of a card stays byte for byte. `card-reply.ts` calls it for cards and for results of calls.
 */
import { ProxyError } from "../exchange/errors.ts";
import { eachElement, eachMember, isNamed, readString, type Member, type Span } from "../mcp/message/spans.ts";
import { removeMembers, type Edit } from "../mcp/message/splice.ts";
import { printInterfaceUrl, readInterfaceUrl, type CardAddress, type InterfaceUrl } from "./card-address.ts";

/** One URL of an interface of the agent: its place in the text, and what it says. */
interface FoundUrl {
  readonly span: Span;
  readonly url: InterfaceUrl;
}

/** The interfaces of one card. */
export interface FoundCard {
  readonly span: Span;
  readonly urls: readonly FoundUrl[];
}

// Readers of 1.0 cards accept both spellings of a name (ProtoJSON).
const LISTS = ["supportedInterfaces", "supported_interfaces", "additionalInterfaces", "additional_interfaces"];
const BINDINGS = ["protocolBinding", "protocol_binding", "transport"];
const PREFERRED = ["preferredTransport", "preferred_transport"];
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/**
 * Finds the URLs of a card.
 * @param cardPath path of the card at the agent, for relative URLs
 * @throws ProxyError a2a_card_invalid for a value that is no card
 */
export function findCard(bytes: Buffer, span: Span, cardPath: string): FoundCard {
  if (bytes[span.start] !== OPEN_BRACE) throw invalid("not a JSON object");
  const urls: FoundUrl[] = [];
  let isCard = false;
  for (const member of eachMember(bytes, span)) {
    if (isNamed(bytes, member, "url")) isCard = readString(bytes, member.value) !== undefined || isCard;
    if (!LISTS.some((name) => isNamed(bytes, member, name))) continue;
    if (bytes[member.value.start] !== OPEN_BRACKET) throw invalid("its interfaces are not a list");
    isCard = true;
    for (const element of eachElement(bytes, member.value))
      urls.push(...findUrls(bytes, element, { bindings: BINDINGS, cardPath }));
  }
  if (!isCard) throw invalid("neither url nor supportedInterfaces");
  urls.push(...findUrls(bytes, span, { bindings: PREFERRED, cardPath }));
  return { span, urls };
}

/** Decides whether the value of an answer whose request could not be read is a card. */
export function looksLikeCard(bytes: Buffer, span: Span): boolean {
  const names = ["name", "skills", "url", ...LISTS];
  const found = new Set<string>();
  for (const member of eachMember(bytes, span))
    for (const name of names) if (isNamed(bytes, member, name)) found.add(name);
  return LISTS.some((name) => found.has(name)) || (found.has("url") && found.has("skills"));
}

/** Finds the URLs of one interface; those of gRPC are served by a route of their own. */
function findUrls(
  bytes: Buffer,
  object: Span,
  { bindings, cardPath }: { readonly bindings: readonly string[]; readonly cardPath: string },
): FoundUrl[] {
  const members = [...eachMember(bytes, object)];
  const named = members.filter((member) => bindings.some((name) => isNamed(bytes, member, name)));
  const isGrpc = (member: Member): boolean => readString(bytes, member.value)?.toUpperCase() === "GRPC";
  // Of several bindings some clients take the first and others the last.
  if (named.length > 0 && named.every(isGrpc)) return [];
  return members.flatMap((member) => {
    const text = isNamed(bytes, member, "url") ? readString(bytes, member.value) : undefined;
    const url = text === undefined ? undefined : readInterfaceUrl(text, cardPath);
    return url === undefined ? [] : [{ span: member.value, url }];
  });
}

/**
 * Returns the edits that point a card at the gateway; none when it points there already. A change makes the signatures
 * of the card invalid, so they are removed with it (A2A 1.0 §8.4).
 */
export function editCard(bytes: Buffer, { span, urls }: FoundCard, address: CardAddress): Edit[] {
  const edits = urls.flatMap(({ span: place, url }) => {
    const text = JSON.stringify(printInterfaceUrl(url, address));
    return bytes.toString("utf8", place.start, place.end) === text ? [] : [{ ...place, text }];
  });
  if (edits.length === 0) return [];
  return [...edits, ...removeMembers(bytes, span, "signatures")].sort((a, b) => a.start - b.start);
}

function invalid(detail: string): ProxyError {
  return new ProxyError("a2a_card_invalid", { detail });
}
