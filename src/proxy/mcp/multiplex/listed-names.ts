/**
 * The names that targets list, read to the end and kept for a session while this thread knows it. They tell which target
 * owns a name in prefix mode `Never`, and whether a target refused a name because it does not exist.
 */
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import { nextOwnId } from "../message/own-id.ts";
import type { Session } from "../session/session.ts";
import type { Target } from "../targets/target.ts";
import { LISTS, namesOf, readPage } from "./rewriting/list-page.ts";

/** Pages of one list that are read; names beyond them are not known. */
export const MAX_PAGES = 64;
/** Names of one list that are kept. */
const MAX_NAMES = 20_000;
/** Lists may change unseen: the stream that announces it can be on another thread, or not open. */
const MAX_AGE_MS = 30_000;
/** Names that clients make up must not cost a list each. */
const MIN_AGE_MS = 1_000;

/** Asks a target for one page of a list. @throws McpError when it fails, unless targets that fail are left out */
type AskPage = (target: Target, message: Message) => Promise<Message | undefined>;

/** What a list is asked for with. */
export interface NameQuery {
  readonly session: Session;
  /** Method of the list. */
  readonly method: string;
  /** JSON text of `_meta`, which every request of 2026-07-28 has. */
  readonly meta: string | undefined;
  readonly ask: AskPage;
}

interface KnownNames {
  readonly names: Promise<ReadonlySet<string>>;
  readonly readAtMs: number;
}

export class ListedNames {
  /** By session, then by method and target. Sessions go with their last request, and their names with them. */
  readonly #sessions = new WeakMap<Session, Map<string, KnownNames>>();

  /** Whether a target lists the name. One that is not known may be new, and is looked for again. */
  async has(target: Target, name: string, query: NameQuery): Promise<boolean> {
    const known = this.#sessions.get(query.session)?.get(keyOf(query.method, target));
    const ageMs = known === undefined ? Infinity : performance.now() - known.readAtMs;
    if (known !== undefined && ageMs < MAX_AGE_MS) {
      const isListed = (await known.names).has(name);
      if (isListed || ageMs < MIN_AGE_MS) return isListed;
    }
    return (await this.#read(target, query)).has(name);
  }

  /** Keeps the names of a list that a client has asked for, when it was a whole one. */
  learn(session: Session, method: string, target: Target, names: ReadonlySet<string>): void {
    if (names.size <= MAX_NAMES) this.#keep(session, keyOf(method, target), Promise.resolve(names));
  }

  /** Forgets what a target lists: it said that this has changed. */
  forget(session: Session, target: Target): void {
    for (const method of LISTS.keys()) this.#sessions.get(session)?.delete(keyOf(method, target));
  }

  async #read(target: Target, query: NameQuery): Promise<ReadonlySet<string>> {
    const key = keyOf(query.method, target);
    const names = readNames(target, query);
    this.#keep(query.session, key, names);
    try {
      return await names;
    } catch (error) {
      this.#sessions.get(query.session)?.delete(key);
      throw error;
    }
  }

  #keep(session: Session, key: string, names: KnownNames["names"]): void {
    const known = this.#sessions.get(session) ?? new Map<string, KnownNames>();
    this.#sessions.set(session, known.set(key, { names, readAtMs: performance.now() }));
  }
}

function keyOf(method: string, { name }: Target): string {
  return `${method} ${name}`;
}

async function readNames(target: Target, { method, meta, ask }: NameQuery): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  const shape = LISTS.get(method);
  if (shape === undefined) return names;
  let cursor: string | undefined;
  for (let page = 1; page <= MAX_PAGES; page++) {
    const message = await ask(target, pageRequest(method, { cursor, meta }));
    if (message?.kind !== "result") break;
    const listed = readPage(message, shape);
    for (const name of namesOf(listed)) if (names.size < MAX_NAMES) names.add(name);
    cursor = listed.nextCursor;
    if (cursor === undefined) break;
  }
  return names;
}

interface Page {
  readonly cursor: string | undefined;
  readonly meta: string | undefined;
}

/** Makes a request of our own for a page of a list. */
export function pageRequest(method: string, { cursor, meta }: Page): Message {
  const members: string[] = [];
  if (cursor !== undefined) members.push(`"cursor":${JSON.stringify(cursor)}`);
  if (meta !== undefined) members.push(`"_meta":${meta}`);
  const text = `{"jsonrpc":"2.0","id":${nextOwnId("resolve")},"method":"${method}","params":{${members.join(",")}}}`;
  const message = readMessage(Buffer.from(text));
  if ("kind" in message) return message;
  throw new McpError(ERROR_CODES.internal, "internal error", { status: 500, detail: message.reason });
}
