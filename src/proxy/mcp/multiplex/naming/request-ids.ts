/**
 * Ids and progress tokens of requests that targets send to the client. Each target numbers its requests by itself, so
 * clients see `gw_<target>_n_<number>` or `gw_<target>_s_<string>`: the answer can then be given to its target by any
 * replica, without a table. All values here are JSON texts, as they stand in messages, so that long integers survive.
 */
const PREFIX = "gw_";
const INTEGER = /^-?(?:0|[1-9]\d*)$/;
const ROUTED = /^gw_([^_]+)_([ns])_(.*)$/s;

/** The JSON text of an id of a target, and the name of that target. */
export interface OwnedId {
  readonly target: string;
  readonly id: string;
}

/** Returns the JSON text of the id that the client sees. @param id JSON text of a string or an integer */
export function printRoutedId(target: string, id: string): string {
  // The text of a string keeps its escapes: it stays inside of quotes.
  return id.startsWith('"') ? `"${PREFIX}${target}_s_${id.slice(1)}` : `"${PREFIX}${target}_n_${id}"`;
}

/** Reads the JSON text of an id that a client answers with. @returns undefined when it was not made here */
export function parseRoutedId(seen: string): OwnedId | undefined {
  if (!seen.startsWith('"')) return undefined;
  // The id is a string of at most 1 KiB, and the text of a message that was checked.
  const text: unknown = JSON.parse(seen);
  const match = typeof text === "string" ? ROUTED.exec(text) : undefined;
  const [, target, kind, id] = match ?? [];
  if (target === undefined || id === undefined) return undefined;
  if (kind === "s") return { target, id: JSON.stringify(id) };
  return INTEGER.test(id) ? { target, id } : undefined;
}
