/** static backends through real sockets: a host and port, or a Unix socket. */
import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";
import { createSelfSigned } from "../../support/servers/tls-upstream.ts";

function backend(name: string, address: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {static: ${address}}
`;
}

prove(
  ["GwBackend spec.static.host", "GwBackend spec.static.port"],
  "requests go to the host and port; a name replaces the client's Host and an address keeps it",
  async (context) => {
    const echo = await startEcho(context);
    const gateway = await startGateway(
      context,
      documents(
        GATEWAY,
        backend("address", `{host: 127.0.0.1, port: ${echo.port}}`),
        route("address", "address", "/address"),
        backend("named", `{host: localhost, port: ${echo.port}}`),
        route("named", "named", "/named"),
      ),
    );
    const host = async (path: string) => {
      const answer = await call(gateway.url() + path, { headers: { host: "client.test" } });
      assert.equal(answer.status, 200, answer.body);
      return echoed(answer.body).headers["host"];
    };
    assert.equal(await host("/address"), "client.test");
    assert.equal(await host("/named"), "localhost");
  },
);

prove(
  "GwBackend spec.static.unixPath",
  "requests go through the Unix socket, and one that nobody listens on gives 503",
  async (context) => {
    const folder = mkdtempSync(join(tmpdir(), "gwproxy-socket-"));
    context.after(() => rmSync(folder, { recursive: true, force: true }));
    const unixPath = join(folder, "upstream.sock");
    await startEcho(context, { unixPath, tag: "socket" });
    const gateway = await startGateway(
      context,
      documents(
        GATEWAY,
        backend("socket", `{unixPath: ${unixPath}}`),
        route("socket", "socket", "/socket"),
        backend("silent", `{unixPath: ${join(folder, "nobody.sock")}}`),
        route("silent", "silent", "/silent"),
      ),
    );
    const answer = await call(`${gateway.url()}/socket`, {
      method: "POST",
      body: "hello",
      headers: { host: "client.test" },
    });
    assert.equal(answer.headers["x-upstream"], "socket");
    assert.deepEqual([echoed(answer.body).body, echoed(answer.body).headers["host"]], ["hello", "client.test"]);
    assert.equal((await call(`${gateway.url()}/silent`)).status, 503);
  },
);

prove(
  ["GwBackend spec.static.unixPath", "GwBackend spec.policies.tls.sni"],
  "TLS goes through a Unix socket too, under the name that sni gives",
  async (context) => {
    const folder = mkdtempSync(join(tmpdir(), "gwproxy-socket-"));
    context.after(() => rmSync(folder, { recursive: true, force: true }));
    const unixPath = join(folder, "upstream.sock");
    const { certificate, key } = createSelfSigned("inner", "DNS:inner.test");
    const server = createServer({ cert: certificate, key }, (_request, response) => void response.end("inside"));
    await new Promise<void>((resolve) => server.listen(unixPath, resolve));
    context.after(() => void (server.closeAllConnections(), server.close()));
    const block = (sni: string) => `policies: {tls: {${sni}caCertificateRefs: [{name: trusted}]}}`;
    const gateway = await startGateway(
      context,
      documents(
        GATEWAY,
        pemObject("ConfigMap", "trusted", { "ca.crt": certificate }),
        backend("named", `{unixPath: ${unixPath}}, ${block("sni: inner.test, ")}`),
        route("named", "named", "/named"),
        backend("nameless", `{unixPath: ${unixPath}}, ${block("")}`),
        route("nameless", "nameless", "/nameless"),
      ),
    );
    const answer = await call(`${gateway.url()}/named`);
    assert.deepEqual([answer.status, answer.body], [200, "inside"]);
    assert.equal((await call(`${gateway.url()}/nameless`)).status, 503);
  },
);

prove(
  "GwBackend spec.static.host",
  "an IPv6 address is dialled with and without brackets, and keeps the client's Host",
  async (context) => {
    const server = createHttpServer((request, response) => void response.end(request.headers.host));
    await new Promise<void>((resolve) => server.listen(0, "::1", resolve));
    context.after(() => void (server.closeAllConnections(), server.close()));
    const { port } = server.address() as AddressInfo; // a TCP server's address is one
    const objects = ["::1", "[::1]"].map((host, at) =>
      documents(backend(`six-${at}`, `{host: "${host}", port: ${port}}`), route(`six-${at}`, `six-${at}`, `/${at}`)),
    );
    const gateway = await startGateway(context, documents(GATEWAY, ...objects));
    for (const path of ["/0", "/1"]) {
      const answer = await call(gateway.url() + path, { headers: { host: "client.test" } });
      assert.deepEqual([answer.status, answer.body], [200, "client.test"], path);
    }
  },
);

prove(
  [],
  "the name of a host replaces the client's, unless a policy keeps it; an address does where a policy says so",
  async (context) => {
    const echo = await startEcho(context);
    const keeps = "  traffic: {hostRewrite: {mode: None}}";
    const takes = "  traffic: {hostRewrite: {mode: Auto}}";
    const gateway = await startGateway(
      context,
      documents(
        GATEWAY,
        backend("named", `{host: localhost, port: ${echo.port}}`),
        route("auto", "named", "/auto"),
        route("kept", "named", "/kept"),
        routePolicy("kept", "kept", keeps),
        backend("address", `{host: 127.0.0.1, port: ${echo.port}}`),
        route("taken", "address", "/taken"),
        routePolicy("taken", "taken", takes),
      ),
    );
    const hosts: unknown[] = [];
    for (const path of ["/auto", "/kept", "/taken"])
      hosts.push(echoed((await call(gateway.url() + path, { headers: { host: "client.test" } })).body).headers["host"]);
    assert.deepEqual(hosts, ["localhost", "client.test", "127.0.0.1"]);
  },
);

prove([], "an upstream that refuses connections gives 503, and a changed port serves at once", async (context) => {
  const echo = await startEcho(context);
  const web = route("web", "web");
  // Port 9 is discard, which nothing serves on loopback.
  const gateway = await startGateway(context, documents(GATEWAY, staticBackend("web", 9), web));
  assert.equal((await call(gateway.url())).status, 503);
  await gateway.change(documents(GATEWAY, staticBackend("web", echo.port), web));
  assert.equal((await call(gateway.url())).status, 200);
});
