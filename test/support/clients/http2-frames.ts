/**
 * An HTTP/2 client that sends exactly the given frames (RFC 9113 §4.1), valid or not, and returns the frames that it
 * receives.
 */
import { connect, type Socket } from "node:net";

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const END_STREAM = 1;
export const ACK = 1;
export const END_HEADERS = 4;

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/** HEADER_TABLE_SIZE 0: fields of an answer cannot refer to earlier ones, so each can be read by itself. */
const NO_TABLE = Buffer.from([0, 1, 0, 0, 0, 0]);

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export function frame(type: number, flags: number, stream: number, payload: Buffer | string = ""): Buffer {
  const body = typeof payload === "string" ? Buffer.from(payload, "latin1") : payload;
  const head = Buffer.alloc(9);
  head.writeUIntBE(body.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
}

/**
 * Encodes a field block of literals without indexing and without Huffman coding (RFC 7541 §6.2.2).
 * @param raw alternating names and values
 */
function block(raw: readonly string[]): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < raw.length; at += 2)
    parts.push(Buffer.from([0]), text(raw[at] as string), text(raw[at + 1] as string));
  return Buffer.concat(parts);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

/** Encodes a whole field block, in as many frames as it needs. */
export function headers(stream: number, raw: readonly string[], flags: number = END_STREAM): Buffer {
  const bytes = block(raw);
  const parts: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += 16_384) {
    const last = at + 16_384 >= bytes.length ? END_HEADERS : 0;
    const piece = bytes.subarray(at, at + 16_384);
    parts.push(frame(at === 0 ? FRAME.headers : FRAME.continuation, (at === 0 ? flags : 0) | last, stream, piece));
  }
  return Buffer.concat(parts);
}

export interface FrameClient {
  readonly socket: Socket;
  readonly frames: readonly Frame[];
  send(...bytes: readonly Buffer[]): void;
  /**
   * Resolves with the first frame that passes, including earlier ones; undefined when the connection ends without one.
   */
  until(passes: (frame: Frame) => boolean): Promise<Frame | undefined>;
  readonly closed: Promise<void>;
}

/** @param settings payload of the SETTINGS frame after the preface */
export function frameClient(port: number, settings: Buffer = NO_TABLE): FrameClient {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  socket.on("error", () => socket.destroy());
  const closed = new Promise<void>((resolve) => void socket.once("close", () => resolve()));
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3);
      const [type = 0, flags = 0] = rest.subarray(3, 5);
      const read = { type, flags, stream: rest.readUInt32BE(5) & 0x7fff_ffff, payload: rest.subarray(9, end) };
      rest = rest.subarray(end);
      if (type === FRAME.settings && (flags & ACK) === 0) socket.write(frame(FRAME.settings, ACK, 0));
      frames.push(read);
    }
    socket.emit("frames");
  });
  socket.write(PREFACE, "latin1");
  socket.write(frame(FRAME.settings, 0, 0, settings));
  return {
    socket,
    frames,
    closed,
    send: (...bytes) => void socket.write(Buffer.concat(bytes)),
    until: (passes) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = frames.find(passes);
          if (found === undefined) return;
          socket.off("frames", look);
          resolve(found);
        };
        socket.on("frames", look);
        void closed.then(() => resolve(frames.find(passes)));
        look();
      }),
  };
}

const INDEXED = [200, 204, 206, 304, 400, 404, 500];

/** Returns the status of a HEADERS frame, whose first field is `:status` (RFC 9113 §8.3). */
export function statusOf({ payload }: Frame): number {
  // A table of size 0 makes the encoder send a size update first (RFC 7541 §6.3).
  const at = ((payload[0] ?? 0) & 0xe0) === 0x20 ? 1 : 0;
  const first = payload[at] ?? 0;
  if ((first & 0x80) !== 0) return INDEXED[(first & 0x7f) - 8] ?? 0;
  const length = payload[at + 1] ?? 0;
  const value = payload.subarray(at + 2, at + 2 + (length & 0x7f));
  return (length & 0x80) === 0 ? Number(value.toString("latin1")) : huffmanDigits(value);
}

/** Decodes digits: five bits from 0 to 2 and six bits, from 011001, for the others (RFC 7541 Appendix B). */
function huffmanDigits(bytes: Buffer): number {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  let digits = "";
  for (let at = 0; digits.length < 3 && at < bits.length;) {
    const five = Number.parseInt(bits.slice(at, at + 5), 2);
    digits += five < 3 ? five : Number.parseInt(bits.slice(at, at + 6), 2) - 0b011001 + 3;
    at += five < 3 ? 5 : 6;
  }
  return Number(digits);
}

/** Returns the error code of a RST_STREAM or GOAWAY frame. */
export function codeOf({ type, payload }: Frame): number {
  return payload.readUInt32BE(type === FRAME.goaway ? 4 : 0);
}
