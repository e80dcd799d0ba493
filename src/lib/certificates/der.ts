/** Encodes and reads the distinguished encoding rules of ASN.1 (DER, X.690), as far as certificates need them. */
const CONSTRUCTED = 0x20;
const CONTEXT = 0x80;

function encode(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const size = length < 0x100 ? [length] : length < 0x10000 ? [length >> 8, length & 0xff] : undefined;
  if (size === undefined) throw new RangeError(`${length} bytes are more than a certificate field may hold`);
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length, ...size]), content]);
}

export function sequence(...parts: readonly Buffer[]): Buffer {
  return encode(0x30, Buffer.concat(parts));
}

/** Encodes a set of one member; several members would have to be sorted. */
export function set(member: Buffer): Buffer {
  return encode(0x31, member);
}

/** @param value a small non-negative number, or big-endian bytes with a clear top bit */
export function integer(value: number | Buffer): Buffer {
  if (typeof value === "number" && (value < 0 || value > 127)) throw new RangeError("give bytes for large integers");
  return encode(0x02, typeof value === "number" ? Buffer.from([value]) : value);
}

export function boolean(value: boolean): Buffer {
  return encode(0x01, Buffer.from([value ? 0xff : 0]));
}

/** @param content starts with the number of unused bits */
export function bitString(content: Buffer): Buffer {
  return encode(0x03, content);
}

export function octetString(content: Buffer): Buffer {
  return encode(0x04, content);
}

export function utf8(text: string): Buffer {
  return encode(0x0c, Buffer.from(text, "utf8"));
}

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return encode(0x06, Buffer.from(bytes));
}

/** UTCTime until 2049, GeneralizedTime from 2050 on (RFC 5280 §4.1.2.5). */
export function time(at: Date): Buffer {
  const digits = at.toISOString().replace(/\.\d+/, "").replaceAll(/[-:T]/g, "");
  return at.getUTCFullYear() < 2050 ? encode(0x17, Buffer.from(digits.slice(2))) : encode(0x18, Buffer.from(digits));
}

/** Wraps a whole value in the context tag. */
export function explicit(tag: number, value: Buffer): Buffer {
  return encode(CONTEXT | CONSTRUCTED | tag, value);
}

/** Encodes a primitive value with the context tag in place of its own tag. */
export function contextTag(tag: number, content: Buffer): Buffer {
  return encode(CONTEXT | tag, content);
}

export function nothing(): Buffer {
  return encode(0x05, Buffer.alloc(0));
}

/**
 * Returns the content of a value, without its tag and length. @throws RangeError when the value is shorter than its
 * length
 */
export function contentOf(value: Buffer): Buffer {
  const { start, end } = extent(value, 0);
  return value.subarray(start, end);
}

/**
 * Returns the members of a constructed value, each one whole. @throws RangeError when one is shorter than its length
 */
export function membersOf(value: Buffer): Buffer[] {
  return valuesIn(contentOf(value));
}

/** Splits a series of values, each one whole. @throws RangeError when one is shorter than its length */
export function valuesIn(bytes: Buffer): Buffer[] {
  const values: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const { end } = extent(bytes, at);
    values.push(bytes.subarray(at, end));
    at = end;
  }
  return values;
}

function extent(bytes: Buffer, at: number): { readonly start: number; readonly end: number } {
  const first = bytes.readUInt8(at + 1);
  const size = first < 0x80 ? 0 : first & 0x7f;
  const start = at + 2 + size;
  const end = start + (size === 0 ? first : bytes.readUIntBE(at + 2, size));
  if (end > bytes.length) throw new RangeError("a value ends before its length");
  return { start, end };
}
