/** Options of a process with a data plane that say how it takes connections, through real sockets. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { freePorts } from "../../support/fixtures/free-ports.ts";
import { documents, GATEWAY, route, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { eventually, startGwproxy, type GwproxyProcess } from "../../support/gateway/process.ts";
import { contextOf } from "../../support/proofs/prove.ts";

const LOCAL = [
  "--admin-address",
  "127.0.0.1:0",
  "--metrics-address",
  "127.0.0.1:0",
  "--readiness-address",
  "127.0.0.1:0",
];

interface Started {
  readonly port: number;
  readonly process: GwproxyProcess;
}

async function start(
  t: TestContext,
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<Started> {
  const context = contextOf(t);
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-options-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const echo = await startEcho(context);
  const [port = 0] = await freePorts(1);
  const gateway = GATEWAY.replace("port: 8080", `port: ${port}`);
  writeFileSync(join(folder, "all.yaml"), documents(gateway, staticBackend("web", echo.port), route("web", "web")));
  const process = startGwproxy(context, ["up", "-f", folder, ...LOCAL, ...args], env);
  return { port, process };
}

test("both families of addresses are served, and TRUSTED_PROXIES are believed in every thread", async (t) => {
  const { port, process } = await start(t, { TRUSTED_PROXIES: "192.0.2.0/24, 127.0.0.1" }, "--workers", "2");
  await process.printed(`listening on [::]:${port} for Gateway default/gw`);
  const seenFrom = async (host: string): Promise<string | undefined> => {
    const { body } = await call(`http://${host}:${port}/`, { headers: { "x-forwarded-proto": "https" } });
    return echoed(body).headers["x-forwarded-proto"];
  };
  assert.equal(await seenFrom("127.0.0.1"), "https");
  assert.equal(await seenFrom("[::1]"), "http");
});

test("a range that is none is refused by name", async (t) => {
  const { process } = await start(t, {}, "--trusted-proxies", "10.0.0.0/33");
  await process.printed(/"10\.0\.0\.0\/33" is neither an address nor a range/);
});

test("a settings file counts where neither a flag nor a variable does, and is refused by path", async (t) => {
  const context = contextOf(t);
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-settings-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "config.yaml");
  const [readiness = 0, metrics = 0, other = 0] = await freePorts(3);
  const follow = ["proxy", "--xds-address", "http://127.0.0.1:1", "--gateway", "default/gw", "-f", file];
  const addresses = `readinessAddress: 127.0.0.1:${readiness}, metricsAddress: 127.0.0.1:${other}`;
  writeFileSync(file, `config: {adminAddress: "127.0.0.1:0", ${addresses}}`);
  const process = startGwproxy(context, follow, { STATS_ADDR: `127.0.0.1:${metrics}` });
  await eventually(async () => {
    assert.equal((await call(`http://127.0.0.1:${readiness}/healthz/ready`)).status, 500, "it is not ready yet");
    assert.equal((await call(`http://127.0.0.1:${metrics}/metrics`)).status, 200);
  });
  await process.kill("SIGTERM");
  writeFileSync(file, "config: {loging: {format: json}}");
  await startGwproxy(context, follow).printed(/config\.yaml: config\.loging is not a setting of data planes/);
});
