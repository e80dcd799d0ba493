/**
 * Finds the text messages in the bytes of one side of a WebSocket (RFC 6455 §5), fed in any pieces. Fragments are put
 * together, control frames between them are skipped. A message that is too long, compressed or masked is skipped whole,
 * since it cannot be read here; the bytes themselves are relayed elsewhere and not changed.
 */
import { MessageBytes } from "./message-bytes.ts";

const TEXT = 1;
const CONTINUATION = 0;
const FIRST_CONTROL = 8;
const COMPRESSED = 0x40;
const FINAL = 0x80;
const MASKED = 0x80;
const MASK_BYTES = 4;

export class TextMessages {
  readonly #maxBytes: number;
  readonly #onText: (text: Buffer) => void;
  /** Bytes of a head that is not complete yet. */
  #head: number[] = [];
  /** Bytes of the payload that are still to come; undefined while a head is read. */
  #left: number | undefined;
  #opcode = 0;
  #isFinal = false;
  /** Payload of the message so far; undefined when it is not read. */
  #message: MessageBytes | undefined;

  /** @param maxBytes longest message that is read */
  constructor(maxBytes: number, onText: (text: Buffer) => void) {
    this.#maxBytes = maxBytes;
    this.#onText = onText;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length)
      if (this.#left === undefined) this.#readHead(chunk[at++] as number);
      else {
        const end = Math.min(chunk.length, at + this.#left);
        this.#readPayload(chunk.subarray(at, end));
        at = end;
      }
  }

  #readHead(byte: number): void {
    this.#head.push(byte);
    const [first = 0, second = 0] = this.#head;
    if (this.#head.length < 2) return;
    const short = second & 0x7f;
    const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
    const mask = (second & MASKED) === 0 ? 0 : MASK_BYTES;
    if (this.#head.length < 2 + lengthBytes + mask) return;
    const length = this.#head.slice(2, 2 + lengthBytes).reduce((sum, each) => sum * 256 + each, 0);
    this.#head = [];
    this.#begin(first, mask > 0);
    this.#left = lengthBytes === 0 ? short : length;
    if (this.#left === 0) this.#finishFrame();
  }

  #begin(first: number, isMasked: boolean): void {
    this.#opcode = first & 0x0f;
    if (this.#opcode >= FIRST_CONTROL) return;
    this.#isFinal = (first & FINAL) !== 0;
    if (this.#opcode === CONTINUATION && !isMasked) return;
    const isReadable = this.#opcode === TEXT && (first & COMPRESSED) === 0 && !isMasked;
    this.#message = isReadable ? new MessageBytes() : undefined;
  }

  #readPayload(part: Buffer): void {
    if (this.#opcode < FIRST_CONTROL && this.#message !== undefined)
      if (this.#message.length + part.length > this.#maxBytes) this.#message = undefined;
      else this.#message.add(part);
    this.#left = (this.#left ?? 0) - part.length;
    if (this.#left === 0) this.#finishFrame();
  }

  #finishFrame(): void {
    this.#left = undefined;
    if (this.#opcode >= FIRST_CONTROL || !this.#isFinal) return;
    const message = this.#message;
    this.#message = undefined;
    if (message !== undefined) this.#onText(message.bytes);
  }
}
