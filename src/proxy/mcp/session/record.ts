/**
 * The compact form of a session, which its sealed id holds: whatever replica or thread gets the id makes the same
 * session of it. `sessions.ts` seals it.
 */
import { hash } from "node:crypto";
import type { ClientInfo } from "./session.ts";

/** What a target knows of a session. */
export interface TargetRecord {
  /** Session id of the target; undefined when it issued none. */
  readonly id: string | undefined;
  /** "address:port" of the endpoint that the session stays on. */
  readonly endpoint: string | undefined;
}

export interface SessionRecord {
  readonly client: ClientInfo;
  /** Digest of who opened the session, as hexadecimal digits; undefined when it is bound to nobody. */
  readonly subject: string | undefined;
  /** Digest of the backend's key. */
  readonly backend: string;
  /** Unix seconds. */
  readonly createdAtS: number;
  /** By digest of the target's name. */
  readonly targets: ReadonlyMap<string, TargetRecord>;
}

/** First byte of every record; another layout gets another number. */
const LAYOUT = 1;
const SUBJECT_BYTES = 16;
const BACKEND_BYTES = 8;
const TARGET_BYTES = 4;

export function digestBackend(key: string): string {
  return digest(key, BACKEND_BYTES);
}

export function digestTarget(name: string): string {
  return digest(name, TARGET_BYTES);
}

export function digestSubject(subject: string): string {
  return digest(subject, SUBJECT_BYTES);
}

function digest(text: string, bytes: number): string {
  return hash("sha256", text).slice(0, bytes * 2);
}

export function encodeRecord({ client, subject, backend, createdAtS, targets }: SessionRecord): Buffer {
  const parts = [
    Buffer.from([LAYOUT]),
    textBytes(client.version),
    textBytes(client.capabilities),
    textBytes(client.name),
    textBytes(client.clientVersion),
    numberBytes(subject === undefined ? 0 : 1),
    Buffer.from(subject ?? "", "hex"),
    Buffer.from(backend, "hex"),
    numberBytes(createdAtS),
    numberBytes(targets.size),
  ];
  for (const [name, { id, endpoint }] of targets)
    parts.push(Buffer.from(name, "hex"), textBytes(id ?? ""), textBytes(endpoint ?? ""));
  return Buffer.concat(parts);
}

/** @returns undefined for bytes of another layout */
export function decodeRecord(bytes: Buffer): SessionRecord | undefined {
  const reader = new RecordReader(bytes);
  if (reader.byte() !== LAYOUT) return undefined;
  const client = {
    version: reader.text(),
    capabilities: reader.text(),
    name: reader.text(),
    clientVersion: reader.text(),
  };
  const subject = reader.number() === 0 ? undefined : reader.digest(SUBJECT_BYTES);
  const backend = reader.digest(BACKEND_BYTES);
  const createdAtS = reader.number();
  const targets = new Map<string, TargetRecord>();
  for (let left = reader.number(); left > 0; left--) {
    const name = reader.digest(TARGET_BYTES);
    targets.set(name, { id: reader.text() || undefined, endpoint: reader.text() || undefined });
  }
  return { client, subject, backend, createdAtS, targets };
}

/** Encodes a number in groups of seven bits, the low ones first (LEB128). */
function numberBytes(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Buffer.from([...bytes, rest]);
}

function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([numberBytes(bytes.length), bytes]);
}

/** Reads what `encodeRecord` wrote. The seal vouches for the bytes, so nothing in them is checked. */
class RecordReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.#bytes[this.#at++] ?? 0;
  }

  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }

  digest(length: number): string {
    return this.#take(length).toString("hex");
  }

  text(): string {
    return this.#take(this.number()).toString("utf8");
  }

  #take(length: number): Buffer {
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}
