/** The annotation `gwproxy.dev/internal-ports`: listeners without a socket, reached through a tunnel alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { rawClient } from "../../support/gateway/data-plane.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { GROUP, policy } from "../../support/proofs/policy-places.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";

const DOOR = policy("door", {
  refs: `{${GROUP}, kind: Gateway, name: gw, port: 3128}`,
  says: "frontend: {connect: {mode: Tunnel}}",
});

/** Listeners `http` (8080) and `door` (3128). */
function gatewayWith(internal: string): string {
  const annotations = internal === "" ? "" : `, annotations: {gwproxy.dev/internal-ports: "${internal}"}`;
  return `${GATEWAY.trimEnd().replace("name: gw}", `name: gw${annotations}}`)}
    - {name: door, port: 3128, protocol: HTTP}
`;
}

async function serve(
  context: ProofContext,
  internal: string,
): Promise<TestGateway & { rewrite(to: string): Promise<void> }> {
  const echo = await startEcho(context);
  const web = route("web", "web").replace("[{name: gw}]", "[{name: gw, sectionName: http}]");
  const all = (ports: string): string => documents(gatewayWith(ports), staticBackend("web", echo.port), web, DOOR);
  const gateway = await startGateway(context, all(internal));
  return { ...gateway, rewrite: (to) => gateway.change(all(to)) };
}

async function tunnelled(context: ProofContext, gateway: TestGateway): Promise<string> {
  const { port } = new URL(gateway.url(3128));
  const inner = "GET /path HTTP/1.1\r\nHost: a.test\r\nconnection: close\r\n\r\n";
  const client = rawClient(Number(port), `CONNECT a.test:8080 HTTP/1.1\r\nHost: a.test:8080\r\n\r\n${inner}`);
  context.after(() => void client.socket.destroy());
  return client.closed();
}

const SERVED = /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*"url":"\/path"/;

test("an internal port has no socket, and is reached through a tunnel", async (t) => {
  const context = contextOf(t);
  const gateway = await serve(context, "8080");
  assert.deepEqual(gateway.problems(), []);
  assert.deepEqual(
    gateway.proxy.listeners().map(({ port }) => port),
    [3128],
  );
  assert.match(await tunnelled(context, gateway), SERVED);
});

test("a port that becomes internal is closed, and opened again when it no longer is", async (t) => {
  const context = contextOf(t);
  const gateway = await serve(context, "");
  const before = gateway.url(8080);
  assert.equal((await call(`${before}/path`)).status, 200);
  await gateway.rewrite("8080");
  await assert.rejects(call(`${before}/path`), { code: "ECONNREFUSED" });
  assert.match(await tunnelled(context, gateway), SERVED);
  await gateway.rewrite("");
  assert.equal((await call(`${gateway.url(8080)}/path`)).status, 200);
});

test("a bad entry refuses the Gateway and opens nothing that another entry closes", async (t) => {
  const context = contextOf(t);
  const gateway = await serve(context, "8080, 9090");
  const found = gateway.translator.diagnostics().map(({ message }) => message);
  assert.deepEqual(found, ['annotation gwproxy.dev/internal-ports: "9090" is no port of a listener of the Gateway']);
  assert.deepEqual(
    gateway.proxy.listeners().map(({ port }) => port),
    [3128],
  );
});
