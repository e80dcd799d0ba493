/** A body that several calls can send, each from its first byte. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Body, BodySink, BodyStream } from "../../../../src/proxy/exchange/body.ts";
import { RecordedBody } from "../../../../src/proxy/exchange/recorded-body.ts";

/** A client whose body a test sends by hand. */
class Client implements BodyStream {
  sink: BodySink | undefined;
  resumed = 0;
  destroyed = false;

  read(sink: BodySink): void {
    assert.equal(this.sink, undefined, "a body is read once");
    this.sink = sink;
  }

  resume(): void {
    this.resumed++;
  }

  destroy(): void {
    this.destroyed = true;
  }

  send(text: string): boolean {
    assert.ok(this.sink);
    return this.sink.data(Buffer.from(text));
  }

  end(...trailers: string[]): void {
    this.sink?.end(trailers);
  }
}

class Upstream implements BodySink {
  text = "";
  trailers: readonly string[] | undefined;
  failure: Error | undefined;
  hasRoom = true;
  readonly body: BodyStream;

  constructor(body: Body) {
    assert.ok(body !== null && !Buffer.isBuffer(body));
    this.body = body;
    body.read(this);
  }

  data(chunk: Buffer): boolean {
    this.text += chunk.toString();
    return this.hasRoom;
  }

  end(trailers: readonly string[]): void {
    this.trailers = trailers;
  }

  error(error: Error): void {
    this.failure = error;
  }
}

test("what was sent to a call that failed is sent again, and the rest as it comes", () => {
  const client = new Client();
  const record = new RecordedBody(client, 100);
  const first = new Upstream(record.begin());
  assert.equal(client.send("one "), true);
  assert.equal(first.text, "one ");
  first.body.destroy();
  assert.deepEqual([client.destroyed, client.send("two ")], [false, false]);
  const second = new Upstream(record.begin());
  assert.deepEqual([second.text, client.resumed], ["one two ", 1]);
  client.send("three");
  client.end("x-sum", "3");
  assert.deepEqual([second.text, second.trailers, record.isComplete], ["one two three", ["x-sum", "3"], true]);
  const third = new Upstream(record.begin());
  assert.deepEqual([third.text, third.trailers], ["one two three", ["x-sum", "3"]]);
});

test("a body that is there as a whole is a buffer for the next call", () => {
  const client = new Client();
  const record = new RecordedBody(client, 100);
  const first = new Upstream(record.begin());
  client.send("all of it");
  client.end();
  assert.deepEqual([first.text, first.trailers], ["all of it", []]);
  assert.deepEqual(record.begin(), Buffer.from("all of it"));
});

test("a slow reader holds up the client, and is handed what it missed", () => {
  const client = new Client();
  const record = new RecordedBody(client, 100);
  const upstream = new Upstream(record.begin());
  upstream.hasRoom = false;
  assert.equal(client.send("a"), false);
  assert.equal(client.send("b"), false);
  assert.equal(upstream.text, "a");
  upstream.body.resume();
  assert.deepEqual([upstream.text, client.resumed], ["ab", 0], "it is full again");
  upstream.hasRoom = true;
  upstream.body.resume();
  assert.equal(client.resumed, 1);
  client.end();
  assert.deepEqual(upstream.trailers, []);
});

test("a body beyond the limit streams on and cannot be repeated", () => {
  const client = new Client();
  const record = new RecordedBody(client, 10);
  const upstream = new Upstream(record.begin());
  client.send("0123456789");
  assert.equal(record.isRepeatable, true);
  client.send("x");
  client.send("y");
  client.end();
  assert.deepEqual([upstream.text, upstream.trailers, record.isRepeatable], ["0123456789xy", [], false]);
});

test("a client that breaks off is told to the call, and its body is not repeated", () => {
  const client = new Client();
  const record = new RecordedBody(client, 10);
  const upstream = new Upstream(record.begin());
  client.send("half");
  client.sink?.error(new Error("gone"));
  assert.deepEqual([upstream.failure?.message, record.isRepeatable, record.isComplete], ["gone", false, false]);
});

test("after the last call the client is let go of, at once or when that call gives up", () => {
  const unread = new Client();
  const record = new RecordedBody(unread, 10);
  new Upstream(record.begin()).body.destroy();
  record.close();
  assert.equal(unread.destroyed, true);
  const streaming = new Client();
  const other = new RecordedBody(streaming, 10);
  const last = new Upstream(other.begin());
  other.close();
  assert.equal(streaming.destroyed, false);
  last.body.destroy();
  assert.equal(streaming.destroyed, true);
});
