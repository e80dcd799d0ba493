/**
 * Content codings (RFC 9110 §8.4.1): what arrives packed is unpacked before it is read, never into more bytes than the
 * limit, so that a small packed body cannot fill the memory.
 */
import { promisify } from "node:util";
import zlib from "node:zlib";
import { ProxyError } from "../errors.ts";
import type { BodyStream } from "../pipeline/body.ts";

interface Coding {
  readonly whole: (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;
  readonly flow: () => zlib.Gunzip | zlib.Inflate | zlib.BrotliDecompress | zlib.ZstdDecompress;
}

const GZIP: Coding = { whole: promisify(zlib.gunzip), flow: () => zlib.createGunzip() };
const CODINGS: Readonly<Record<string, Coding>> = {
  gzip: GZIP,
  "x-gzip": GZIP,
  deflate: { whole: promisify(zlib.inflate), flow: () => zlib.createInflate() },
  br: { whole: promisify(zlib.brotliDecompress), flow: () => zlib.createBrotliDecompress() },
  zstd: { whole: promisify(zlib.zstdDecompress), flow: () => zlib.createZstdDecompress() },
};

/** @param header value of Content-Encoding @returns null: nothing to decode; undefined: a coding not known here */
export function codingOf(header: string | undefined): Coding | null | undefined {
  const name = (header ?? "").trim().toLowerCase();
  if (name === "" || name === "identity") return null;
  return Object.hasOwn(CODINGS, name) ? CODINGS[name] : undefined;
}

/** @returns undefined when the result would be larger than the limit @throws zlib's error when the bytes are broken */
export async function unpack(bytes: Buffer, coding: Coding, limitBytes: number): Promise<Buffer | undefined> {
  try {
    return await coding.whole(bytes, { maxOutputLength: limitBytes });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Unpacks a flow as it comes. Output pauses with the reader, and input pauses with the output. */
export function unpackStream(source: BodyStream, coding: Coding): BodyStream {
  const decoder = coding.flow();
  let over = false;
  return {
    read(sink) {
      let trailers: readonly string[] = [];
      const fail = (error: Error): void => {
        if (over) return;
        over = true;
        decoder.destroy();
        sink.error(error);
      };
      decoder.on("data", (chunk: Buffer) => {
        if (!over && !sink.data(chunk)) decoder.pause();
      });
      decoder.on("drain", () => source.resume());
      decoder.on("end", () => {
        if (over) return;
        over = true;
        sink.end(trailers);
      });
      decoder.on("error", (cause: Error) => {
        source.destroy(cause);
        fail(new ProxyError("response_invalid", { detail: "broken content coding", cause }));
      });
      source.read({
        data: (chunk) => over || decoder.write(chunk),
        end(last) {
          trailers = last;
          decoder.end();
        },
        error: fail,
      });
    },
    resume: () => void decoder.resume(),
    destroy(error) {
      if (over) return;
      over = true;
      decoder.destroy();
      source.destroy(error);
    },
  };
}
