/** Writes frames of `application/vnd.amazon.eventstream` for the strict Bedrock server and for tests of the parser. */
import { crc32 } from "node:zlib";

type FrameHeaders = Readonly<Record<string, string>>;

export function encodeFrame(headers: FrameHeaders, payload: Buffer | string): Buffer {
  const fields = Buffer.concat(Object.entries(headers).map(([name, value]) => encodeHeader(name, value)));
  return frameOf(fields, Buffer.from(payload));
}

/** Wraps headers and payload with lengths and checksums. */
export function frameOf(headers: Buffer, payload: Buffer): Buffer {
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + headers.length + payload.length, 0);
  prelude.writeUInt32BE(headers.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const checked = Buffer.concat([prelude, headers, payload]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(checked));
  return Buffer.concat([checked, checksum]);
}

/** Writes an event as Bedrock does. */
export function encodeEvent(type: string, event: object): Buffer {
  return encodeFrame(
    { ":event-type": type, ":content-type": "application/json", ":message-type": "event" },
    JSON.stringify(event),
  );
}

export function encodeException(type: string, message: string): Buffer {
  return encodeFrame(
    { ":exception-type": type, ":content-type": "application/json", ":message-type": "exception" },
    JSON.stringify({ message }),
  );
}

function encodeHeader(name: string, value: string): Buffer {
  const text = Buffer.from(value);
  const head = Buffer.alloc(name.length + 4);
  head.writeUInt8(name.length, 0);
  head.write(name, 1, "latin1");
  head.writeUInt8(7, name.length + 1);
  head.writeUInt16BE(text.length, name.length + 2);
  return Buffer.concat([head, text]);
}
