/**
 * Decodes content codings (RFC 9110 §8.4.1) of bodies that are read on their way, such as those of language models. The
 * decoded size is bounded by the limit and, above 1 MiB, by 200 times the encoded size, so that a small body cannot fill
 * the memory (decompression bomb).
 */
import { promisify } from "node:util";
import zlib from "node:zlib";
import type { HeaderList } from "../../lib/header-list.ts";
import type { BodySink, BodyStream } from "./body.ts";
import { ProxyError, type ProxyErrorCode } from "./errors.ts";

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

/** Below this size every ratio is accepted; above it only a ratio that real text can have. */
const ANY_RATIO_BYTES = 1_048_576;
const MAX_RATIO = 200;

/** @returns the size that so many encoded bytes may grow to */
function fairBytes(packedBytes: number): number {
  return Math.max(ANY_RATIO_BYTES, packedBytes * MAX_RATIO);
}

/**
 * @param header value of Content-Encoding
 * @returns null when there is nothing to decode; undefined for an unknown coding
 */
export function codingOf(header: string | undefined): Coding | null | undefined {
  const name = (header ?? "").trim().toLowerCase();
  if (name === "" || name === "identity") return null;
  return Object.hasOwn(CODINGS, name) ? CODINGS[name] : undefined;
}

/** Removes the fields that describe a body which is not sent as it came: length, coding, digests and entity tag. */
export function forgetBody(headers: HeaderList): void {
  for (const name of ["content-length", "content-encoding", "content-md5", "content-digest", "repr-digest", "digest"])
    headers.remove(name);
  headers.remove("etag");
}

/**
 * @returns undefined when the result would exceed the limit or the ratio
 * @throws the error of zlib when the bytes are broken
 */
export async function unpack(bytes: Buffer, coding: Coding, limitBytes: number): Promise<Buffer | undefined> {
  try {
    return await coding.whole(bytes, { maxOutputLength: Math.min(limitBytes, fairBytes(bytes.length)) });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * Decodes a stream as it arrives. One that grows too much ends with response_too_large. Backpressure passes through:
 * the output pauses with the reader, and the input with the output.
 * @param brokenCode of the error that ends a stream which cannot be decoded
 */
export function unpackStream(source: BodyStream, coding: Coding, brokenCode: ProxyErrorCode): BodyStream {
  return new UnpackedStream(source, coding.flow(), brokenCode);
}

class UnpackedStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #decoder: Decoder;
  readonly #brokenCode: ProxyErrorCode;
  #sink: BodySink | undefined;
  #trailers: readonly string[] = [];
  #over = false;
  #packedBytes = 0;
  #bytes = 0;

  constructor(source: BodyStream, decoder: Decoder, brokenCode: ProxyErrorCode) {
    this.#source = source;
    this.#decoder = decoder;
    this.#brokenCode = brokenCode;
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

  // BodySink: encoded data arrives.

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

  // Events of the decoder: decoded data leaves.

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
    this.error(new ProxyError(this.#brokenCode, { detail: "broken content coding", cause }));
  }
}
