/**
 * Messages in the bytes of one side of a WebSocket (RFC 6455 §5), for who checks what is said in a session: fragments are
 * put together, and a message is written as one frame again. guards/session.ts uses it. What only looks on uses
 * text-messages.ts, which never changes the bytes.
 *
 * Two readers of one frame must not find different messages in it, so everything that the standard forbids ends the
 * reading, and no byte is passed on that was not read.
 */
import { isUtf8 } from "node:buffer";
import { randomBytes } from "node:crypto";
import { CONTINUATION, FINAL, FIRST_CONTROL, HeadReader, lengthIn, MASK_BYTES, MASKED } from "./frame-head.ts";
import { MessageBytes } from "./message-bytes.ts";

const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const LAST_CONTROL = 10;
const PROTOCOL_ERROR = 1002;
const INVALID_TEXT = 1007;
const MAX_CONTROL_BYTES = 125;
const RESERVED = 0x70;

/** What a close frame says (RFC 6455 §7.4.1). */
export interface CloseReason {
  readonly code: number;
  readonly reason: string;
}

/** A message, a control frame that stands between or inside messages, or what the standard forbids, which is the last. */
export type SessionFrame =
  | {
      readonly kind: "message";
      readonly isBinary: boolean;
      /** undefined when it is too long. */ readonly payload: Buffer | undefined;
    }
  | { readonly kind: "control"; readonly isClose: boolean; /** The whole frame as it came. */ readonly bytes: Buffer }
  | ({ readonly kind: "violation" } & CloseReason);

interface FrameHead {
  readonly first: number;
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly isMasked: boolean;
}

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
  #violation: CloseReason | undefined;

  /**
   * @param isMasked whether this is the side of a client, whose frames are masked
   * @param maxBytes longest message that is read
   */
  constructor(isMasked: boolean, maxBytes: number) {
    this.#isMasked = isMasked;
    this.#maxBytes = maxBytes;
  }

  /** Reads a piece. After a violation nothing is read any more. */
  read(chunk: Buffer): SessionFrame[] {
    const frames: SessionFrame[] = [];
    let rest = chunk;
    while (rest.length > 0 && this.#violation === undefined) {
      if (this.#head === undefined) rest = this.#readHead(rest);
      else {
        const part = rest.subarray(0, this.#left);
        rest = rest.subarray(part.length);
        this.#readPayload(this.#head, part);
      }
      const frame = this.#finished();
      if (frame !== undefined) frames.push(frame);
    }
    return frames;
  }

  /** @returns undefined while a frame or a message is not complete */
  #finished(): SessionFrame | undefined {
    let frame: SessionFrame | undefined;
    if (this.#violation === undefined && this.#head !== undefined && this.#left === 0) {
      frame = this.#finish(this.#head);
      this.#head = undefined;
    }
    return this.#violation === undefined ? frame : { kind: "violation", ...this.#violation };
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
    const wrong = this.#findWrong({ first, opcode, isFinal, isMasked: (second & MASKED) !== 0 });
    if (wrong !== undefined) {
      this.#violation = { code: PROTOCOL_ERROR, reason: wrong };
      return EMPTY;
    }
    this.#head = { opcode, isFinal, mask: this.#isMasked ? head.subarray(-MASK_BYTES) : undefined, bytes: head };
    if (opcode < FIRST_CONTROL) this.#message ??= { isBinary: opcode === BINARY, payload: new MessageBytes() };
    return chunk.subarray(end);
  }

  /** Returns what is wrong with a head; undefined when it is allowed. */
  #findWrong(head: FrameHead): string | undefined {
    const { first, opcode, isFinal, isMasked } = head;
    // No extension is ever agreed on, so no reserved bit has a meaning.
    if ((first & RESERVED) !== 0) return "a reserved bit";
    if (isMasked !== this.#isMasked) return isMasked ? "a masked frame of a server" : "a frame without a mask";
    if (opcode >= FIRST_CONTROL)
      return opcode > LAST_CONTROL || !isFinal || this.#left > MAX_CONTROL_BYTES ? "a bad control frame" : undefined;
    if (opcode > BINARY) return "an unknown opcode";
    if ((opcode === CONTINUATION) !== (this.#message !== undefined)) return "a bad order of fragments";
    return Number.isSafeInteger(this.#left) ? undefined : "a bad length";
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
      const frame = Buffer.concat([bytes, ...this.#control]);
      this.#control = [];
      return { kind: "control", isClose: opcode === CLOSE, bytes: frame };
    }
    if (!isFinal || this.#message === undefined) return undefined;
    const { isBinary, payload } = this.#message;
    this.#message = undefined;
    const whole = payload?.bytes;
    if (!isBinary && whole !== undefined && !isUtf8(whole)) {
      this.#violation = { code: INVALID_TEXT, reason: "text that is not UTF-8" };
      return undefined;
    }
    return { kind: "message", isBinary, payload: whole };
  }
}

/** @param position of the first byte in the payload of its frame */
function applyMask(bytes: Buffer, mask: Buffer, position: number): void {
  for (let at = 0; at < bytes.length; at++)
    bytes[at] = (bytes[at] as number) ^ (mask[(position + at) % MASK_BYTES] as number); // both are within bounds
}

interface Message {
  readonly payload: Buffer;
  readonly isBinary: boolean;
}

/** Writes a message as one frame. @param isMasked whether it goes to a server */
export function printMessage({ payload, isBinary }: Message, isMasked: boolean): Buffer {
  return printFrame(isBinary ? BINARY : TEXT, payload, isMasked);
}

/** Writes the last frame to a side. @param isMasked whether it goes to a server */
export function printClose({ code, reason }: CloseReason, isMasked: boolean): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return printFrame(CLOSE, Buffer.concat([payload, Buffer.from(reason)]), isMasked);
}

function printFrame(opcode: number, payload: Buffer, isMasked: boolean): Buffer {
  const { length } = payload;
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const head = Buffer.alloc(2 + size);
  head[0] = FINAL | opcode;
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

const EMPTY: Buffer = Buffer.alloc(0);

/** Writes an event as a message of text. */
export function printEvent(event: object, isMasked: boolean): Buffer {
  return printMessage({ payload: Buffer.from(JSON.stringify(event)), isBinary: false }, isMasked);
}
