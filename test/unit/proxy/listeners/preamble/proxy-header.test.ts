import assert from "node:assert/strict";
import { test } from "node:test";
import { readProxyHeader, type HeaderVersions } from "../../../../../src/proxy/listeners/preamble/proxy-header.ts";
import { proxyV2 } from "../../../../support/clients/proxy-header.ts";

const BOTH: HeaderVersions = { v1: true, v2: true };
const read = (text: string | Buffer, versions: HeaderVersions = BOTH) =>
  readProxyHeader(typeof text === "string" ? Buffer.from(text, "latin1") : text, versions);

test("a line of version 1 tells the client, and how long it is itself", () => {
  const line = "PROXY TCP4 192.0.2.7 192.0.2.8 4711 80\r\n";
  assert.deepEqual(read(`${line}GET /`), { bytes: line.length, client: { address: "192.0.2.7", port: 4711 } });
  const six = "PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n";
  assert.deepEqual(read(six), { bytes: six.length, client: { address: "2001:db8::1", port: 1 } });
  assert.deepEqual(read("PROXY UNKNOWN ffff 1\r\n"), { bytes: 22, client: undefined });
});

test("lines of version 1 that are not as they should be are invalid", () => {
  for (const line of [
    "PROXY TCP4 192.0.2.7 192.0.2.8 4711\r\n",
    "PROXY TCP4 192.0.2.7 192.0.2.8 4711 80 more\r\n",
    "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
    "PROXY TCP6 192.0.2.7 192.0.2.8 1 2\r\n",
    "PROXY TCP4 192.0.2.7 192.0.2.8 65536 80\r\n",
    "PROXY TCP4 192.0.2.7 192.0.2.8 01 80\r\n",
    "PROXY TCP4  192.0.2.7 192.0.2.8 1 80\r\n",
    "PROXY UDP4 192.0.2.7 192.0.2.8 1 80\r\n",
    `PROXY TCP4 ${"1".repeat(110)}`,
  ])
    assert.equal(read(line), "invalid", line);
});

test("a header of version 2 tells the client", () => {
  const four = proxyV2({ address: "192.0.2.7", port: 4711 });
  assert.deepEqual(read(Buffer.concat([four, Buffer.from("GET")])), {
    bytes: four.length,
    client: { address: "192.0.2.7", port: 4711 },
  });
  const six = proxyV2({ address: "2001:db8::7", port: 9 });
  assert.deepEqual(read(six), { bytes: six.length, client: { address: "2001:db8::7", port: 9 } });
  const local = proxyV2(undefined);
  assert.deepEqual(read(local), { bytes: local.length, client: undefined });
});

test("headers of version 2 that are not as they should be are invalid", () => {
  const changed = (at: number, byte: number): Buffer => {
    const header = proxyV2({ address: "192.0.2.7", port: 1 });
    header[at] = byte;
    return header;
  };
  assert.equal(read(changed(12, 0x11)), "invalid"); // version 1
  assert.equal(read(changed(12, 0x22)), "invalid"); // an unknown command
  assert.equal(read(changed(13, 0x41)), "invalid"); // an unknown family
  assert.equal(read(changed(14, 0xff)), "invalid"); // longer than any
  assert.equal(read(changed(15, 4)), "invalid"); // too short for its addresses
});

test("as long as it can still become a header more is awaited, and what cannot is none", () => {
  const header = proxyV2({ address: "192.0.2.7", port: 1 });
  for (let length = 0; length < header.length; length++) assert.equal(read(header.subarray(0, length)), undefined);
  const line = "PROXY TCP4 192.0.2.7 192.0.2.8 4711 80\r\n";
  for (let length = 0; length < line.length; length++) assert.equal(read(line.slice(0, length)), undefined);
  assert.equal(read("POST / HTTP/1.1"), "none");
  assert.equal(read("\r\nGET"), "none");
  assert.equal(read(line, { v1: false, v2: true }), "none");
  assert.equal(read(header, { v1: true, v2: false }), "none");
});
