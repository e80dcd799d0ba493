import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import type { BodySink, BodyStream } from "../../../../src/proxy/exchange/body.ts";
import { holdStart } from "../../../../src/proxy/exchange/buffering.ts";

/** A body whose other end the test plays. */
class Source implements BodyStream {
  sink: BodySink | undefined;
  resumed = 0;
  destroyed = false;
  readonly givesChunks: boolean;

  constructor(givesChunks = false) {
    this.givesChunks = givesChunks;
  }

  read(sink: BodySink): void {
    this.sink = sink;
  }

  resume(): void {
    this.resumed++;
  }

  destroy(): void {
    this.destroyed = true;
  }

  send(text: string): boolean | undefined {
    return this.sink?.data(Buffer.from(text));
  }
}

/** What a reader hears, as text. @param room number of chunks that it takes at once */
function listen(body: BodyStream, room = Infinity): string[] {
  const heard: string[] = [];
  body.read({
    data: (chunk) => heard.push(chunk.toString()) % room !== 0,
    end: (trailers) => void heard.push(`end ${trailers.join(" ")}`.trim()),
    error: ({ message }) => void heard.push(`error ${message}`),
  });
  return heard;
}

function asStream(body: unknown): BodyStream {
  assert.ok(body !== null && typeof body === "object" && "read" in body);
  // It has the one method that tells a stream from a Buffer.
  return body as BodyStream;
}

test("a body that fits is all of it", async () => {
  const source = new Source();
  const held = holdStart(source, 6);
  assert.equal(source.send("abc"), true);
  assert.equal(source.send("def"), true);
  source.sink?.end([]);
  assert.deepEqual(await held, { complete: true, start: Buffer.from("abcdef"), body: Buffer.from("abcdef") });
});

/** Returns the lengths that the chunks of a body have when it was held. */
async function lengthsAfter(source: Source, chunks: readonly Buffer[]): Promise<number[]> {
  const sent = hash("sha256", Buffer.concat(chunks));
  const held = holdStart(source, 100_000);
  for (const chunk of chunks) source.sink?.data(chunk);
  source.sink?.end([]);
  assert.equal(hash("sha256", (await held).start), sent);
  return chunks.map(({ length }) => length);
}

test("large chunks that are joined are freed where no one else has them, but for views of other memory", async () => {
  const chunks = (): Buffer[] => [
    Buffer.alloc(5_000, "own"),
    Buffer.alloc(100, "small"),
    Buffer.alloc(9_000, "view").subarray(0, 8_000),
  ];
  assert.deepEqual(await lengthsAfter(new Source(true), chunks()), [0, 100, 8_000]);
  assert.deepEqual(await lengthsAfter(new Source(), chunks()), [5_000, 100, 8_000]);
  assert.deepEqual(await lengthsAfter(new Source(true), chunks().slice(0, 1)), [5_000]);
});

test("chunks are kept where the body goes on as a stream", async () => {
  const chunk = Buffer.alloc(5_000, "own");
  const cases = [
    { limit: 5_002, trailers: [] },
    { limit: 5_003, trailers: ["grpc-status", "0"] },
  ];
  for (const { limit, trailers } of cases) {
    const source = new Source(true);
    const held = holdStart(source, limit);
    source.sink?.data(chunk);
    source.send("def");
    source.sink?.end(trailers);
    const heard = listen(asStream((await held).body));
    assert.deepEqual(heard.slice(0, 2), [chunk.toString(), "def"]);
  }
});

test("trailers of a body that fits come when it is read", async () => {
  const source = new Source();
  const held = holdStart(source, 6);
  source.send("abc");
  source.sink?.end(["grpc-status", "0"]);
  const { complete, start, body } = await held;
  assert.deepEqual([complete, String(start)], [true, "abc"]);
  assert.deepEqual(listen(asStream(body)), ["abc", "end grpc-status 0"]);
});

test("a longer body pauses its source and goes on from its first byte", async () => {
  const source = new Source();
  const held = holdStart(source, 4);
  assert.equal(source.send("abc"), true);
  assert.equal(source.send("def"), false);
  const { complete, start, body } = await held;
  assert.deepEqual([complete, String(start)], [false, "abcdef"]);
  const heard = listen(asStream(body));
  assert.equal(source.resumed, 1);
  source.send("ghi");
  source.sink?.end([]);
  assert.deepEqual(heard, ["abc", "def", "ghi", "end"]);
});

test("a reader without room is not given the next chunk before it asks", async () => {
  const source = new Source();
  const held = holdStart(source, 4);
  for (const text of ["ab", "cd", "ef"]) source.send(text);
  const body = asStream((await held).body);
  const heard = listen(body, 2);
  assert.deepEqual([heard, source.resumed], [["ab", "cd"], 0]);
  // A source may have been about to send when it was paused.
  assert.equal(source.send("gh"), false);
  source.sink?.end([]);
  body.resume();
  assert.deepEqual(heard, ["ab", "cd", "ef", "gh", "end"]);
});

test("a reader that destroys the body in the middle of it hears no more", async () => {
  const source = new Source();
  const held = holdStart(source, 3);
  source.send("ab");
  source.send("cd");
  const body = asStream((await held).body);
  const heard: string[] = [];
  const data = (chunk: Buffer): boolean => {
    heard.push(String(chunk));
    body.destroy();
    return true;
  };
  body.read({ data, end: () => void heard.push("end"), error: () => void heard.push("error") });
  assert.deepEqual([heard, source.destroyed, source.resumed], [["ab"], true, 0]);
});

test("a source that breaks off rejects while it is held, and later breaks its reader off", async () => {
  const early = new Source();
  const held = holdStart(early, 4);
  early.sink?.error(new Error("cut"));
  await assert.rejects(held, /cut/);
  const late = new Source();
  const start = holdStart(late, 1);
  late.send("abc");
  const { body } = await start;
  late.sink?.error(new Error("cut"));
  assert.deepEqual(listen(asStream(body)), ["abc", "error cut"]);
  const paused = new Source();
  const two = holdStart(paused, 3);
  paused.send("ab");
  paused.send("cd");
  const rest = asStream((await two).body);
  const heard = listen(rest, 1);
  paused.sink?.error(new Error("cut"));
  rest.resume();
  assert.deepEqual(heard, ["ab", "error cut"]);
});

test("an exchange that ends gives up the waiting and its source", async () => {
  const source = new Source();
  const held = holdStart(source, 4, { onAbort: (target) => void target.abort(new Error("gone")) });
  await assert.rejects(held, /gone/);
  assert.ok(source.destroyed);
  assert.equal(source.sink, undefined);
});
