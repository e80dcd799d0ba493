import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { ConnectionPreambles } from "../../../../../src/proxy/listeners/preamble/connection-preamble.ts";

/** An accepted connection of one client port. Node cannot connect twice from a port of its own, as a client may. */
function accepted(localPort: number): Socket {
  const ends = { remoteAddress: "127.0.0.1", remotePort: 4000, localAddress: "127.0.0.1", localPort };
  return Object.assign(new EventEmitter(), ends) as unknown as Socket; // preambles look at nothing else
}

const from = (address: string) => ({ client: { address, port: 1 } });

test("connections of one client port to two ports keep their own preambles", () => {
  const preambles = new ConnectionPreambles();
  const [first, second] = [accepted(80), accepted(81)];
  preambles.note(first, from("192.0.2.1"));
  preambles.note(second, from("192.0.2.2"));
  assert.equal(preambles.of(first)?.client?.address, "192.0.2.1");
  assert.equal(preambles.of(second)?.client?.address, "192.0.2.2");
});

test("the late close of a connection leaves the preamble of the next one from the same port", () => {
  const preambles = new ConnectionPreambles();
  const [first, second] = [accepted(80), accepted(80)];
  preambles.note(first, from("192.0.2.1"));
  preambles.note(second, from("192.0.2.2"));
  first.emit("close");
  assert.equal(preambles.of(second)?.client?.address, "192.0.2.2");
  second.emit("close");
  assert.equal(preambles.of(second), undefined);
});
