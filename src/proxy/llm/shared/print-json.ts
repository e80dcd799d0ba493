/**
 * Prints the bodies of requests as JSON. V8 gives a text of more than 128 KiB pages of its own, which the system hands
 * out and takes back each time: half of the time that printing 200 KiB took went there. So a large body is printed in
 * pieces, which are encoded one after the other into the same memory.
 */
import type { Json, JsonObject } from "./json.ts";

export interface PrintedJson {
  readonly bytes: Buffer;
  /** Whether the test has matched a text or a piece of it. No string of the object is in two pieces. */
  readonly hasMatch: boolean;
}

interface PrintOptions {
  /** Bytes of the JSON, about: it decides how the object is printed, and not what is printed. */
  readonly sizeHint: number;
  readonly test?: ((text: string) => boolean) | undefined;
}

const PIECE_BYTES = 32 * 1024;
const SCRATCH_BYTES = 4 * 1024 * 1024;
/** UTF-8 takes at most three bytes for a unit of UTF-16. */
const MAX_UNIT_BYTES = 3;

/** Allocated with the first large body; the system provides only the pages that are used. */
let scratch: Buffer | undefined;

/** Prints an object as `JSON.stringify` does. */
export function printJson(object: JsonObject, options: PrintOptions): PrintedJson {
  return (options.sizeHint > 2 * PIECE_BYTES ? printPieces(object, options) : undefined) ?? printText(object, options);
}

function printText(object: JsonObject, { test }: PrintOptions): PrintedJson {
  const text = JSON.stringify(object);
  return { bytes: Buffer.from(text), hasMatch: test?.(text) === true };
}

/** @returns undefined for an object that may not fit into the memory for pieces */
function printPieces(object: JsonObject, { sizeHint, test }: PrintOptions): PrintedJson | undefined {
  scratch ??= Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  let hasMatch = false;
  let at = 0;
  for (const piece of piecesOf(object, Math.ceil(sizeHint / PIECE_BYTES))) {
    if (piece.length * MAX_UNIT_BYTES > SCRATCH_BYTES - at) return undefined;
    hasMatch ||= test?.(piece) === true;
    at += scratch.write(piece, at);
  }
  return { bytes: Buffer.from(scratch.subarray(0, at)), hasMatch };
}

/** Splits the JSON of an object at its members, and at items of lists in so many parts. */
function* piecesOf(object: JsonObject, parts: number): Generator<string> {
  let separator = "{";
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue;
    yield `${separator}${JSON.stringify(name)}:`;
    separator = ",";
    if (Array.isArray(value) && value.length > 1) yield* listPieces(value, Math.ceil(value.length / parts));
    else yield JSON.stringify(value);
  }
  yield separator === "{" ? "{}" : "}";
}

function* listPieces(list: readonly Json[], itemsEach: number): Generator<string> {
  for (let at = 0; at < list.length; at += itemsEach) {
    yield at === 0 ? "[" : ",";
    yield JSON.stringify(list.slice(at, at + itemsEach)).slice(1, -1);
  }
  yield "]";
}
