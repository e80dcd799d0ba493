/**
 * Looks over the bytes of a review before they are parsed: what is nested too deeply, holds too many values or is too long
 * is refused where the bound is crossed, so that the work is bounded by the bound and not by what was sent.
 */

export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxValues: number;
  /** Of one value at `measuredDepth`; what stands around it is not counted. */
  readonly maxBytes: number;
  readonly measuredDepth: number;
}

export interface JsonFault {
  readonly message: string;
  /** Where it was seen: nothing behind it was looked at. */
  readonly offset: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Whether it is JSON is for the parser to say. */
export function jsonFault(bytes: Buffer, bounds: JsonBounds): JsonFault | undefined {
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

/** @param at of the opening quote. @returns the offset of the closing one, or the end */
function endOfText(bytes: Buffer, at: number): number {
  for (let end = bytes.indexOf(QUOTE, at + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return bytes.length;
}
