/** Lines of the access log where a process prints them: on stdout, in the form that was asked for, to readers that misbehave. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { freePorts } from "../../support/fixtures/free-ports.ts";
import { documents, GATEWAY, route, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { eventually, type GwproxyProcess, startGwproxy } from "../../support/gateway/process.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

interface Scene {
  readonly process: GwproxyProcess;
  readonly url: string;
  /** The lines that were given up, as the metrics have it. */
  dropped(): Promise<number>;
}

async function start(t: TestContext, workers: string, ...more: readonly string[]): Promise<Scene> {
  const upstream = await startUpstream((_request, response) => response.end("hello"));
  t.after(() => upstream.close());
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-log-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [port = 0, metrics = 0] = await freePorts(2);
  const gateway = GATEWAY.replace("port: 8080", `port: ${port}`);
  writeFileSync(join(folder, "all.yaml"), documents(gateway, route("web", "web"), staticBackend("web", upstream.port)));
  const addresses = ["--admin-address", "127.0.0.1:0", "--readiness-address", "127.0.0.1:0"];
  const args = ["up", "-f", folder, "--bind-address", "127.0.0.1", "--metrics-address", `127.0.0.1:${metrics}`];
  const process = startGwproxy(t, [...args, ...addresses, ...more], { WORKERS: workers });
  await process.printed(`listening on 127.0.0.1:${port} `);
  return {
    process,
    url: `http://127.0.0.1:${port}`,
    async dropped() {
      const { body } = await call(`http://127.0.0.1:${metrics}/metrics`);
      return Number(/^gwproxy_log_dropped_total\{signal="access"\} (\d+)$/m.exec(body)?.[1] ?? 0);
    },
  };
}

for (const workers of ["1", "2"]) {
  test(`a reader that stalls costs lines and no requests, and reads on when it is back (${workers} workers)`, async (t) => {
    const { process, url, dropped } = await start(t, workers);
    process.stdout.pause();
    const path = `/${"a".repeat(8_000)}`;
    // More than the pipe, the streams and the waiting lines of each thread hold.
    await eventually(async () => {
      const answers = await Promise.all(Array.from({ length: 50 }, () => call(`${url}${path}`)));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.ok((await dropped()) > 0);
    });
    process.stdout.resume();
    await eventually(async () => {
      await call(`${url}/afterwards`);
      assert.match(process.output(), /\tinfo\trequest .* http\.path=\/afterwards /);
    });
    for (const line of process.output().trimEnd().split("\n"))
      if (line.includes("\trequest "))
        assert.match(line, /^20\S+Z\tinfo\trequest request\.id=\S+ gateway=\S+ .* duration=\d+ms$/);
  });

  test(`a reader that goes away costs lines and not the process (${workers} workers)`, async (t) => {
    const { process, url, dropped } = await start(t, workers);
    process.stdout.destroy();
    await eventually(async () => {
      assert.equal((await call(url)).status, 200);
      assert.ok((await dropped()) > 0);
    });
    assert.match(process.output(), /nobody reads the access log any more/);
    await process.kill("SIGTERM");
    assert.equal(await process.exited, 0);
  });
}

test("lines are JSON where that was asked for", async (t) => {
  const { process, url } = await start(t, "1", "--log-format", "json");
  await call(`${url}/path`);
  await process.printed('"http.path":"/path"');
  const line =
    process
      .output()
      .split("\n")
      .find((each) => each.includes('"scope":"request"')) ?? "";
  const fields = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual([fields["level"], fields["http.status"]], ["info", 200]);
});

test("a process whose reader has stalled ends all the same", async (t) => {
  const { process, url, dropped } = await start(t, "1");
  process.stdout.pause();
  await eventually(async () => {
    await Promise.all(Array.from({ length: 50 }, () => call(`${url}/${"a".repeat(8_000)}`)));
    assert.ok((await dropped()) > 0);
  });
  await process.kill("SIGTERM");
  assert.equal(await process.exited, 0);
});
