import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { connect } from "node:tls";
import { test } from "node:test";
import fc from "fast-check";
import { readClientHello } from "../../../../../src/proxy/listeners/preamble/client-hello.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

/** What a real client sends first. */
async function helloFor(servername: string | undefined): Promise<Buffer> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, "connection");
  const client = connect({ host: "127.0.0.1", port, ...(servername === undefined ? {} : { servername }) });
  client.on("error", () => undefined);
  const [socket] = (await accepted) as [NodeJS.ReadableStream];
  const [bytes] = (await once(socket, "data")) as [Buffer];
  client.destroy();
  server.close();
  return bytes;
}

/** The same handshake message in records of at most `size` bytes. */
function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(records);
}

test("the server name is read in lower case, whole or in many records, and none is an empty one", async () => {
  const hello = await helloFor("Shop.Example.Test");
  assert.deepEqual(readClientHello(hello), { serverName: "shop.example.test" });
  for (const size of [1, 3, 100])
    assert.deepEqual(readClientHello(inRecords(hello, size)), { serverName: "shop.example.test" });
  assert.deepEqual(readClientHello(await helloFor(undefined)), { serverName: "" });
});

test("every beginning of a message is incomplete, and other protocols are invalid at once", async () => {
  const hello = await helloFor("a.test");
  for (let end = 0; end < hello.length; end++) assert.equal(readClientHello(hello.subarray(0, end)), "incomplete");
  assert.equal(readClientHello(Buffer.from("GET / HTTP/1.1\r\n\r\n")), "invalid");
  assert.equal(readClientHello(Buffer.from([22, 3, 1, 0xff, 0xff])), "invalid");
  assert.equal(readClientHello(Buffer.from([22, 3, 1, 0, 0, 0])), "invalid");
});

test("lengths that lie and random bytes never throw", async () => {
  const hello = await helloFor("a.test");
  assertProperty(
    fc.property(fc.nat(hello.length - 1), fc.nat(255), (at, byte) => {
      const broken = Buffer.from(hello);
      broken[at] = byte;
      readClientHello(broken);
    }),
    { numRuns: 2000 },
  );
  assertProperty(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void readClientHello(Buffer.from(bytes))));
});
