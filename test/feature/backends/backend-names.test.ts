/** Names of upstreams through real sockets, with a real server of names: addresses, times to live, failures. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startDeafServer } from "../../support/servers/deaf-server.ts";
import { startDnsServer, useDnsServer, type DnsServer } from "../../support/servers/dns-server.ts";
import { documents, GATEWAY, route, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

/** Answers at each address, all on one port, with its own address. By default each request opens a connection. */
async function startUpstreams(
  context: ProofContext,
  addresses: readonly string[],
  connection: "close" | "keep-alive" = "close",
): Promise<number> {
  let port = 0;
  for (const address of addresses) {
    const server = createServer((_request, response) => void response.setHeader("connection", connection).end(address));
    await new Promise<void>((resolve) => server.listen(port, address, resolve));
    port = (server.address() as AddressInfo).port; // a TCP server's address is one
    context.after(() => void (server.closeAllConnections(), server.close()));
  }
  return port;
}

function backend(name: string, port: number): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec: {static: {host: ${name}, port: ${port}}}
`;
}

async function serve(context: ProofContext, port: number): Promise<{ gateway: TestGateway; server: DnsServer }> {
  const server = await startDnsServer(context);
  useDnsServer(context, server);
  const gateway = await startGateway(context, documents(GATEWAY, backend("web.test", port), route("web", "web")));
  return { gateway, server };
}

const address = async (gateway: TestGateway): Promise<string> => (await call(gateway.url())).body;

prove([], "new connections take the addresses of a name in rotation", async (context) => {
  const port = await startUpstreams(context, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
  const { gateway, server } = await serve(context, port);
  server.zone.set("web.test", { addresses: ["127.0.0.1", "127.0.0.2", "127.0.0.3"], ttl: 60 });
  const seen: string[] = [];
  for (let at = 0; at < 6; at++) seen.push(await address(gateway));
  assert.deepEqual(seen, ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1", "127.0.0.2", "127.0.0.3"]);
  assert.equal(server.asked.length, 2, "one question for each family");
});

prove([], "an address that refuses or does not answer is passed over for the next one", async (context) => {
  const port = await startUpstreams(context, ["127.0.0.1"]);
  await startDeafServer(context, "127.0.0.2", port);
  const { gateway, server } = await serve(context, port);
  server.zone.set("web.test", { addresses: ["127.0.0.2", "127.0.0.1"], ttl: 60 });
  assert.equal(await address(gateway), "127.0.0.1");
  assert.equal(await address(gateway), "127.0.0.1");
  server.zone.set("web.test", { addresses: ["127.0.0.3", "127.0.0.1"], ttl: 60 });
  await gateway.change(documents(GATEWAY, backend("WEB.test", port), route("web", "web")));
  assert.equal(await address(gateway), "127.0.0.1");
  assert.equal(await address(gateway), "127.0.0.1");
});

prove([], "a name in use is looked up again in the background, and a failure keeps what is known", async (context) => {
  const port = await startUpstreams(context, ["127.0.0.1", "127.0.0.2"]);
  const { gateway, server } = await serve(context, port);
  server.zone.set("web.test", { addresses: ["127.0.0.1"], ttl: 1 });
  assert.equal(await address(gateway), "127.0.0.1");
  server.zone.set("web.test", { addresses: ["127.0.0.2"], ttl: 1 });
  await server.askedTimes("web.test", 4);
  let now = await address(gateway);
  // The answer is on its way.
  while (now !== "127.0.0.2") now = await address(gateway);
  server.zone.set("web.test", "fails");
  await server.askedTimes("web.test", 6);
  assert.equal(await address(gateway), "127.0.0.2");
  await server.askedTimes("web.test", 8);
  assert.equal(await address(gateway), "127.0.0.2");
});

prove([], "requests leave an address that the name gave up, whatever connections there are to it", async (context) => {
  const addresses = ["127.0.0.1", "127.0.0.2"];
  const port = await startUpstreams(context, addresses, "keep-alive");
  const { gateway, server } = await serve(context, port);
  server.zone.set("web.test", { addresses: ["127.0.0.1"], ttl: 1 });
  assert.equal(await address(gateway), "127.0.0.1");
  assert.equal(await address(gateway), "127.0.0.1");
  server.zone.set("web.test", { addresses: ["127.0.0.2"], ttl: 1 });
  while ((await address(gateway)) === "127.0.0.1") await server.askedTimes("web.test", server.asked.length + 1);
  assert.equal(await address(gateway), "127.0.0.2");
});

prove([], "a name that nobody uses is not looked up any more", async (context) => {
  const port = await startUpstreams(context, ["127.0.0.1"]);
  const { gateway, server } = await serve(context, port);
  const other = documents(
    backend("other.test", port).replace("name: web", "name: other"),
    route("other", "other", "/o"),
  );
  await gateway.change(documents(GATEWAY, backend("web.test", port), route("web", "web"), other));
  server.zone.set("web.test", { addresses: ["127.0.0.1"], ttl: 1 });
  server.zone.set("other.test", { addresses: ["127.0.0.1"], ttl: 1 });
  assert.equal((await call(`${gateway.url()}/o`)).status, 200);
  // The clock is a name that is in use: after four of its refreshes the other one has been due three times.
  for (let times = 2; times <= 10; times += 2) {
    await address(gateway);
    await server.askedTimes("web.test", times);
  }
  assert.equal(server.asked.filter((name) => name === "other.test").length, 4, "asked once, and refreshed once");
});

prove([], "a name without an address gives 503, and is served soon after it has one", async (context) => {
  const port = await startUpstreams(context, ["127.0.0.1"]);
  const { gateway, server } = await serve(context, port);
  const answer = await call(gateway.url());
  assert.deepEqual([answer.status, answer.body], [503, "upstream call failed"]);
  assert.equal((await call(gateway.url())).status, 503);
  assert.equal(server.asked.length, 2, "the second request was answered from memory");
  server.zone.set("web.test", { addresses: ["127.0.0.1"], ttl: 60 });
  while ((await call(gateway.url())).status === 503);
  assert.equal(server.asked.length, 4);
});
