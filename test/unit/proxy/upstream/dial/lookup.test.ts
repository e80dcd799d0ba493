/** One look-up of a name, against a real server of names on loopback. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createLookup, interleaved, type Lookup } from "../../../../../src/proxy/upstream/dial/lookup.ts";
import { candidatesOf, parseHosts, parseSearch } from "../../../../../src/proxy/upstream/dial/name-files.ts";
import { startDnsServer, useDnsServer, type DnsServer } from "../../../../support/servers/dns-server.ts";

async function open(t: TestContext, files: string, hosts = ""): Promise<{ server: DnsServer; lookup: Lookup }> {
  const server = await startDnsServer(t);
  useDnsServer(t, server);
  const lookup = createLookup(() => Promise.resolve({ hosts: parseHosts(hosts), ...parseSearch(files) }));
  return { server, lookup };
}

test("both families are found, in turn, and hold as long as the shortest record says", async (t) => {
  const { server, lookup } = await open(t, "");
  server.zone.set("a.test", { addresses: ["127.0.0.1", "127.0.0.2", "::1"], ttl: 7 });
  assert.deepEqual(await lookup("a.test"), { addresses: ["::1", "127.0.0.1", "127.0.0.2"], ttlMs: 7_000 });
  assert.deepEqual(await lookup("A.Test."), { addresses: ["::1", "127.0.0.1", "127.0.0.2"], ttlMs: 7_000 });
});

test("the search list is gone through, and what a name stood for is asked first the next time", async (t) => {
  const { server, lookup } = await open(t, "search one.test two.test\noptions ndots:5");
  server.zone.set("web.shop.two.test", { addresses: ["127.0.0.1"], ttl: 5 });
  assert.deepEqual((await lookup("web.shop")).addresses, ["127.0.0.1"]);
  const names = [...new Set(server.asked)];
  assert.deepEqual(names, ["web.shop.one.test", "web.shop.two.test"]);
  server.asked.length = 0;
  await lookup("web.shop");
  assert.deepEqual([...new Set(server.asked)], ["web.shop.two.test"]);
});

test("a name that does not exist has no address; one that nobody could look up is an error", async (t) => {
  const { server, lookup } = await open(t, "search one.test");
  server.zone.set("broken.test", "fails");
  assert.deepEqual(await lookup("nowhere.test"), { addresses: [], ttlMs: 1_000 });
  await assert.rejects(lookup("broken.test"), { code: "ESERVFAIL" });
});

test("the hosts file comes first, and localhost is this machine", async (t) => {
  const { server, lookup } = await open(t, "", "127.0.0.9 a.test A2.test # comment\n::1 a.test\nnonsense b.test");
  assert.deepEqual((await lookup("a.TEST")).addresses, ["::1", "127.0.0.9"]);
  assert.deepEqual((await lookup("a2.test.")).addresses, ["127.0.0.9"]);
  assert.deepEqual((await lookup("localhost")).addresses, ["::1", "127.0.0.1"]);
  assert.deepEqual((await lookup("app.localhost")).addresses, ["::1", "127.0.0.1"]);
  assert.deepEqual(server.asked, []);
});

test("names with enough dots are asked for as they are first, absolute ones only so", () => {
  const files = { search: ["one.test", "two.test"], dots: 2 };
  assert.deepEqual(candidatesOf("a", files), ["a.one.test", "a.two.test", "a"]);
  assert.deepEqual(candidatesOf("a.b.c", files), ["a.b.c", "a.b.c.one.test", "a.b.c.two.test"]);
  assert.deepEqual(candidatesOf("a.", files), ["a"]);
});

test("of resolv.conf the last search list and ndots count", () => {
  const text = "; comment\nnameserver 10.0.0.1\ndomain old.test\nsearch new.test. other.test\noptions edns0 ndots:99";
  assert.deepEqual(parseSearch(text), { search: ["new.test", "other.test"], dots: 15 });
  assert.deepEqual(parseSearch(""), { search: [], dots: 1 });
});

test("families alternate until one runs out", () => {
  assert.deepEqual(interleaved(["1.1.1.1", "2.2.2.2", "3.3.3.3", "::1"]), ["::1", "1.1.1.1", "2.2.2.2", "3.3.3.3"]);
});
