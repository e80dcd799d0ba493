import assert from "node:assert/strict";
import { test } from "node:test";
import { workloadAddress } from "../../../../src/lib/network/workload-endpoint.ts";

test("Unix sockets and addresses with a port are endpoints", () => {
  assert.equal(workloadAddress("unix:///run/spire/agent.sock"), "unix:/run/spire/agent.sock");
  assert.equal(workloadAddress("unix:/run/spire/agent.sock"), "unix:/run/spire/agent.sock");
  assert.equal(workloadAddress("tcp://127.0.0.1:8081"), "ipv4:127.0.0.1:8081");
  assert.equal(workloadAddress("tcp://[::1]:8081"), "ipv6:[::1]:8081");
});

test("names, relative paths and other schemes are none, and the error says what to give", () => {
  const bad = ["", "/run/a.sock", "unix://run/a.sock", "unix:a.sock", "unix:///a?b", "tcp://localhost:8081"];
  for (const text of [...bad, "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:70000", "http://127.0.0.1:1"])
    assert.throws(() => workloadAddress(text), { name: "TypeError", message: /give unix:\/\/\// }, text);
});
