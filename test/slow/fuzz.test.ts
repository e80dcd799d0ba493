/**
 * Bytes that were once HTTP/1 or HTTP/2, changed at random: the gateway neither ends nor complains, its memory stays bounded, and
 * it serves. GWPROXY_SEED makes other changes, GWPROXY_FUZZ_ROUNDS makes more of them.
 */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { FRAMING } from "../feature/hostile/framing.ts";
import { HEADS } from "../feature/hostile/heads.ts";
import { HOSTILE_STREAMS } from "../feature/hostile/streams.ts";
import { startStressedGateway } from "../support/gateway/stressed-gateway.ts";
import { ACK, END_STREAM, FRAME, frame, headers } from "../support/clients/http2-frames.ts";
import { SEED, seededRandom } from "../support/fixtures/seed.ts";

const ROUNDS = Number(process.env["GWPROXY_FUZZ_ROUNDS"] ?? 100);
const AT_ONCE = 50;
const MAX_GROWTH_MB = 300;
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

function corpus(): readonly Buffer[] {
  const old = [...FRAMING, ...HEADS].map(({ bytes }) => Buffer.from(bytes, "latin1"));
  const streams = HOSTILE_STREAMS.filter(({ fields }) => fields.join("").length < 20_000).map(
    ({ fields, data = "", trailers }) =>
      Buffer.concat([
        PREFACE,
        frame(FRAME.settings, 0, 0),
        frame(FRAME.settings, ACK, 0),
        headers(1, fields, 0),
        frame(FRAME.data, 0, 1, data),
        headers(1, trailers ?? ["x-sum", "1"]),
        frame(FRAME.ping, 0, 0, Buffer.alloc(8)),
        frame(FRAME.windowUpdate, 0, 0, Buffer.from([0, 0, 1, 0])),
        headers(3, [":method", "GET", ":scheme", "http", ":authority", "a.test", ":path", "/"], END_STREAM),
        frame(FRAME.reset, 0, 3, Buffer.from([0, 0, 0, 8])),
        frame(FRAME.goaway, 0, 0, Buffer.alloc(8)),
      ]),
  );
  return [...old, ...streams];
}

/** A few changes: bits, bytes, pieces taken out, doubled, moved in from another text, or cut off. */
function mutated(texts: readonly Buffer[], next: () => number): Buffer {
  const pick = (limit: number): number => Math.floor(next() * limit);
  let bytes = Buffer.from(texts[pick(texts.length)] as Buffer);
  // A preface that is whole more often than not, or HTTP/2 would hardly be reached.
  const from = bytes.subarray(0, PREFACE.length).equals(PREFACE) && next() < 0.9 ? PREFACE.length : 0;
  for (let changes = 1 + pick(6); changes > 0; changes--) {
    const at = from + pick(Math.max(1, bytes.length - from));
    const end = Math.min(bytes.length, at + 1 + pick(40));
    const other = texts[pick(texts.length)] as Buffer;
    const start = pick(other.length);
    const pieces: readonly (readonly Buffer[])[] = [
      [bytes.subarray(0, at), Buffer.from([(bytes[at] ?? 0) ^ (1 << pick(8))]), bytes.subarray(at + 1)],
      [bytes.subarray(0, at), Buffer.from([pick(256)]), bytes.subarray(at + 1)],
      [bytes.subarray(0, at), bytes.subarray(end)],
      [bytes.subarray(0, end), bytes.subarray(at)],
      [bytes.subarray(0, at), other.subarray(start, start + pick(200)), bytes.subarray(at)],
      [bytes.subarray(0, at), Buffer.from("\r\n"), bytes.subarray(at)],
      [bytes.subarray(0, Math.max(from, at))],
    ];
    bytes = Buffer.concat(pieces[pick(pieces.length)] as readonly Buffer[]);
  }
  return bytes;
}

/** Resolves when the gateway has ended it, or has had time to. */
function attack(port: number, bytes: Buffer, next: () => number): Promise<void> {
  const patienceMs = 20 + next() * 100;
  const resets = next() < 0.3;
  const half = Math.floor(next() * bytes.length);
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const timer = setTimeout(() => (resets ? socket.resetAndDestroy() : socket.destroy()), patienceMs);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
    socket.resume();
    socket.write(bytes.subarray(0, half));
    setImmediate(() => void socket.write(bytes.subarray(half)));
  });
}

test(`whatever arrives, the gateway goes on (GWPROXY_SEED=${SEED})`, async (t) => {
  const gateway = await startStressedGateway(t);
  const next = seededRandom(SEED);
  const texts = corpus();
  const before = gateway.residentMb();
  const served = await gateway.serving(async () => {
    for (let round = 0; round < ROUNDS; round++)
      await Promise.all(Array.from({ length: AT_ONCE }, () => attack(gateway.port, mutated(texts, next), next)));
  });
  const grown = gateway.residentMb() - before;
  t.diagnostic(`${ROUNDS * AT_ONCE} connections: ${grown.toFixed(0)} MiB, ${served}`);
  assert.ok(grown < MAX_GROWTH_MB, `grew by ${grown.toFixed(0)} MiB`);
  gateway.isSound();
});
