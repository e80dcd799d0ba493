/** How a data plane process reaches its controller: plaintext, TLS, and settings that cannot work. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createXdsServer, type XdsServerOptions } from "../../../src/xds/server/discovery.ts";
import { bind, listener } from "../../support/gateway/data-plane.ts";
import { type GwproxyProcess, startGwproxy } from "../../support/gateway/process.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";
import { tlsFiles } from "../../support/fixtures/tls-files.ts";

const READY = "for Gateway default/gw";

async function serve(t: TestContext, more: Partial<XdsServerOptions> = {}): Promise<number> {
  const resources = [bind("0/default/gw", 0), listener()];
  const feed = { snapshot: () => resources, subscribe: () => () => undefined };
  const server = createXdsServer({ log: recordingLog().log, feed, ...more });
  t.after(() => server.stop());
  return server.listen({ host: "127.0.0.1", port: 0 });
}

function startPlane(
  t: TestContext,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): GwproxyProcess {
  const local = ["admin", "metrics", "readiness"].flatMap((name) => [`--${name}-address`, "127.0.0.1:0"]);
  const context = { after: (clean: () => void | Promise<void>) => t.after(clean) };
  return startGwproxy(
    context,
    ["proxy", "--gateway", "default/gw", "--bind-address", "127.0.0.1", ...local, ...args],
    env,
  );
}

test("an address without a scheme is plaintext when no CA is named", async (t) => {
  const port = await serve(t);
  await startPlane(t, ["--xds-address", `127.0.0.1:${port}`]).printed(READY);
});

test("https with the CA of the controller follows it", async (t) => {
  const files = tlsFiles({ after: (clean) => t.after(clean) });
  const port = await serve(t, { tls: files.leaf });
  await startPlane(t, ["--xds-address", `https://localhost:${port}/`, "--xds-ca", files.ca]).printed(READY);
});

test("address and CA can come from the environment, and a CA alone means TLS", async (t) => {
  const files = tlsFiles({ after: (clean) => t.after(clean) });
  const port = await serve(t, { tls: files.leaf });
  await startPlane(t, [], { XDS_ADDRESS: `localhost:${port}`, XDS_ROOT_CA: files.ca }).printed(READY);
});

test("a controller that another authority vouches for is not followed", async (t) => {
  const context = { after: (clean: () => void | Promise<void>) => t.after(clean) };
  const [served, trusted] = [tlsFiles(context), tlsFiles(context)];
  const port = await serve(t, { tls: served.leaf });
  const plane = startPlane(t, ["--xds-address", `https://localhost:${port}`, "--xds-ca", trusted.ca]);
  await plane.printed("the controller is out of reach");
  assert.ok(!plane.output().includes(READY));
});

const UNUSABLE: readonly [string, (ca: string, key: string) => string[], number, RegExp][] = [
  ["plaintext with a CA", (ca) => ["--xds-address", "http://127.0.0.1:9", "--xds-ca", ca], 1, /plaintext, but a CA/],
  ["a CA file that is missing", () => ["--xds-address", "127.0.0.1:9", "--xds-ca", "/nowhere"], 1, /cannot read/],
  ["a CA file without a certificate", (_, key) => ["--xds-address", "a:9", "--xds-ca", key], 1, /no PEM certificate/],
  ["another scheme", () => ["--xds-address", "ftp://127.0.0.1:9"], 2, /is not HOST:PORT|names no host/],
  ["a path", () => ["--xds-address", "https://127.0.0.1:9/x"], 2, /is not HOST:PORT/],
  ["no host", () => ["--xds-address", "https://:9"], 2, /names no host/],
];

for (const [name, args, code, sentence] of UNUSABLE) {
  test(`${name} ends the data plane with a sentence`, async (t) => {
    const files = tlsFiles({ after: (clean) => t.after(clean) });
    const plane = startPlane(t, args(files.ca, files.key));
    assert.equal(await plane.exited, code);
    assert.match(plane.output(), sentence);
    assert.ok(!plane.output().includes("PRIVATE KEY"));
  });
}

test("a controller with half of a key pair, or with two halves of different ones, does not start", async (t) => {
  const context = { after: (clean: () => void | Promise<void>) => t.after(clean) };
  const [one, other] = [tlsFiles(context), tlsFiles(context)];
  const half = startGwproxy(context, ["controller", "--xds-tls-cert", one.certificate]);
  assert.equal(await half.exited, 2);
  assert.match(half.output(), /belong together/);
  const mixed = startGwproxy(context, ["controller", "--xds-tls-cert", one.certificate, "--xds-tls-key", other.key]);
  assert.equal(await mixed.exited, 1);
  assert.match(mixed.output(), /are no certificate and its key/);
  assert.ok(!mixed.output().includes("PRIVATE KEY"));
});
