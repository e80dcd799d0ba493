/** What the console in a real Chromium says about policies of calls and of connections. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "puppeteer-core";
import { findBarriers, openPage, startBrowser } from "../support/clients/browser.ts";
import { startConsole, waitForText } from "../support/gateway/console.ts";
import { modelBackend, policy, prefix, route, to } from "../support/gateway/data-plane.ts";

let browser: Browser;

before(async () => {
  browser = await startBrowser();
});

after(() => browser.close());

const ON_GATEWAY = { target: { case: "gateway", value: "default/gw" } } as const;

test("a route shows the calls of a provider that a policy names, and those of its mirror", async (t) => {
  const more = [
    route("llm", [
      to("ai", {
        matches: prefix("/v1"),
        filters: [
          { filter: { case: "mirror", value: { backend: "backend/default/b", numerator: 1, denominator: 4 } } },
        ],
      }),
    ]),
    modelBackend("ai", 1, "", "fast"),
    policy("fast", {
      targets: [{ target: { case: "backend", value: "backend/default/ai" }, section: "fast" }],
      backend: { http: { requestTimeoutMs: 1000 } },
    }),
    policy("calls", { targets: [ON_GATEWAY], backend: { tcp: { connectTimeoutMs: 5000 } } }),
  ];
  const { url } = await startConsole(t, more);
  const { page } = await openPage(browser, `${url}#/routes/httproute/default/llm`);
  await waitForText(page, "h5", "Calls to backend/default/ai");
  await waitForText(page, "h5", "Calls to fast of backend/default/ai");
  await waitForText(page, ".sources", "GwPolicy default/fast spec.backend.http on the provider or target");
  await waitForText(page, "h5", "Copies to backend/default/b, 25 %");
  assert.deepEqual(await findBarriers(page), []);
});

test("below the listeners stand the settings of their connections, opened by keyboard, and why a port refuses all", async (t) => {
  const onPort = { ...ON_GATEWAY, port: 80 };
  const http = { http: { maxBufferBytes: 9000 } };
  const more = [
    policy("wide", { targets: [ON_GATEWAY], frontend: { ...http, keepalive: { timeMs: 1000 }, accessLog: {} } }),
    policy("narrow", { targets: [onPort], frontend: http }),
  ];
  const { url, plane } = await startConsole(t, more);
  const { page, errors } = await openPage(browser, url);
  await page.waitForSelector(".connections summary");
  assert.equal(await page.$(".connections .policies"), null, "nothing is fetched before it is wanted");
  await page.focus(".connections summary");
  await page.keyboard.press("Enter");
  await waitForText(page, ".connections h4", "Port 80");
  const rows = await page.$$eval(".connections .policies > li", (found) =>
    found.map((row) => [...row.querySelectorAll("p, li")].map((each) => each.textContent.trim())),
  );
  const won = (field: string, name = "wide", level = "on the Gateway"): string =>
    `GwPolicy default/${name} spec.frontend.${field} ${level}`;
  assert.deepEqual(rows, [
    ["accessLog", won("accessLog")],
    [
      "http",
      won("http", "narrow", "on the port"),
      `${won("http", "wide", "lost to GwPolicy default/narrow spec.frontend.http, which is on the port and so more specific")}`,
    ],
    ["tcp.keepalive", won("tcp.keepalive")],
  ]);
  for (const width of [1180, 360]) {
    await page.setViewport({ width, height: 740 });
    assert.deepEqual(await findBarriers(page), [], String(width));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  }
  await plane.proxy.apply({
    set: [policy("bad", { targets: [onPort], units: [{ unit: { case: undefined } }] })],
    removed: [],
  });
  await page.click(".connections summary");
  await page.waitForFunction(() => document.querySelector(".connections h4") === null);
  await page.click(".connections summary");
  await waitForText(page, ".connections .notice", "Every connection is refused: GwPolicy default/bad is invalid");
  assert.deepEqual(errors, []);
});
