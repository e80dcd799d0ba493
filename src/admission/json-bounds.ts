/**
 * Scans the bytes of a review before they are parsed, and refuses those that are nested too deeply, hold too many
 * values or are too long. answer.ts uses it. The scan stops at the first limit that is exceeded, so that its cost
 * depends on the limits and not on what a client sends.
 *
 * The scanner only skips strings and counts brackets and commas; it does not validate. Invalid JSON passes and is left
 * to JSON.parse.
 */

export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxValues: number;
  /** Limit of one value at `measuredDepth`; the bytes around that value are not counted. */
  readonly maxBytes: number;
  readonly measuredDepth: number;
}

export interface JsonError {
  readonly message: string;
  /** Position of the error; nothing behind it was read. */
  readonly offset: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Returns the first limit that is exceeded; does not check whether the bytes are valid JSON. */
export function findJsonError(bytes: Buffer, bounds: JsonBounds): JsonError | undefined {
  let depth = 0;
  let values = 1;
  let start = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfText(bytes, at);
        break;
      case 0x2c: // ,
        values++;
        break;
      case 0x7b: // {
      case 0x5b: // [
        depth++;
        values++;
        if (depth === bounds.measuredDepth) start = at;
        break;
      case 0x7d: // }
      case 0x5d: // ]
        depth--;
        break;
      default:
        continue;
    }
    const message = crossed({ depth, values, length: depth >= bounds.measuredDepth ? at - start : 0 }, bounds);
    if (message !== undefined) return { message, offset: at };
  }
  return undefined;
}

interface Seen {
  readonly depth: number;
  readonly values: number;
  readonly length: number;
}

function crossed({ depth, values, length }: Seen, bounds: JsonBounds): string | undefined {
  const levels = bounds.maxDepth - bounds.measuredDepth + 1;
  if (depth > bounds.maxDepth) return `Too long: may not be nested deeper than ${levels} levels`;
  if (values > bounds.maxValues) return `Too long: may not hold more than ${bounds.maxValues} values`;
  return length > bounds.maxBytes ? `Too long: may not be more than ${bounds.maxBytes} bytes` : undefined;
}

/**
 * @param at offset of the opening quote
 * @returns the offset of the closing quote, or the end
 */
function endOfText(bytes: Buffer, at: number): number {
  for (let end = bytes.indexOf(QUOTE, at + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return bytes.length;
}
