/**
 * Messages in the bytes of one side of a WebSocket (RFC 6455 §5), for who checks what is said in a session: fragments are
 * put together, and a message is written as one frame again. guards/session.ts uses it. What only looks on uses
 * text-messages.ts, which never changes the bytes.
 *
 * Two readers of one frame must not find different messages in it, so everything that the standard forbids is an error,
 * and no byte is passed on that was not read.
 */
import { randomBytes } from "node:crypto";
import { ProxyError } from "../../exchange/errors.ts";
import { CONTINUATION, FINAL, FIRST_CONTROL, HeadReader, lengthIn, MASK_BYTES, MASKED } from "./frame-head.ts";
import { MessageBytes } from "./message-bytes.ts";

const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const LAST_CONTROL = 10;
const MAX_CONTROL_BYTES = 125;
const RESERVED = 0x70;

/** A message, or a control frame that stands between or inside messages. */
export type SessionFrame =
  | {
      readonly kind: "message";
      readonly isBinary: boolean;
      /** undefined when it is too long. */ readonly payload: Buffer | undefined;
    }
  | { readonly kind: "control"; readonly isClose: boolean; /** The whole frame as it came. */ readonly bytes: Buffer };

interface Head {
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly mask: Buffer | undefined;
  readonly bytes: Buffer;
}

/** Reads the frames of one side. */
export class SessionReader {
  readonly #isMasked: boolean;
  readonly #maxBytes: number;
  readonly #heads: HeadReader = new HeadReader();
  #head: Head | undefined;
  /** Bytes of the payload that are still to come. */
  #left = 0;
  /** Payload of the control frame at hand. */
  #control: Buffer[] = [];
  /** The message that is not complete yet; its payload is undefined when it is too long. */
  #message: { readonly isBinary: boolean; payload: MessageBytes | undefined } | undefined;
  /** Position in the payload of the frame, for the mask. */
  #position = 0;

  /**
   * @param isMasked whether this is the side of a client, whose frames are masked
   * @param maxBytes longest message that is read
   */
  constructor(isMasked: boolean, maxBytes: number) {
    this.#isMasked = isMasked;
    this.#maxBytes = maxBytes;
  }

  /** @throws ProxyError upstream_broken for what the standard forbids */
  read(chunk: Buffer): SessionFrame[] {
    const frames: SessionFrame[] = [];
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#head === undefined) rest = this.#readHead(rest);
      else {
        const part = rest.subarray(0, this.#left);
        rest = rest.subarray(part.length);
        this.#readPayload(this.#head, part);
      }
      if (this.#head === undefined || this.#left > 0) continue;
      const frame = this.#finish(this.#head);
      this.#head = undefined;
      if (frame !== undefined) frames.push(frame);
    }
    return frames;
  }

  /** @returns what follows the head */
  #readHead(chunk: Buffer): Buffer {
    const { head, end } = this.#heads.read(chunk, 0);
    if (head === undefined) return chunk.subarray(end);
    const [first = 0, second = 0] = head;
    const opcode = first & 0x0f;
    const isFinal = (first & FINAL) !== 0;
    this.#left = lengthIn(head);
    this.#position = 0;
    this.#checkHead({ first, opcode, isFinal, isMasked: (second & MASKED) !== 0 });
    this.#head = { opcode, isFinal, mask: this.#isMasked ? head.subarray(-MASK_BYTES) : undefined, bytes: head };
    if (opcode < FIRST_CONTROL) this.#message ??= { isBinary: opcode === BINARY, payload: new MessageBytes() };
    return chunk.subarray(end);
  }

  #checkHead(head: { readonly first: number; readonly opcode: number; isFinal: boolean; isMasked: boolean }): void {
    const { first, opcode, isFinal, isMasked } = head;
    // No extension is ever agreed on, so no reserved bit has a meaning.
    if ((first & RESERVED) !== 0) throw broken("a reserved bit");
    if (isMasked !== this.#isMasked) throw broken(isMasked ? "a masked frame of a server" : "a frame without a mask");
    if (opcode >= FIRST_CONTROL) {
      if (opcode > LAST_CONTROL || !isFinal || this.#left > MAX_CONTROL_BYTES) throw broken("a bad control frame");
      return;
    }
    if (opcode > BINARY) throw broken("an unknown opcode");
    if ((opcode === CONTINUATION) !== (this.#message !== undefined)) throw broken("a bad order of fragments");
    if (!Number.isSafeInteger(this.#left)) throw broken("a bad length");
  }

  #readPayload({ opcode, mask }: Head, part: Buffer): void {
    this.#left -= part.length;
    if (opcode >= FIRST_CONTROL) {
      // Copied, because the owner of a chunk may use its memory again.
      this.#control.push(Buffer.from(part));
      return;
    }
    const message = this.#message;
    if (message?.payload === undefined) return;
    if (message.payload.length + part.length > this.#maxBytes) {
      message.payload = undefined;
      return;
    }
    const copy = message.payload.add(part);
    if (mask !== undefined) applyMask(copy, mask, this.#position);
    this.#position += part.length;
  }

  /** @returns undefined for a fragment that is not the last one */
  #finish({ opcode, isFinal, bytes }: Head): SessionFrame | undefined {
    if (opcode >= FIRST_CONTROL) {
      const whole = Buffer.concat([bytes, ...this.#control]);
      this.#control = [];
      return { kind: "control", isClose: opcode === CLOSE, bytes: whole };
    }
    if (!isFinal || this.#message === undefined) return undefined;
    const { isBinary, payload } = this.#message;
    this.#message = undefined;
    return { kind: "message", isBinary, payload: payload?.bytes };
  }
}

/** @param position of the first byte in the payload of its frame */
function applyMask(bytes: Buffer, mask: Buffer, position: number): void {
  for (let at = 0; at < bytes.length; at++)
    bytes[at] = (bytes[at] as number) ^ (mask[(position + at) % MASK_BYTES] as number); // both are within bounds
}

function broken(detail: string): ProxyError {
  return new ProxyError("upstream_broken", { detail: `WebSocket: ${detail}` });
}

interface Message {
  readonly payload: Buffer;
  readonly isBinary: boolean;
}

/** Writes a message as one frame. @param isMasked whether it goes to a server */
export function printMessage({ payload, isBinary }: Message, isMasked: boolean): Buffer {
  const { length } = payload;
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const head = Buffer.alloc(2 + size);
  head[0] = FINAL | (isBinary ? BINARY : TEXT);
  head[1] = (isMasked ? MASKED : 0) | (size === 0 ? length : size === 2 ? 126 : 127);
  if (size === 2) head.writeUInt16BE(length, 2);
  if (size === 8) head.writeBigUInt64BE(BigInt(length), 2);
  if (!isMasked) return Buffer.concat([head, payload]);
  // A script in a browser must not be able to choose the bytes on the wire (RFC 6455 §10.3).
  const mask = randomBytes(MASK_BYTES);
  const masked = Buffer.from(payload);
  applyMask(masked, mask, 0);
  return Buffer.concat([head, mask, masked]);
}

/** Writes an event as a message of text. */
export function printEvent(event: object, isMasked: boolean): Buffer {
  return printMessage({ payload: Buffer.from(JSON.stringify(event)), isBinary: false }, isMasked);
}
