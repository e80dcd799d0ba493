/** What a scraper gets from a process: both formats, every metric of the table, read by Prometheus' own parser. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { GROUPS, OBSERVABLES } from "../../../src/telemetry/metric-table.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { parseExposition } from "../../support/gateway/exposition.ts";
import { parsedByPrometheus } from "../../support/gateway/expositions.ts";
import { freePorts } from "../../support/fixtures/free-ports.ts";
import { documents, GATEWAY, gatewayPolicy, route, staticBackend } from "../../support/gateway/gateway.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { startGwproxy } from "../../support/gateway/process.ts";
import { contextOf } from "../../support/proofs/prove.ts";

const LABELS = `  frontend:
    metrics:
      attributes:
        add:
          - {name: quoted.value, expression: 'request.headers["x-team"]'}
          - {name: none, expression: "null"}`;
/** What no header can carry as it is, and what would end a label. */
const ODD = `a "b" \\ c, d="e"} 1`;

interface Scraped {
  scrape(path: string, accept?: string): Promise<Answer>;
}

async function serve(t: TestContext, workers: string): Promise<Scraped> {
  const echo = await startEcho(contextOf(t));
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-metrics-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [port = 0, metrics = 0] = await freePorts(2);
  const gateway = GATEWAY.replace("port: 8080", `port: ${port}`);
  const objects = [gateway, route("web", "web"), staticBackend("web", echo.port), gatewayPolicy("labels", LABELS)];
  writeFileSync(join(folder, "all.yaml"), documents(...objects));
  const addresses = ["--admin-address", "127.0.0.1:0", "--readiness-address", "127.0.0.1:0"];
  const args = ["up", "-f", folder, "--bind-address", "127.0.0.1", "--metrics-address", `127.0.0.1:${metrics}`];
  const process = startGwproxy(t, [...args, ...addresses], { WORKERS: workers });
  await process.printed(`listening on 127.0.0.1:${port} `);
  for (const team of ["red", ODD, "red"])
    assert.equal((await call(`http://127.0.0.1:${port}/`, { headers: { "x-team": team } })).status, 200);
  return {
    scrape: (path, accept = "") =>
      call(`http://127.0.0.1:${metrics}${path}`, { headers: accept === "" ? {} : { accept } }),
  };
}

for (const workers of ["1", "2"]) {
  test(`Prometheus reads all that a process with ${workers} workers counts and knows`, async (t) => {
    const { scrape } = await serve(t, workers);
    const answer = await scrape("/metrics");
    assert.equal(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    const families = parseExposition(answer.body, "prometheus");
    const table = GROUPS.flatMap((group) => [...Object.keys(group.counters), ...Object.keys(group.histograms)]);
    assert.deepEqual(
      [...families.keys()].sort(),
      [...table, ...Object.keys(OBSERVABLES)].map((n) => `gwproxy_${n}`).sort(),
    );

    const read = await parsedByPrometheus(answer.body);
    const of = (name: string) => read.filter((series) => series.name === `gwproxy_${name}`);
    const teams = of("requests_total").map(({ labels, value }) => [labels["quoted_value"], labels["none"], value]);
    assert.deepEqual(teams.sort(), [
      [ODD, "unknown", 1],
      ["red", "unknown", 2],
    ]);
    assert.equal(
      of("request_duration_seconds").reduce((sum, { value }) => sum + value, 0),
      3,
    );
    assert.equal(of("request_duration_seconds")[0]?.type, "HISTOGRAM");
    assert.equal(of("config_synchronized")[0]?.value, 1);
    const threads = of("nodejs_heap_used_bytes").map(({ labels }) => labels["thread"]);
    assert.deepEqual(threads.sort(), workers === "1" ? ["main"] : ["0", "1", "main"]);
    for (const name of ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"])
      assert.ok((of(name)[0]?.value ?? 0) > 0, name);
  });
}

test("a scraper that asks for OpenMetrics gets it, at both paths and at no other", async (t) => {
  const { scrape } = await serve(t, "1");
  const accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2";
  for (const path of ["/metrics", "/stats/prometheus"]) {
    const answer = await scrape(path, accept);
    assert.equal(answer.headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
    const families = parseExposition(answer.body, "openmetrics");
    assert.equal(families.get("gwproxy_requests")?.samples.length, 2);
  }
  assert.equal((await scrape("/metrics/all")).status, 404);
  assert.equal((await scrape("/")).status, 404);
});
