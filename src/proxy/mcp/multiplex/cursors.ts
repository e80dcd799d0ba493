/**
 * Cursors of lists that several targets make together. A cursor says where each target that has more goes on; targets
 * without an entry are finished. It is sealed, because targets must not get cursors that clients made up, and names the
 * backend and the method that it continues.
 */
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Seal } from "../session/seal.ts";

export interface Cursor {
  /** Cursors of targets, by name. */
  readonly targets: ReadonlyMap<string, string>;
  /** Digests of names that earlier pages showed, for lists in which targets must not repeat each other. */
  readonly seen: ReadonlySet<number>;
}

/** The list that a cursor continues. */
export interface ListKey {
  /** Key of the backend. */
  readonly backend: string;
  readonly method: string;
}

const DIGEST_BYTES = 4;

export function sealCursor(seal: Seal, { backend, method }: ListKey, { targets, seen }: Cursor): string {
  const texts = [backend, method];
  for (const [target, cursor] of targets) texts.push(target, cursor);
  const digests = Buffer.alloc(seen.size * DIGEST_BYTES);
  let at = 0;
  for (const digest of seen) at = digests.writeUInt32LE(digest, at);
  return seal.seal("cursor", Buffer.concat([writeLength(texts.length), ...texts.flatMap(writeText), digests]));
}

/** @throws McpError when the cursor was changed or made up, or continues another list */
export function openCursor(seal: Seal, { backend, method }: ListKey, text: string): Cursor {
  const bytes = seal.open("cursor", text);
  if (bytes === undefined) throw invalidCursor();
  // The bytes are our own: they were authenticated.
  const texts: string[] = [];
  let at = DIGEST_BYTES;
  for (let count = bytes.readUInt32LE(0); count > 0; count--) {
    const start = at + DIGEST_BYTES;
    const end = start + bytes.readUInt32LE(at);
    texts.push(bytes.toString("utf8", start, end));
    at = end;
  }
  if (texts[0] !== backend || texts[1] !== method) throw invalidCursor();
  const targets = new Map<string, string>();
  for (let index = 2; index < texts.length; index += 2) targets.set(texts[index] ?? "", texts[index + 1] ?? "");
  const seen = new Set<number>();
  for (; at < bytes.length; at += DIGEST_BYTES) seen.add(bytes.readUInt32LE(at));
  return { targets, seen };
}

export function invalidCursor(): McpError {
  return new McpError(ERROR_CODES.invalidParams, "Invalid cursor");
}

function writeText(text: string): Buffer[] {
  const bytes = Buffer.from(text);
  return [writeLength(bytes.length), bytes];
}

function writeLength(length: number): Buffer {
  const bytes = Buffer.alloc(DIGEST_BYTES);
  bytes.writeUInt32LE(length);
  return bytes;
}
