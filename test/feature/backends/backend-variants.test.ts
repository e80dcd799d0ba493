/** A backend that becomes another kind of backend: connections that were made for the former one end. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";

const backend = (variant: string): string => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: it}
spec: {${variant}}
`;

const VARIANTS: readonly (readonly [string, (port: number) => string])[] = [
  ["static", (port) => `static: {host: 127.0.0.1, port: ${port}}`],
  ["dynamicForwardProxy", () => "dynamicForwardProxy: {}"],
  ["ai", (port) => `ai: {groups: [{providers: [{name: one, llma: {}, host: 127.0.0.1, port: ${port}}]}]}`],
];

for (const [at, [name, variant]] of VARIANTS.entries()) {
  const [nextName, next] = VARIANTS[(at + 1) % VARIANTS.length] as (typeof VARIANTS)[number]; // there is one
  prove([], `idle connections of a backend that was ${name} and becomes ${nextName} end`, async (context) => {
    const sockets: Socket[] = [];
    const server = createServer((_request, response) => {
      response.setHeader("content-type", "application/json");
      response.end("{}");
    });
    // It never ends a connection by itself.
    server.keepAliveTimeout = 0;
    server.on("connection", (socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    context.after(() => void (server.closeAllConnections(), server.close()));
    const { port } = server.address() as AddressInfo; // a TCP server's address is one
    const manifests = (of: string): string => documents(GATEWAY, route("it", "it"), backend(of));
    const gateway = await startGateway(context, manifests(variant(port)));
    const ask = () =>
      call(gateway.url(), {
        method: "POST",
        headers: { host: `127.0.0.1:${port}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "m", messages: [] }),
      });
    assert.equal((await ask()).status, 200);
    assert.equal((await ask()).status, 200);
    assert.equal(sockets.length, 1, "the connection is kept");
    const [socket] = sockets as [Socket];
    const closed = once(socket, "close");
    await gateway.change(manifests(next(port)));
    await closed;
    assert.equal((await ask()).status, 200);
    assert.equal(sockets.length, 2);
  });
}
