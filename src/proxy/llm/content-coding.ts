/**
 * Content codings (RFC 9110 §8.4.1): what arrives packed is unpacked before it is read, never into more bytes than the
 * limit, and not into many times as many (proxying.md 13), so that a small packed body cannot fill the memory.
 */
import { promisify } from "node:util";
import zlib from "node:zlib";
import { ProxyError } from "../errors.ts";
import type { BodySink, BodyStream } from "../pipeline/body.ts";

type Decoder = zlib.Gunzip | zlib.Inflate | zlib.BrotliDecompress | zlib.ZstdDecompress;

interface Coding {
  readonly whole: (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;
  readonly flow: () => Decoder;
}

const GZIP: Coding = { whole: promisify(zlib.gunzip), flow: () => zlib.createGunzip() };
const CODINGS: Readonly<Record<string, Coding>> = {
  gzip: GZIP,
  "x-gzip": GZIP,
  deflate: { whole: promisify(zlib.inflate), flow: () => zlib.createInflate() },
  br: { whole: promisify(zlib.brotliDecompress), flow: () => zlib.createBrotliDecompress() },
  zstd: { whole: promisify(zlib.zstdDecompress), flow: () => zlib.createZstdDecompress() },
};

/** Up to here any ratio is taken; beyond it only what packed text can have. */
const ANY_RATIO_BYTES = 1_048_576;
const MAX_RATIO = 200;

/** @returns how many bytes so many packed ones may become */
function fairBytes(packedBytes: number): number {
  return Math.max(ANY_RATIO_BYTES, packedBytes * MAX_RATIO);
}

/** @param header value of Content-Encoding @returns null: nothing to decode; undefined: a coding not known here */
export function codingOf(header: string | undefined): Coding | null | undefined {
  const name = (header ?? "").trim().toLowerCase();
  if (name === "" || name === "identity") return null;
  return Object.hasOwn(CODINGS, name) ? CODINGS[name] : undefined;
}

/** @returns undefined when the result would be larger than the limit, or than such bytes may become @throws zlib's error when the bytes are broken */
export async function unpack(bytes: Buffer, coding: Coding, limitBytes: number): Promise<Buffer | undefined> {
  try {
    return await coding.whole(bytes, { maxOutputLength: Math.min(limitBytes, fairBytes(bytes.length)) });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Unpacks a flow as it comes; one that becomes too much ends with response_too_large. Output pauses with the reader, and input pauses with the output. */
export function unpackStream(source: BodyStream, coding: Coding): BodyStream {
  return new UnpackedStream(source, coding.flow());
}

class UnpackedStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #decoder: Decoder;
  #sink: BodySink | undefined;
  #trailers: readonly string[] = [];
  #over = false;
  #packedBytes = 0;
  #bytes = 0;

  constructor(source: BodyStream, decoder: Decoder) {
    this.#source = source;
    this.#decoder = decoder;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    const decoder = this.#decoder;
    decoder.on("data", this.#unpacked.bind(this));
    decoder.on("drain", this.#drained.bind(this));
    decoder.on("end", this.#ended.bind(this));
    decoder.on("error", this.#broken.bind(this));
    this.#source.read(this);
  }

  resume(): void {
    this.#decoder.resume();
  }

  destroy(error?: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#decoder.destroy();
    this.#source.destroy(error);
  }

  // What is packed arrives.

  data(chunk: Buffer): boolean {
    this.#packedBytes += chunk.length;
    return this.#over || this.#decoder.write(chunk);
  }

  end(trailers: readonly string[]): void {
    this.#trailers = trailers;
    this.#decoder.end();
  }

  error(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#decoder.destroy();
    this.#sink?.error(error);
  }

  // What was packed comes out.

  #unpacked(chunk: Buffer): void {
    if (this.#over) return;
    this.#bytes += chunk.length;
    if (this.#bytes > fairBytes(this.#packedBytes)) {
      const error = new ProxyError("response_too_large", { detail: "packed too well" });
      this.#source.destroy(error);
      this.error(error);
    } else if (this.#sink?.data(chunk) === false) this.#decoder.pause();
  }

  #drained(): void {
    this.#source.resume();
  }

  #ended(): void {
    if (this.#over) return;
    this.#over = true;
    this.#sink?.end(this.#trailers);
  }

  #broken(cause: Error): void {
    this.#source.destroy(cause);
    this.error(new ProxyError("response_invalid", { detail: "broken content coding", cause }));
  }
}
