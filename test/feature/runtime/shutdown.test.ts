/** The end of a whole process: signals, readiness, what is waited for, and the exit code. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { rawClient } from "../../support/gateway/data-plane.ts";
import { freePorts } from "../../support/fixtures/free-ports.ts";
import { documents, GATEWAY, route, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { eventually, type GwproxyProcess, startGwproxy } from "../../support/gateway/process.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const REQUEST = "GET / HTTP/1.1\r\nhost: a.test\r\n\r\n";
const AT_ONCE = "GET /at-once HTTP/1.1\r\nhost: a.test\r\n\r\n";

interface Scene {
  readonly process: GwproxyProcess;
  readonly port: number;
  readonly admin: string;
  readonly readiness: string;
  /** Ends an answer that is under way. */
  readonly waiting: (() => void)[];
}

async function start(t: TestContext, env: Readonly<Record<string, string>>): Promise<Scene> {
  const waiting: (() => void)[] = [];
  const upstream = await startUpstream((request, response) => {
    if (request.url === "/at-once") response.end("hello");
    else waiting.push(() => response.end("late"));
  });
  t.after(() => upstream.close());
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-shutdown-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [port = 0, admin = 0, readiness = 0] = await freePorts(3);
  const gateway = GATEWAY.replace("port: 8080", `port: ${port}`);
  writeFileSync(join(folder, "all.yaml"), documents(gateway, route("web", "web"), staticBackend("web", upstream.port)));
  const addresses = ["--admin-address", `127.0.0.1:${admin}`, "--readiness-address", `127.0.0.1:${readiness}`];
  const args = ["up", "-f", folder, "--bind-address", "127.0.0.1", "--metrics-address", "127.0.0.1:0", ...addresses];
  const process = startGwproxy(t, args, env);
  await process.printed(`listening on 127.0.0.1:${port} `);
  const url = `http://127.0.0.1:${readiness}/healthz/ready`;
  await eventually(async () => assert.equal((await call(url)).status, 200));
  return { process, port, admin: `http://127.0.0.1:${admin}`, readiness: url, waiting };
}

async function busyClient({ port, waiting, process }: Scene): Promise<ReturnType<typeof rawClient>> {
  const client = rawClient(port, REQUEST);
  let isClosed = false;
  void client.closed().then(() => (isClosed = true));
  while (waiting.length === 0) {
    const isEarly = isClosed || client.text() !== "";
    assert.ok(!isEarly, `over before the upstream was asked: ${JSON.stringify(client.text())}\n${process.output()}`);
    await new Promise(setImmediate);
  }
  return client;
}

for (const workers of ["1", "2"]) {
  test(`until the minimum it is not ready and takes connections all the same; a second signal ends it (${workers} workers)`, async (t) => {
    const scene = await start(t, {
      WORKERS: workers,
      CONNECTION_MIN_TERMINATION_DEADLINE: "600s",
      TERMINATION_GRACE_PERIOD_SECONDS: "3600",
    });
    const busy = await busyClient(scene);
    void scene.process.kill("SIGTERM");
    await eventually(async () => {
      const { status, body } = await call(scene.readiness);
      assert.deepEqual([status, body], [500, "not ready, pending: shutdown\n"]);
    });
    // The announcement reaches each thread in its own time.
    await eventually(async () => {
      const fresh = rawClient(scene.port, AT_ONCE);
      const [text] = await fresh.until(/^[^]*hello$/);
      fresh.socket.destroy();
      assert.match(text, /connection: close\r\n[^]*hello$/);
    });
    for (const end of scene.waiting) end();
    assert.match(await busy.closed(), /connection: close\r\n[^]*late$/);
    void scene.process.kill("SIGTERM");
    assert.equal(await scene.process.exited, 1);
  });

  test(`what is under way is answered, its line is logged, and the exit code is 0 (${workers} workers)`, async (t) => {
    const scene = await start(t, { WORKERS: workers, TERMINATION_GRACE_PERIOD_SECONDS: "3600" });
    const busy = await busyClient(scene);
    const idle = rawClient(scene.port, AT_ONCE);
    await idle.until(/hello$/);
    void scene.process.kill("SIGTERM");
    await idle.closed();
    await eventually(async () => assert.rejects(call(`http://127.0.0.1:${scene.port}/at-once`), /ECONNREFUSED/));
    for (const end of scene.waiting) end();
    assert.match(await busy.closed(), /connection: close\r\n[^]*late$/);
    assert.equal(await scene.process.exited, 0);
    assert.equal(scene.process.output().match(/\tinfo\trequest /g)?.length, 2);
  });

  test(`at the maximum what is left is cut off, and the exit code is 0 (${workers} workers)`, async (t) => {
    const scene = await start(t, { WORKERS: workers, CONNECTION_TERMINATION_DEADLINE: "1" });
    const busy = await busyClient(scene);
    void scene.process.kill("SIGINT");
    assert.equal(await busy.closed(), "");
    assert.equal(await scene.process.exited, 0);
    assert.match(scene.process.output(), /\tinfo\trequest .* reason=ClientClosed /);
  });
}

test("the admin server ends the process as a signal does, and answers when no connection is taken any more", async (t) => {
  const scene = await start(t, { WORKERS: "2", TERMINATION_GRACE_PERIOD_SECONDS: "3600" });
  const busy = await busyClient(scene);
  const answer = await call(`${scene.admin}/quitquitquit`, { method: "POST" });
  assert.deepEqual([answer.status, answer.body], [200, "shutdown now\n"]);
  await eventually(async () => assert.rejects(call(`http://127.0.0.1:${scene.port}/at-once`), /ECONNREFUSED/));
  for (const end of scene.waiting) end();
  assert.match(await busy.closed(), /late$/);
  assert.equal(await scene.process.exited, 0);
});
