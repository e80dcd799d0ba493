/** The console of a data plane for tests in a browser. */
import type { TestContext } from "node:test";
import type { Page } from "puppeteer-core";
import { startAdminServer } from "../../../src/admin/server.ts";
import type { RunningServer } from "../../../src/admin/http.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { createLogger } from "../../../src/lib/log.ts";
import { AppliedUpdates } from "../../../src/runtime/applied-updates.ts";
import { buildConsoleData } from "../../../src/runtime/console-data.ts";
import type { Reading } from "../../../src/telemetry/registry.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { observeProcess } from "../../../src/telemetry/process-gauges.ts";
import { startUpstream } from "../servers/upstream.ts";
import { listener, route, startDataPlane, staticBackend, to, type DataPlane } from "./data-plane.ts";

export interface Console {
  readonly url: string;
  readonly server: RunningServer;
  readonly plane: DataPlane;
  /** URL of the listener. */
  readonly gateway: string;
}

interface ConsoleOptions {
  readonly token?: string;
  /** Series of metrics that replace those of the process. */
  readonly series?: Readonly<Record<string, readonly Reading[]>>;
}

/** Starts a data plane with an upstream, and its admin server. */
export async function startConsole(
  t: TestContext,
  more: readonly Resource[] = [],
  { token, series = {} }: ConsoleOptions = {},
): Promise<Console> {
  const upstream = await startUpstream((_request, response) => response.end("hello"));
  t.after(() => upstream.close());
  const metrics = createMetrics("1.2.3");
  observeProcess(metrics);
  metrics.observe("config_synchronized", () => [{ values: [], value: 1 }]);
  const resources = [listener(), route("shop", [to("b")]), staticBackend("b", upstream.port), ...more];
  const plane = await startDataPlane(resources);
  t.after(() => plane.proxy.close());
  const applied = new AppliedUpdates();
  const filter = { level: "info" as const, modules: new Map() };
  const server = await startAdminServer({
    address: { host: "127.0.0.1", port: 0 },
    state: () => Promise.resolve({}),
    tasks: () => Promise.resolve({ tasks: [], truncated: false }),
    profile: () => Promise.resolve([]),
    explain: (name) => plane.proxy.explain(name),
    explainGateway: (name) => plane.proxy.explainGateway(name),
    async console(query) {
      const state = await plane.proxy.state();
      const read = (metric: string): readonly Reading[] => series[metric] ?? metrics.read(metric);
      const pending = new Set<string>();
      const sources = { state, applied, pending, source: "files" as const, version: "1.2.3", read, now: new Date() };
      return buildConsoleData(sources, query);
    },
    watch: (options) => plane.proxy.watch(options),
    filter,
    log: createLogger(filter, () => undefined),
    drain: () => Promise.resolve(),
    quit: () => undefined,
    token: token === undefined ? undefined : () => Promise.resolve(token),
  });
  t.after(() => server.close());
  return { url: `http://${server.address}/`, server, plane, gateway: plane.url };
}

/** Waits until an element shows the text. */
export async function waitForText(page: Page, selector: string, text: string): Promise<void> {
  await page.waitForFunction(
    (wanted, part) => [...document.querySelectorAll(wanted)].some((each) => each.textContent.includes(part)),
    {},
    selector,
    text,
  );
}
