/**
 * Parses the server name (SNI) of a TLS ClientHello (RFC 8446 §4.1.2, RFC 6066 §3) without answering it. TlsLayer uses
 * it to choose the listener before a handshake, and for passthrough listeners, which take no part in the handshake.
 *
 *   record (RFC 8446 §5.1): type 22 | version | length | fragment …     one message may span several records
 *   message:                type 1 | length (3) | version, random, session, suites, compression, extensions
 *
 * The input is untrusted, so records and message have size limits, and the Reader checks every length.
 */

const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const MAX_RECORD_BYTES = 16_384;
const MAX_HELLO_BYTES = 65_536;

export type ClientHello = { readonly serverName: string } | "incomplete" | "invalid";

/** Adapts `readClientHello` to `peekFirstBytes`, which takes undefined as "more bytes are needed". */
export function helloOf(start: Buffer): Exclude<ClientHello, "incomplete"> | undefined {
  const hello = readClientHello(start);
  return hello === "incomplete" ? undefined : hello;
}

/** @param bytes all bytes since the start of the connection @returns serverName "" when the client sent none */
export function readClientHello(bytes: Buffer): ClientHello {
  const message = joinRecords(bytes);
  if (!Buffer.isBuffer(message)) return message;
  try {
    return { serverName: serverNameOf(new Reader(message)) };
  } catch (error) {
    if (error instanceof RangeError) return "invalid";
    throw error;
  }
}

/** Joins the fragments of the handshake message, which may span several records. */
function joinRecords(bytes: Buffer): Buffer | "incomplete" | "invalid" {
  const parts: Buffer[] = [];
  let have = 0;
  let need = 4;
  for (let at = 0; have < need;) {
    if (bytes.length < at + 5) return bytes.length > 0 && bytes[0] !== HANDSHAKE_RECORD ? "invalid" : "incomplete";
    const length = bytes.readUInt16BE(at + 3);
    if (bytes[at] !== HANDSHAKE_RECORD || bytes[at + 1] !== 3 || length === 0 || length > MAX_RECORD_BYTES)
      return "invalid";
    if (bytes.length < at + 5 + length) return "incomplete";
    parts.push(bytes.subarray(at + 5, at + 5 + length));
    have += length;
    at += 5 + length;
    if (have < 4) continue;
    const [type, ...size] = Buffer.concat(parts).subarray(0, 4);
    need = 4 + Buffer.from(size).readUIntBE(0, 3);
    if (type !== CLIENT_HELLO || need > MAX_HELLO_BYTES) return "invalid";
  }
  return Buffer.concat(parts).subarray(4, need);
}

function serverNameOf(hello: Reader): string {
  hello.skip(2 + 32); // version and random
  hello.vector(1); // session id
  hello.vector(2); // cipher suites
  hello.vector(1); // compression
  if (hello.isAtEnd) return "";
  const extensions = new Reader(hello.vector(2));
  while (!extensions.isAtEnd) {
    const type = extensions.uint(2);
    const body = extensions.vector(2);
    if (type !== SERVER_NAME) continue;
    const names = new Reader(new Reader(body).vector(2));
    while (!names.isAtEnd) {
      const kind = names.uint(1);
      const name = names.vector(2);
      if (kind === HOST_NAME) return name.toString("latin1").toLowerCase();
    }
  }
  return "";
}

/** A cursor over the message that throws RangeError when a length points beyond its end. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  uint(size: number): number {
    const value = this.#bytes.readUIntBE(this.#at, size);
    this.#at += size;
    return value;
  }

  /** Reads a variable-length vector (RFC 8446 §3.4). @param lengthSize size in bytes of its length prefix */
  vector(lengthSize: number): Buffer {
    const length = this.uint(lengthSize);
    const start = this.#at;
    this.skip(length);
    return this.#bytes.subarray(start, this.#at);
  }

  skip(length: number): void {
    if (this.#at + length > this.#bytes.length) throw new RangeError("beyond the end of the message");
    this.#at += length;
  }
}
