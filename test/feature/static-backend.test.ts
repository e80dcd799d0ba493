/** static backends through real sockets: a host and port, or a Unix socket. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { echoed, startEcho } from "../support/echo.ts";
import { documents, GATEWAY, route, startGateway, staticBackend } from "../support/gateway.ts";
import { call } from "../support/http.ts";
import { prove } from "../support/prove.ts";

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

prove([], "an upstream that refuses connections gives 503, and a changed port serves at once", async (context) => {
  const echo = await startEcho(context);
  const web = route("web", "web");
  // Port 9 is discard, which nothing serves on loopback.
  const gateway = await startGateway(context, documents(GATEWAY, staticBackend("web", 9), web));
  assert.equal((await call(gateway.url())).status, 503);
  await gateway.change(documents(GATEWAY, staticBackend("web", echo.port), web));
  assert.equal((await call(gateway.url())).status, 200);
});
