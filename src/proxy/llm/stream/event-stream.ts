/**
 * Incremental parser of `application/vnd.amazon.eventstream`, the binary framing of streamed Bedrock answers, fed with
 * bytes in any pieces. A frame is
 *
 *     total length (4) | length of the headers (4) | CRC-32 of these 8 bytes | headers | payload | CRC-32 of all before
 *
 * with big-endian numbers. Frames that are complete in their piece are read in place; their last checksums cover the
 * lengths as well, and are verified together. Another one is gathered in a buffer of its own size; the first checksum is
 * verified before its length is believed, so a damaged length can neither make the parser wait nor take memory.
 */
import { crc32 } from "node:zlib";
import { joinChecksums, withChecksum } from "../../../lib/crc32.ts";
import { ProxyError } from "../../exchange/errors.ts";

/**
 * @param data payload as latin1, one character per byte
 * @param type name of the event, or `exception:` and the name of the exception
 */
type OnFrame = (data: string, type: string) => void;

/** Begins the type of a frame that reports an error. */
export const EXCEPTION = "exception:";

const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
const MAX_HEADER_BYTES = 131_072;

/** Bytes of a header's value by its type; the values of the types 6 and 7 have their length in front. */
const VALUE_BYTES: readonly (number | undefined)[] = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16];
const TYPE_BYTES = 6;
const TYPE_STRING = 7;

export class EventStreamParser {
  readonly #maxFrameBytes: number;
  readonly #onFrame: OnFrame;
  readonly #prelude = Buffer.alloc(PRELUDE_BYTES);
  /** The incomplete frame; undefined while its prelude is incomplete. */
  #frame: Buffer | undefined;
  /** Bytes of the incomplete frame that have arrived. */
  #filled = 0;
  /** Headers of the last event, as latin1, and the type that they name: most events of a stream have the same ones. */
  #headers = "";
  #type = "";

  constructor(maxFrameBytes: number, onFrame: OnFrame) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#onFrame = onFrame;
  }

  /** @throws ProxyError llm_response_invalid for a frame that is damaged or exceeds the limit */
  push(chunk: Buffer): void {
    let text: string | undefined;
    let verifiedTo = 0;
    let at = 0;
    while (at < chunk.length) {
      const rest = chunk.length - at;
      if (this.#filled === 0 && rest >= PRELUDE_BYTES) {
        const total = chunk.readUInt32BE(at);
        if (rest >= total) {
          this.#checkLengths(chunk, at);
          // One text and one checksum for all frames of the chunk.
          if (text === undefined) {
            text = chunk.toString("latin1");
            verifiedTo = verifyTogether(chunk, at);
          }
          if (at >= verifiedTo) verify(chunk, at, at + total);
          this.#read(chunk, text, at);
          at += total;
          continue;
        }
      }
      at += this.#gather(chunk, at);
    }
  }

  /** @throws ProxyError llm_response_invalid when the stream ends inside a frame */
  end(): void {
    if (this.#filled > 0) throw invalid("the stream ends inside a frame");
  }

  /** Copies bytes of an incomplete frame. @returns how many */
  #gather(chunk: Buffer, at: number): number {
    const target = this.#frame ?? this.#prelude;
    const copied = chunk.copy(target, this.#filled, at);
    this.#filled += copied;
    if (this.#filled < target.length) return copied;
    if (this.#frame === undefined) {
      this.#frame = Buffer.allocUnsafe(this.#totalBytes(this.#prelude, 0));
      this.#prelude.copy(this.#frame);
    } else {
      this.#frame = undefined;
      this.#filled = 0;
      verify(target, 0, target.length);
      this.#read(target, target.toString("latin1"), 0);
    }
    return copied;
  }

  /** Verifies the checksum of the prelude. @returns the length of the frame */
  #totalBytes(bytes: Buffer, at: number): number {
    if (crc32(bytes.subarray(at, at + 8)) !== bytes.readUInt32BE(at + 8))
      throw invalid("a frame has a wrong prelude checksum");
    return this.#checkLengths(bytes, at);
  }

  /** @returns the length of the frame */
  #checkLengths(bytes: Buffer, at: number): number {
    const total = bytes.readUInt32BE(at);
    const headers = bytes.readUInt32BE(at + 4);
    if (total > this.#maxFrameBytes) throw invalid(`a frame is longer than ${this.#maxFrameBytes} bytes`);
    if (headers > MAX_HEADER_BYTES || headers + PRELUDE_BYTES + CHECKSUM_BYTES > total)
      throw invalid("the lengths of a frame contradict each other");
    return total;
  }

  /**
   * Reads a frame that has been verified.
   * @param text the bytes as latin1
   * @param start of the frame in both
   */
  #read(bytes: Buffer, text: string, start: number): void {
    const end = start + bytes.readUInt32BE(start) - CHECKSUM_BYTES;
    const headersStart = start + PRELUDE_BYTES;
    const headersEnd = headersStart + bytes.readUInt32BE(start + 4);
    const data = text.slice(headersEnd, end);
    if (headersEnd > headersStart && text.slice(headersStart, headersEnd) === this.#headers)
      this.#onFrame(data, this.#type);
    else this.#readOther(bytes, headersStart, headersEnd, data);
  }

  /** Reads a frame whose headers differ from those of the last event. */
  #readOther(bytes: Buffer, headersStart: number, headersEnd: number, data: string): void {
    const headers = readHeaders(bytes, headersStart, headersEnd);
    switch (headers.get(":message-type")) {
      case "event":
        // Not a slice, which would keep the text of the whole chunk as long as the stream lives.
        this.#headers = bytes.toString("latin1", headersStart, headersEnd);
        this.#type = headers.get(":event-type") ?? "";
        return this.#onFrame(data, this.#type);
      case "exception":
        return this.#onFrame(data, EXCEPTION + (headers.get(":exception-type") ?? ""));
      case "error": {
        // An error that the service did not model has its message in a header and no payload.
        const message = JSON.stringify({ message: headers.get(":error-message") ?? "" });
        return this.#onFrame(Buffer.from(message).toString("latin1"), EXCEPTION + (headers.get(":error-code") ?? ""));
      }
      default:
        throw invalid("a frame has no known message type");
    }
  }
}

/**
 * Verifies the complete frames of a chunk with one checksum over all of them: it follows from those that the frames
 * carry.
 * @returns where the verified frames end; `from` when one of them is damaged
 */
function verifyTogether(chunk: Buffer, from: number): number {
  let expected = 0;
  let end = from;
  while (chunk.length - end >= PRELUDE_BYTES + CHECKSUM_BYTES) {
    const total = chunk.readUInt32BE(end);
    if (total < PRELUDE_BYTES + CHECKSUM_BYTES || total > chunk.length - end) break;
    const carried = chunk.readUInt32BE(end + total - CHECKSUM_BYTES);
    expected = joinChecksums(expected, withChecksum(carried), total);
    end += total;
  }
  return crc32(chunk.subarray(from, end)) === expected ? end : from;
}

/** @throws ProxyError llm_response_invalid for a frame with a wrong checksum */
function verify(bytes: Buffer, start: number, end: number): void {
  const checksum = end - CHECKSUM_BYTES;
  if (crc32(bytes.subarray(start, checksum)) !== bytes.readUInt32BE(checksum))
    throw invalid("a frame has a wrong checksum");
}

/** Returns the headers whose values are text. */
function readHeaders(frame: Buffer, start: number, end: number): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  let at = start;
  while (at < end) {
    const nameEnd = at + 1 + frame.readUInt8(at);
    // The type of the value follows the name. Frames end with a checksum, so reading it never leaves the frame.
    if (nameEnd >= end) throw invalid("a frame has damaged headers");
    const type = frame.readUInt8(nameEnd);
    let value = nameEnd + 1;
    let bytes = VALUE_BYTES[type];
    if (type === TYPE_BYTES || type === TYPE_STRING) {
      bytes = frame.readUInt16BE(value);
      value += 2;
    }
    if (bytes === undefined || value + bytes > end) throw invalid("a frame has damaged headers");
    if (type === TYPE_STRING)
      headers.set(frame.toString("latin1", at + 1, nameEnd), frame.toString("utf8", value, value + bytes));
    at = value + bytes;
  }
  return headers;
}

function invalid(detail: string): ProxyError {
  return new ProxyError("llm_response_invalid", { detail });
}
