/** A guarded session between a client and a provider: order, ends, pressure, and the direction that no guard looks at. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { duplexPair, type Duplex } from "node:stream";
import { test, type TestContext } from "node:test";
import fc from "fast-check";
import { HeaderList } from "../../../../../src/lib/header-list.ts";
import { CalloutError } from "../../../../../src/proxy/callouts/callout.ts";
import type { PromptGuards } from "../../../../../src/proxy/llm/guards/run.ts";
import { guardSession } from "../../../../../src/proxy/llm/guards/session.ts";
import { RelayedFrames } from "../../../../../src/proxy/llm/stream/relayed-frames.ts";
import { printEvent, printMessage, SessionReader } from "../../../../../src/proxy/llm/stream/web-socket.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";
import { compileGuards, slowService } from "../../../../support/gateway/compiled-guards.ts";
import { TestExchange } from "../../../../support/gateway/llm-harness.ts";

const SECRET = "123-45-6789";
const PASS = { action: {} };
const REJECTION = { action: { body: "stop", status_code: 403 } };

interface Event {
  readonly type: string;
  readonly [member: string]: unknown;
}

function say(text: string): Event {
  return { type: "conversation.item.create", item: { role: "user", content: [{ type: "input_text", text }] } };
}

function delta(text: string): Event {
  return { type: "response.output_text.delta", response_id: "r1", item_id: "i1", delta: text };
}

/** Reads the events that arrive at one side. */
class Listener {
  readonly events: Event[] = [];
  readonly #reader: SessionReader;
  #wake: () => void = () => undefined;

  /** @param isServer whether frames are those of a client */
  constructor(stream: Duplex, isServer: boolean) {
    this.#reader = new SessionReader(isServer, 16 * 1024 * 1024);
    stream.on("data", (chunk: Buffer) => {
      for (const frame of this.#reader.read(chunk))
        if (frame.kind === "message") this.events.push(JSON.parse(String(frame.payload)) as Event);
      this.#wake();
    });
    stream.on("close", () => this.#wake());
  }

  async until(isEnough: (types: string[]) => boolean): Promise<string[]> {
    for (;;) {
      const types = this.events.map(({ type }) => type);
      if (isEnough(types)) return types;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

interface Session {
  /** The connection as the gateway hands it to the client. */
  readonly client: Duplex;
  readonly provider: Duplex;
}

function openSession(guards: PromptGuards, [inner, provider] = duplexPair()): Session {
  const exchange = new TestExchange(Buffer.alloc(0));
  inner.pause();
  const context = { guards, exchange, headers: new HeaderList(), isRealtime: true, onMessage: () => undefined };
  return { client: guardSession(inner, context), provider };
}

/** Two sockets that are connected. */
async function socketPair(context: TestContext): Promise<[Socket, Socket]> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // a TCP server has one
  const near = connect({ port, host: "127.0.0.1" });
  const [[far]] = (await Promise.all([once(server, "connection"), once(near, "connect")])) as [[Socket], unknown];
  context.after(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return [near, far];
}

test("messages of the client keep their order while a service is asked", async () => {
  const { callout, finish, asked } = slowService();
  const { client, provider } = openSession(compileGuards({ request: { callout } }));
  const received = new Listener(provider, true);
  const told = new Listener(client, false);
  client.write(
    Buffer.concat(
      [say("one"), { type: "input_audio_buffer.commit" }, say("two")].map((event) => printEvent(event, true)),
    ),
  );
  client.write(printEvent({ type: "response.create" }, true));
  await new Promise(setImmediate);
  assert.deepEqual([received.events, asked.length], [[], 1], "nothing overtakes the message that is being checked");
  await finish(PASS);
  await received.until((types) => types.length === 2);
  assert.equal(asked.length, 2);
  await finish(REJECTION);
  await told.until((types) => types.includes("error"));
  const types = await received.until((all) => all.includes("response.create"));
  assert.deepEqual(types, ["conversation.item.create", "input_audio_buffer.commit", "response.create"]);
});

for (const [name, outcome] of [
  ["passes", PASS],
  ["rejects", REJECTION],
  ["fails", new CalloutError("down")],
] as const)
  test(`the end of the provider does not overtake a check that ${name}`, async (context) => {
    const { callout, finish, asked } = slowService();
    const { client, provider } = openSession(compileGuards({ response: { callout } }), await socketPair(context));
    const told = new Listener(client, false);
    const finished = once(provider, "finish");
    provider.end(
      Buffer.concat(
        [delta("unchecked"), { type: "response.output_text.done", response_id: "r1" }].map((event) =>
          printEvent(event, false),
        ),
      ),
    );
    // The socket reports the end although it is paused.
    while (asked.length === 0) await new Promise(setImmediate);
    await finished;
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    assert.deepEqual(told.events, [], "nothing leaves before the verdict");
    const ended = once(client, "end");
    await finish(outcome);
    await ended;
    const passed = ["response.output_text.delta", "response.output_text.done"];
    assert.deepEqual(await told.until(() => true), outcome === PASS ? passed : ["error"]);
  });

test("a side that leaves during a check ends the other one", async (context) => {
  for (const phase of ["request", "response"] as const)
    for (const leaver of ["client", "provider"] as const) {
      const { callout, finish, asked } = slowService();
      const [near, provider] = await socketPair(context);
      const { client } = openSession(compileGuards({ [phase]: { callout } }), [near, provider]);
      provider.resume();
      for (const side of [client, provider]) side.on("error", () => undefined);
      const told = new Listener(client, false);
      if (phase === "request") client.write(printEvent(say("hi"), true));
      else provider.write(printEvent(delta("x".repeat(2_000)), false));
      while (asked.length === 0) await new Promise(setImmediate);
      const stayer = leaver === "client" ? provider : client;
      const closed = new Promise((resolve) => stayer.once("close", resolve));
      if (leaver === "client") client.destroy();
      else provider.resetAndDestroy();
      await closed;
      await finish(PASS);
      assert.deepEqual(told.events, [], `${phase}: nothing is said any more`);
      assert.ok(client.destroyed, phase);
    }
});

/** Bytes that the standard forbids, from either side, with the codes of the close frames. */
const VIOLATIONS: readonly (readonly [from: "client" | "provider", bytes: number[], codes: readonly number[]])[] = [
  ["client", [0x81, 0x01, 0x61], [1002, 1001]],
  ["client", [0x81, 0x81, 0, 0, 0, 0, 0xff], [1007, 1001]],
  ["provider", [0xf1, 0x01, 0x61], [1011, 1002]],
  ["provider", [0x81, 0x01, 0xff], [1011, 1007]],
];

for (const [from, bytes, codes] of VIOLATIONS)
  test(`a ${from} that breaks the protocol is told so, and the other side gets an end: ${codes.join()}`, async (context) => {
    const guards = compileGuards({ request: {}, response: {} });
    const [near, provider] = await socketPair(context);
    const { client } = openSession(guards, [near, provider]);
    const sides = [client, provider].map(async (side) => {
      const chunks: Buffer[] = [];
      for await (const chunk of side) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    });
    const held = printEvent(delta("unchecked"), false);
    if (from === "client") client.write(Buffer.from(bytes));
    else provider.write(Buffer.concat([held, Buffer.from(bytes), held]));
    const [toClient = Buffer.alloc(0), toProvider = Buffer.alloc(0)] = await Promise.all(sides);
    assert.equal(toClient[0], 0x88);
    assert.equal(toProvider[0], 0x88);
    assert.deepEqual([toClient.readUInt16BE(2), unmasked(toProvider).readUInt16BE()], codes);
    assert.ok(toClient.length === 2 + (toClient[1] ?? 0), "nothing but the close frame");
  });

/** Returns the payload of a short frame. */
function unmasked(frame: Buffer): Buffer {
  const mask = frame.subarray(2, 6);
  return Buffer.from(frame.subarray(6).map((byte, at) => byte ^ (mask[at % 4] ?? 0)));
}

test("a client that does not read is not read either", async () => {
  const { client, provider } = openSession(compileGuards({ request: {} }));
  provider.resume();
  const refused = printMessage({ payload: Buffer.from("no JSON"), isBinary: false }, true);
  const flood = Buffer.concat(Array.from({ length: 1_000 }, () => refused));
  let written = 0;
  while (client.write(flood)) written++;
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  assert.ok(client.readableLength < 128 * 1024, `${client.readableLength} bytes wait for the client`);
  // It goes on when it reads: each message has its answer.
  const told = new Listener(client, false);
  const types = await told.until(({ length }) => length === (written + 1) * 1_000);
  assert.deepEqual(new Set(types), new Set(["error"]));
});

test("a direction without guards is relayed byte for byte, whatever the size", async () => {
  const long = "x".repeat(3 * 1024 * 1024);
  const bytes = Buffer.concat([
    printMessage({ payload: Buffer.from(`{"b":1, "b":2, "pad":"${long}"}`), isBinary: false }, false),
    printMessage({ payload: Buffer.from("no JSON"), isBinary: true }, false),
  ]);
  for (const phase of ["request", "response"] as const) {
    const { client, provider } = openSession(compileGuards({ [phase]: {} }));
    const [from, to] = phase === "request" ? [provider, client] : [client, provider];
    const received: Buffer[] = [];
    to.on("data", (chunk: Buffer) => received.push(chunk));
    from.end(bytes);
    await once(to, "end");
    assert.ok(Buffer.concat(received).equals(bytes), phase);
  }
});

test("a message of the gateway never falls into another one", () => {
  const ping = printMessage({ payload: Buffer.from("ping"), isBinary: false }, true);
  ping[0] = 0x89;
  const first = printMessage({ payload: Buffer.from("on"), isBinary: false }, true);
  first[0] = 0x01;
  const last = printMessage({ payload: Buffer.from("e".repeat(200)), isBinary: false }, true);
  last[0] = 0x80;
  const stream = Buffer.concat([
    first,
    ping,
    last,
    printMessage({ payload: Buffer.from("two"), isBinary: false }, true),
    printMessage({ payload: Buffer.alloc(0), isBinary: false }, true),
    printMessage({ payload: Buffer.from("z".repeat(70_000)), isBinary: true }, true),
    ping,
  ]);
  const ours = printMessage({ payload: Buffer.from("ours"), isBinary: false }, true);
  assertProperty(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 12 }), (places) => {
      const written: Buffer[] = [];
      const relay = new RelayedFrames((bytes) => written.push(Buffer.from(bytes)));
      const ends = [...places.sort((a, b) => a - b), stream.length];
      for (const [at, end] of ends.entries()) {
        relay.push(stream.subarray(at === 0 ? 0 : ends[at - 1], end));
        void relay.insert(ours);
      }
      // A reader throws when a message begins inside another one.
      const reader = new SessionReader(true, 1_000);
      const texts = reader
        .read(Buffer.concat(written))
        .filter((frame) => frame.kind === "message")
        .map(({ payload }) => payload?.toString() ?? "long");
      assert.equal(texts.filter((text) => text === "ours").length, ends.length);
      assert.deepEqual(
        texts.filter((text) => text !== "ours"),
        [`on${"e".repeat(200)}`, "two", "", "long"],
      );
    }),
  );
});

test("what waits for the end of a message is let go when the side is gone", async () => {
  const written: Buffer[] = [];
  const relay = new RelayedFrames((bytes) => written.push(bytes));
  relay.push(printMessage({ payload: Buffer.from("half"), isBinary: false }, false).subarray(0, 3));
  const waiting = relay.insert(Buffer.from("ours"));
  relay.end();
  await waiting;
  await relay.insert(Buffer.from("later"));
  assert.equal(Buffer.concat(written).length, 3);
});

test("nothing follows the frame that closes a session", async () => {
  const { client, provider } = openSession(compileGuards({ response: {} }));
  const received: Buffer[] = [];
  client.on("data", (chunk: Buffer) => received.push(chunk));
  const close = Buffer.from([0x88, 0]);
  const events = Buffer.concat([printEvent(delta("held"), false), close, printEvent({ type: "late" }, false)]);
  provider.end(events);
  await once(client, "end");
  assert.deepEqual(Buffer.concat(received), Buffer.concat([printEvent(delta("held"), false), close]));
});

const NOT_UTF8 = "what is not UTF-8";
const HOSTILE: Readonly<Record<string, Buffer>> = {
  [NOT_UTF8]: Buffer.from('{"type":"session.update","session":{"instructions":"\xff"}}', "latin1"),
  "what is not JSON": Buffer.from("no JSON"),
  "what is no object": Buffer.from(`["${SECRET}"]`),
  "what nests too deep": Buffer.from(`${'{"a":'.repeat(300)}1${"}".repeat(300)}`),
  "what is too long": Buffer.from(`{"a":"${"x".repeat(2 * 1024 * 1024)}"}`),
  "what is empty": Buffer.alloc(0),
};

for (const [name, payload] of Object.entries(HOSTILE))
  test(`${name} is refused in both directions, as text and as bytes, and the session goes on`, async () => {
    // Text that is not UTF-8 ends a session.
    for (const isBinary of name === NOT_UTF8 ? [true] : [false, true]) {
      const { client, provider } = openSession(compileGuards({ request: {}, response: {} }));
      const [told, received] = [new Listener(client, false), new Listener(provider, true)];
      client.write(printMessage({ payload, isBinary }, true));
      client.write(printEvent({ type: "response.create" }, true));
      await received.until((types) => types.includes("response.create"));
      assert.deepEqual(received.events, [{ type: "response.create" }]);
      provider.write(printMessage({ payload, isBinary }, false));
      provider.write(printEvent({ type: "response.done" }, false));
      assert.deepEqual(await told.until((types) => types.includes("response.done")), [
        "error",
        "error",
        "response.done",
      ]);
    }
  });
