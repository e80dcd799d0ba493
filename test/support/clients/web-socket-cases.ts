/**
 * Conversations in WebSocket frames (RFC 6455), in the order of the well-known Autobahn test suite: framing, pings,
 * reserved bits, opcodes, fragments, UTF-8, closing, limits. A client sends them; a WebSocket server of another
 * implementation decides on the expected answers.
 */

export interface Conversation {
  readonly name: string;
  readonly bytes: Buffer;
  /** Size of the pieces in which the bytes are sent; without it, all at once. */
  readonly piece?: number;
}

const CONTINUATION = 0;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;
const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

interface FrameOptions {
  readonly fin?: boolean;
  /** The three reserved bits, as a number. */
  readonly reserved?: number;
  readonly masked?: boolean;
  /** Length to claim in place of the payload's. */
  readonly claimed?: number;
}

function frame(opcode: number, payload: Buffer | string = "", options: FrameOptions = {}): Buffer {
  const { fin = true, reserved = 0, masked = true } = options;
  const body = Buffer.from(payload);
  const length = options.claimed ?? body.length;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  head[1] = (masked ? 0x80 : 0) | (head.length === 2 ? length : head.length === 4 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  if (!masked) return Buffer.concat([head, body]);
  for (let at = 0; at < body.length; at++) body[at] = (body[at] ?? 0) ^ (MASK[at % 4] ?? 0);
  return Buffer.concat([head, MASK, body]);
}

function close(code?: number, reason = ""): Buffer {
  if (code === undefined) return frame(CLOSE);
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return frame(CLOSE, Buffer.concat([payload, Buffer.from(reason)]));
}

const END = close(1000, "done");
const more = { fin: false };
/** Returns a conversation that ends with a proper close. */
const says = (name: string, ...frames: readonly Buffer[]): Conversation => ({
  name,
  bytes: Buffer.concat([...frames, END]),
});
const inPieces = (name: string, piece: number, ...frames: readonly Buffer[]): Conversation => ({
  ...says(name, ...frames),
  piece,
});
/** Returns a conversation that ends as the frames do. */
const ends = (name: string, ...frames: readonly Buffer[]): Conversation => ({ name, bytes: Buffer.concat(frames) });

const SIZES = [0, 1, 125, 126, 127, 128, 65_535, 65_536, 70_000];
const LETTERS = "κόσμε 😈 \u0000\u007f";
const split = (text: Buffer, at: number): Buffer[] => [
  frame(TEXT, text.subarray(0, at), more),
  frame(CONTINUATION, text.subarray(at)),
];

const FRAMING: readonly Conversation[] = [
  ...SIZES.map((size) => says(`text of ${size} bytes`, frame(TEXT, "*".repeat(size)))),
  ...SIZES.map((size) => says(`binary of ${size} bytes`, frame(BINARY, Buffer.alloc(size, 0xfe)))),
  inPieces("text in pieces of 997 bytes", 997, frame(TEXT, "*".repeat(65_536))),
  inPieces("binary byte by byte", 1, frame(BINARY, Buffer.alloc(300, 0xfe))),
  says("many messages at once", ...Array.from({ length: 500 }, (_, at) => frame(TEXT, `message ${at}`))),
];

const PINGS: readonly Conversation[] = [
  says("a ping without payload", frame(PING)),
  says("a ping with payload", frame(PING, "Hello, world!")),
  says("a ping of bytes that are no text", frame(PING, Buffer.from([0, 0xff, 0xfe, 0xfd, 0]))),
  says("a ping of 125 bytes", frame(PING, Buffer.alloc(125, 0xfe))),
  ends("a ping of 126 bytes", frame(PING, Buffer.alloc(126, 0xfe))),
  inPieces("a ping byte by byte", 1, frame(PING, Buffer.alloc(125, 0xfe))),
  says("a pong that nobody asked for", frame(PONG)),
  says("a pong with payload, and a ping", frame(PONG, "unasked"), frame(PING, "asked")),
  says("ten pings", ...Array.from({ length: 10 }, (_, at) => frame(PING, `ping ${at}`))),
  inPieces("ten pings byte by byte", 1, ...Array.from({ length: 10 }, (_, at) => frame(PING, `ping ${at}`))),
];

const RESERVED: readonly Conversation[] = [
  ...[1, 2, 3, 4, 5, 6, 7].map((reserved) =>
    ends(`reserved bits ${reserved}`, frame(TEXT, "fine"), frame(TEXT, "not so", { reserved }), frame(PING)),
  ),
  ends("a reserved bit on a ping", frame(PING, "", { reserved: 4 })),
  ends("a reserved bit on a close", frame(CLOSE, "", { reserved: 2 })),
  ends("a frame without a mask", frame(TEXT, "bare", { masked: false })),
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) =>
    ends(`opcode ${opcode}`, frame(TEXT, "fine"), frame(opcode, "what"), frame(PING)),
  ),
];

const FRAGMENTS: readonly Conversation[] = [
  ends("a ping in fragments", frame(PING, "one", more), frame(CONTINUATION, "two")),
  ends("a pong in fragments", frame(PONG, "one", more), frame(CONTINUATION, "two")),
  ends("a close in fragments", frame(CLOSE, "", more), frame(CONTINUATION)),
  says("text in two fragments", frame(TEXT, "one", more), frame(CONTINUATION, "two")),
  says("binary in two fragments", frame(BINARY, "one", more), frame(CONTINUATION, "two")),
  inPieces("fragments byte by byte", 1, frame(TEXT, "one", more), frame(CONTINUATION, "two")),
  says("a ping between fragments", frame(TEXT, "one", more), frame(PING, "now"), frame(CONTINUATION, "two")),
  says("empty fragments", frame(TEXT, "", more), frame(CONTINUATION, "", more), frame(CONTINUATION)),
  says(
    "an empty fragment in the middle",
    frame(TEXT, "a", more),
    frame(CONTINUATION, "", more),
    frame(CONTINUATION, "b"),
  ),
  says(
    "a thousand fragments",
    frame(TEXT, "a", more),
    ...Array.from({ length: 998 }, () => frame(CONTINUATION, "b", more)),
    frame(CONTINUATION, "c"),
  ),
  ends("a continuation of nothing", frame(CONTINUATION, "what"), frame(TEXT, "next")),
  ends("an unfinished continuation of nothing", frame(CONTINUATION, "what", more), frame(TEXT, "next")),
  ends("a continuation behind a whole message", frame(TEXT, "whole"), frame(CONTINUATION, "what")),
  ends("a message inside another", frame(TEXT, "one", more), frame(TEXT, "two")),
];

const UTF8: readonly Conversation[] = [
  says("text of many scripts", frame(TEXT, LETTERS)),
  says("text of many scripts in fragments", ...split(Buffer.from(LETTERS), 6)),
  says("a letter split between fragments", ...split(Buffer.from("😈"), 2)),
  inPieces("many scripts byte by byte", 1, frame(TEXT, LETTERS)),
  ...Object.entries({
    "a lone continuation byte": [0x80],
    "a letter that breaks off": [0xf0, 0x9f, 0x98],
    "an overlong slash": [0xc0, 0xaf],
    "an overlong NUL": [0xe0, 0x80, 0x80],
    "a surrogate": [0xed, 0xa0, 0x80],
    "a letter beyond the last": [0xf4, 0x90, 0x80, 0x80],
    "a byte that no letter has": [0xfe],
  }).map(([name, bytes]) => ends(name, frame(TEXT, Buffer.from([0x61, ...bytes])), END)),
  ends("a surrogate between fragments", ...split(Buffer.from([0x61, 0xed, 0xa0, 0x80]), 2), END),
  says("bytes that are no text, as binary", frame(BINARY, Buffer.from([0xed, 0xa0, 0x80]))),
];

const CLOSING: readonly Conversation[] = [
  ends("a close without a code", close()),
  ends("a close with half a code", frame(CLOSE, "a")),
  ends("a close with the longest reason", close(1000, "*".repeat(123))),
  ends("a close with too long a reason", close(1000, "*".repeat(124))),
  ends("a close with a reason that is no text", frame(CLOSE, Buffer.from([3, 232, 0xed, 0xa0, 0x80]))),
  ends("two closes", END, END),
  ends("a message behind a close", END, frame(TEXT, "late")),
  ends("a ping behind a close", END, frame(PING)),
  ends("a close between fragments", frame(TEXT, "one", more), END, frame(CONTINUATION, "two")),
  ...[1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999].map((code) =>
    ends(`close ${code}`, close(code, "reason")),
  ),
  ...[0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map((code) =>
    ends(`close ${code}, which nobody may send`, close(code)),
  ),
  ends("no close at all", frame(TEXT, "and gone")),
];

const LIMITS: readonly Conversation[] = [
  says("text of 1 MiB", frame(TEXT, "*".repeat(1_048_576))),
  says("binary of 16 MiB", frame(BINARY, Buffer.alloc(16_777_216, 0xfe))),
  says(
    "1 MiB in fragments of 4 KiB",
    frame(BINARY, Buffer.alloc(4_096), more),
    ...Array.from({ length: 254 }, () => frame(CONTINUATION, Buffer.alloc(4_096), more)),
    frame(CONTINUATION, Buffer.alloc(4_096)),
  ),
  inPieces("1 MiB in pieces of 1,460 bytes", 1_460, frame(BINARY, Buffer.alloc(1_048_576, 7))),
  ends("a message larger than the server takes", frame(BINARY, "", { claimed: 33_554_432 })),
  ends("a length with its highest bit set", Buffer.from([0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5])),
];

export const CONVERSATIONS: readonly Conversation[] = [
  ...FRAMING,
  ...PINGS,
  ...RESERVED,
  ...FRAGMENTS,
  ...UTF8,
  ...CLOSING,
  ...LIMITS,
];
