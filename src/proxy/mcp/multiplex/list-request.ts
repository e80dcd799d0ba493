/**
 * Answers list requests. The only target answers for itself, page by page; several are listed at once and joined, with
 * one cursor that stands for those of all of them.
 */
import { hash } from "node:crypto";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import { readString } from "../message/spans.ts";
import { setMember } from "../message/splice.ts";
import type { McpAnswer, Target } from "../targets/target.ts";
import { responseTo } from "./answers.ts";
import { invalidCursor, openCursor, sealCursor, type Cursor } from "./cursors.ts";
import { editMessage } from "./rewriting/edit-message.ts";
import { fanOut, type TargetRequest, type TargetResponse } from "./fan-out.ts";
import { findOnly } from "./rewriting/items.ts";
import { MAX_PAGES, pageRequest } from "./listed-names.ts";
import { LISTS, namesOf, readPage, type ListPage, type ListShape } from "./rewriting/list-page.ts";
import { joinPages, viewList, type Hides, type TargetPage } from "./rewriting/lists.ts";
import type { ClientRequest } from "./multiplexer.ts";
import { metaOf, sendTo, viewInterim, viewOf, type Server } from "./server.ts";
import { viewAnswer } from "./view-answer.ts";
import type { View } from "./naming/view.ts";

/** A list request on its way. */
interface Listing {
  readonly server: Server;
  readonly request: ClientRequest;
  readonly shape: ListShape;
  readonly view: View<Target>;
}

/** Digests of names that a cursor carries; a longer list is read to its end at once. */
const MAX_SEEN = 2_048;

/** @throws McpError, ProxyError */
export function listItems(server: Server, request: ClientRequest): Promise<McpAnswer> {
  const shape = LISTS.get(request.method.name);
  if (shape === undefined) throw new McpError(ERROR_CODES.methodNotFound, "Method not found");
  const listing: Listing = { server, request, shape, view: viewOf(server, request) };
  const { only } = server.naming;
  return only === undefined ? listAll(listing) : listOne(listing, only);
}

async function listOne({ server, request, shape, view }: Listing, target: Target): Promise<McpAnswer> {
  const answer = await sendTo(target, request.message, request);
  const see = (message: Message): Message => viewList(message, target, shape, view);
  return viewAnswer(answer, { server, request, view, target, viewResponse: see });
}

async function listAll(listing: Listing): Promise<McpAnswer> {
  const { server, request, view } = listing;
  const cursor = readCursor(listing);
  return fanOut(pageRequests(listing, cursor), {
    failOpen: server.failOpen,
    debug: request.exchange.debug,
    countItems: (response) => countItems(listing, response),
    down: server.down,
    send: ({ target, message }) => sendTo(target, message, request),
    view: (message, target) => viewInterim(server, message, target, { view, session: request.session }),
    merge: (results) => mergePages(listing, cursor, results),
  });
}

function countItems({ shape, view }: Listing, { target, message }: TargetResponse) {
  const names = [...namesOf(readPage(message, shape))];
  const allowed = names.filter((name) => view.allows?.(shape.kind, target.name, name) !== false);
  return { itemsBefore: names.length, itemsAfter: allowed.length };
}

/** @throws McpError when there is one that we have not made for this list */
function readCursor({ server, request }: Listing): Cursor | undefined {
  const { bytes, payload } = request.message;
  const span = payload && findOnly(bytes, payload, "cursor");
  if (span === undefined) return undefined;
  const text = readString(bytes, span);
  if (text === undefined) throw invalidCursor();
  return openCursor(server.seal, { backend: server.backend, method: request.method.name }, text);
}

/** Targets that came since the cursor was made are listed with the next list, and those that went are left out. */
function pageRequests({ server, request }: Listing, cursor: Cursor | undefined): TargetRequest[] {
  const { message } = request;
  if (cursor === undefined) return server.naming.targets.map((target) => ({ target, message }));
  return server.naming.targets.flatMap((target) => {
    const own = cursor.targets.get(target.name);
    return own === undefined ? [] : [{ target, message: withCursor(message, own) }];
  });
}

function withCursor(message: Message, cursor: string): Message {
  const { bytes, payload } = message;
  if (payload === undefined) return message;
  return editMessage(message, setMember(bytes, payload, "cursor", JSON.stringify(cursor)));
}

/** Pages of targets, and what is left of them. */
interface Pages {
  readonly results: TargetPage<Target>[];
  /** Cursors of targets that have more. */
  readonly more: Map<string, string>;
  readonly seen: ReadonlySet<number>;
}

async function mergePages(
  listing: Listing,
  cursor: Cursor | undefined,
  responses: readonly TargetResponse[],
): Promise<Message> {
  const { server, request, shape, view } = listing;
  const pages: Pages = { results: [], more: new Map(), seen: cursor?.seen ?? new Set() };
  for (const { target, message } of responses) addPage(pages, target, readPage(message, shape));
  const repeats = hasOwnNames(listing) ? await findRepeats(listing, pages) : undefined;
  if (cursor === undefined && repeats !== undefined) learnNames(listing, pages);
  const members = [`{"${shape.member}":`, joinPages(pages.results, shape, view, repeats?.hides)];
  if (pages.more.size > 0) {
    const key = { backend: server.backend, method: request.method.name };
    const next = sealCursor(server.seal, key, { targets: pages.more, seen: repeats?.seen ?? pages.seen });
    members.push(`,"nextCursor":"${next}"`);
  }
  // Items of several targets are never cached by clients: they change with any of them.
  members.push(view.isModern ? ',"resultType":"complete","ttlMs":0,"cacheScope":"private"}' : "}");
  return responseTo(request.message.id ?? "null", ...members);
}

function addPage({ results, more }: Pages, target: Target, page: ListPage): void {
  results.push({ target, page });
  if (page.nextCursor === undefined) more.delete(target.name);
  else more.set(target.name, page.nextCursor);
}

/** Whether names of the list do not tell their target, so that several targets can serve one name. */
function hasOwnNames({ shape, server }: Listing): boolean {
  return (shape.kind === "tool" || shape.kind === "prompt") && !server.naming.prefixesNames;
}

/** What is not shown because it would not tell its target, and what the next page must not repeat. */
interface Repeats {
  readonly hides: Hides;
  readonly seen: ReadonlySet<number>;
}

/** Reads the whole list where the next cursor could not carry the names of this page. */
async function findRepeats(listing: Listing, pages: Pages): Promise<Repeats> {
  let owners = countOwners(listing, pages);
  if (pages.more.size > 0 && pages.seen.size + owners.size > MAX_SEEN) {
    await readRest(listing, pages);
    owners = countOwners(listing, pages);
  }
  const seen = new Set(pages.seen);
  if (pages.more.size > 0) for (const name of owners.keys()) seen.add(digestOf(name));
  const hides = (name: string): boolean =>
    owners.get(name) === undefined || (pages.seen.size > 0 && pages.seen.has(digestOf(name)));
  return { hides, seen };
}

/** Returns the owner of each name that the caller may see; undefined for a name with several. */
function countOwners({ shape, view }: Listing, { results }: Pages): ReadonlyMap<string, Target | undefined> {
  const owners = new Map<string, Target | undefined>();
  for (const { target, page } of results)
    for (const name of namesOf(page)) {
      if (view.allows?.(shape.kind, target.name, name) === false) continue;
      owners.set(name, owners.has(name) && owners.get(name) !== target ? undefined : target);
    }
  return owners;
}

async function readRest({ server, request, shape }: Listing, pages: Pages): Promise<void> {
  const meta = metaOf(request);
  for (const target of server.naming.targets) {
    for (let page = 1; page <= MAX_PAGES; page++) {
      const cursor = pages.more.get(target.name);
      if (cursor === undefined) break;
      const message = await askResponse(target, pageRequest(request.method.name, { cursor, meta }), request);
      if (message.kind !== "result") throw new McpError(ERROR_CODES.internal, "a server did not list its items");
      addPage(pages, target, readPage(message, shape));
    }
    pages.more.delete(target.name);
  }
}

async function askResponse(target: Target, message: Message, request: ClientRequest): Promise<Message> {
  const answer = await sendTo(target, message, request);
  for await (const arrived of answer.messages) if (arrived.method === undefined) return arrived;
  throw new McpError(ERROR_CODES.internal, "a server did not list its items");
}

function learnNames({ server, request }: Listing, { results, more }: Pages): void {
  const names = new Map<Target, Set<string>>();
  for (const { target, page } of results) {
    const own = names.get(target) ?? new Set();
    names.set(target, own);
    for (const name of namesOf(page)) own.add(name);
  }
  for (const [target, own] of names)
    if (!more.has(target.name)) server.names.learn(request.session, request.method.name, target, own);
}

function digestOf(name: string): number {
  return hash("sha256", name, "buffer").readUInt32LE(0);
}
