/**
 * The console in a real Chromium, in front of a real data plane: each view in light and dark, by keyboard, at 360 pixels,
 * with 5,000 routes, with a token, without a connection, and with hostile bytes.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "puppeteer-core";
import { parseTraceFile, printTraceFile } from "../../src/console/model/trace.ts";
import type { Resource } from "../../src/ir/resource.ts";
import type { Reading } from "../../src/telemetry/registry.ts";
import { findBarriers, openPage, startBrowser } from "../support/clients/browser.ts";
import { call } from "../support/clients/http.ts";
import { HOSTILE_TEXT, traceEvents } from "../support/fixtures/trace-events.ts";
import { startConsole, waitForText } from "../support/gateway/console.ts";
import { policy, route, to } from "../support/gateway/data-plane.ts";

let browser: Browser;
let folder = "";

before(async () => {
  browser = await startBrowser();
  folder = mkdtempSync(join(tmpdir(), "gwproxy-console-"));
});

after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Each view with what it shows when it is complete. */
const VIEWS = [
  ["overview", "h3", "Listeners"],
  ["routes", "[role=option]", "default/shop"],
  ["routes/httproute/default/shop", ".policies del", "GwPolicy default/wide"],
  ["backends", "td", "GwBackend default/b"],
  ["models", ".empty", "No LLM request"],
  ["trace", ".empty", "See what one request meets"],
] as const;

const ON_GATEWAY = { target: { case: "gateway", value: "default/gw" } } as const;

const POLICIES: readonly Resource[] = [
  policy("wide", {
    targets: [ON_GATEWAY],
    units: [{ unit: { case: "timeouts", value: { requestMs: 30_000 } } }],
  }),
  policy("narrow", {
    targets: [{ target: { case: "route", value: "httproute/default/shop" } }],
    units: [{ unit: { case: "timeouts", value: { requestMs: 5_000 } } }],
  }),
];

/** Colours that fade in would be measured half-way. */
function mediaOf(scheme: string): { readonly name: string; readonly value: string }[] {
  return [
    { name: "prefers-color-scheme", value: scheme },
    { name: "prefers-reduced-motion", value: "reduce" },
  ];
}

/** Leads the page to a view and waits for it. */
async function showView(page: Page, [view, selector, text]: (typeof VIEWS)[number]): Promise<void> {
  await page.evaluate((hash) => void (location.hash = hash), `#/${view}`);
  await waitForText(page, selector, text);
}

test("every view is free of serious barriers in light and dark, fits 360 pixels, and breaks no rule of its policy", async (t) => {
  const { url } = await startConsole(t, POLICIES);
  const { page, errors } = await openPage(browser, url);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures(mediaOf(scheme));
    for (const width of [1180, 360]) {
      await page.setViewport({ width, height: 740 });
      for (const view of VIEWS) {
        await showView(page, view);
        assert.deepEqual(await findBarriers(page), [], `${view[0]}, ${scheme}, ${width}`);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `${view[0]}, ${scheme}`);
      }
    }
  }
  assert.deepEqual(errors, []);
  assert.equal(await page.$eval("header [data-state]", (badge) => badge.getAttribute("data-state")), "well");
});

test("motion is left out for those who ask for that", async (t) => {
  const { url } = await startConsole(t);
  const { page } = await openPage(browser, url);
  await page.waitForSelector("nav a");
  const duration = (): Promise<string> => page.$eval("nav a", (link) => getComputedStyle(link).transitionDuration);
  assert.notEqual(await duration(), "0s");
  await page.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
  assert.equal(await duration(), "0s");
});

test("a route says why it behaves so: the winner, and the loser struck through with the reason", async (t) => {
  const { url } = await startConsole(t, POLICIES);
  const { page } = await openPage(browser, `${url}#/routes/httproute/default/shop`);
  await waitForText(page, ".sources", "GwPolicy default/narrow spec.traffic.timeouts");
  assert.equal(
    await page.$eval(".lost del", (lost) => lost.textContent),
    "GwPolicy default/wide spec.traffic.timeouts",
  );
  await waitForText(page, ".lost", "which is on the route and so more specific");
});

test("of 5,000 routes those in sight are in the document, and all are reached by keyboard and filter", async (t) => {
  const many = Array.from({ length: 4999 }, (_, at) => route(`r${String(at).padStart(4, "0")}`, [to("b")]));
  const { url } = await startConsole(t, many);
  const { page } = await openPage(browser, `${url}#/routes`);
  await waitForText(page, ".count", "5,000 routes");
  assert.ok((await page.$$("[role=option]")).length < 60);
  assert.ok(await page.evaluate(() => document.querySelectorAll("*").length < 600), "the whole document is small");
  await page.focus("[role=listbox]");
  await page.keyboard.press("End");
  await waitForText(page, "[role=option].active", "default/shop");
  assert.equal(await page.$eval("[role=option].active", (option) => option.getAttribute("aria-posinset")), "5000");
  await page.keyboard.press("ArrowUp");
  await waitForText(page, "[role=option].active", "default/r4998");
  await page.keyboard.press("Enter");
  await waitForText(page, ".detail h3", "HTTPRoute default/r4998");
  assert.ok((await page.$$("[role=option]")).length < 60);
  await page.type("#route-filter", "R0042");
  await waitForText(page, ".count", "1 of 5,000 routes");
  assert.deepEqual(await findBarriers(page), []);
});

test("costs are added up by the label that is chosen", async (t) => {
  const reading = (value: number, model: string, team: string, more: Record<string, string> = {}): Reading => {
    return { labels: { gen_ai_request_model: model, team, ...more }, value, count: 2 };
  };
  const { url } = await startConsole(t, [], {
    series: {
      gen_ai_server_request_duration: [reading(1, "small", "red"), reading(1, "large", "red")],
      gen_ai_client_token_usage: [reading(1234, "large", "red", { gen_ai_token_type: "input" })],
      gen_ai_client_cost_usd_total: [reading(0.5, "large", "red")],
      cost_catalog_lookups_total: [reading(2, "small", "red", { status: "Missing" })],
    },
  });
  const { page } = await openPage(browser, `${url}#/models`);
  const rows = (): Promise<string[]> =>
    page.$$eval("tbody tr", (found) =>
      found.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent).join(" | ")),
    );
  await waitForText(page, "td", "large");
  assert.deepEqual(await rows(), ["large | 2 | 1,234 | 0 | 0 | 0 | $0.50", "small | 2 | 0 | 0 | 0 | 0 | no price"]);
  for (const width of [1180, 360]) {
    await page.setViewport({ width, height: 740 });
    assert.deepEqual(await findBarriers(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  }
  await page.select("#usage-label", "team");
  await waitForText(page, "td", "red");
  assert.deepEqual(await rows(), ["red | 4 | 1,234 | 0 | 0 | 0 | $0.50 without 2 unpriced requests"]);
});

test("the token is asked for, and forgotten with the page", async (t) => {
  const { url } = await startConsole(t, [], { token: "right-token" });
  const { page } = await openPage(browser, url);
  await page.waitForSelector("#token");
  assert.deepEqual(await findBarriers(page), []);
  await page.type("#token", "wrong-token");
  await page.keyboard.press("Enter");
  await waitForText(page, "form", "This token was refused.");
  await page.$eval("#token", (input) => (input instanceof HTMLInputElement ? (input.value = "") : undefined));
  await page.type("#token", "right-token");
  await page.keyboard.press("Enter");
  await waitForText(page, "h3", "Listeners");
  assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [
    0,
    0,
    "",
  ]);
  await page.reload();
  await page.waitForSelector("#token");
});

test("a data plane that went away is said to be away, and what was known stays", async (t) => {
  const { url, server } = await startConsole(t);
  const { page } = await openPage(browser, url);
  await waitForText(page, "h3", "Listeners");
  await server.close();
  await page.waitForSelector("header [data-state=disconnected]");
  await waitForText(page, "[role=alert]", "The data plane does not answer (");
  await waitForText(page, "h3", "Listeners");
  assert.deepEqual(await findBarriers(page), []);
});

test("a recording is opened from a file, drawn as a waterfall, walked by keyboard, and saved as it was", async (t) => {
  const { url } = await startConsole(t);
  const { page, errors } = await openPage(browser, `${url}#/trace`);
  const file = join(folder, "recorded.jsonl");
  writeFileSync(file, printTraceFile(traceEvents()));
  const input = await page.waitForSelector("input[type=file]");
  await input?.uploadFile(file);
  await page.waitForSelector(".waterfall .step");
  assert.equal((await page.$$(".waterfall .step")).length, traceEvents().length);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures(mediaOf(scheme));
    assert.deepEqual(await findBarriers(page), [], scheme);
  }
  await page.focus(".waterfall .step");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-pressed")), "true");
  await waitForText(page, ".step-detail h3", "Policies");
  await saveRecording(page);
  const saved = parseTraceFile(readFileSync(join(folder, "trace.jsonl"), "utf8"));
  assert.deepEqual(saved, { events: traceEvents(), unreadable: 0 });
  assert.deepEqual(errors, []);
});

/** Clicks the link and waits for the file. */
async function saveRecording(page: Page): Promise<void> {
  const session = await browser.target().createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder, eventsEnabled: true });
  const done = new Promise<void>((resolve) =>
    session.on("Browser.downloadProgress", ({ state }) => {
      if (state === "completed") resolve();
    }),
  );
  await page.click("a[download]");
  await done;
  await session.detach();
}

test("bytes of a hostile client are text and nothing else", async (t) => {
  const { url } = await startConsole(t);
  const { page, errors } = await openPage(browser, `${url}#/trace`);
  const file = join(folder, "hostile.jsonl");
  writeFileSync(file, printTraceFile(traceEvents(HOSTILE_TEXT)));
  const input = await page.waitForSelector("input[type=file]");
  await input?.uploadFile(file);
  await page.waitForSelector(".waterfall .step");
  let shown = "";
  for (const step of await page.$$(".waterfall .step")) {
    await step.click();
    shown += await page.$eval(".step-detail pre", (content) => content.textContent);
    assert.equal(
      await page.evaluate(() => document.querySelectorAll("main img, main script, main iframe, main b").length),
      0,
    );
  }
  assert.ok(shown.includes(HOSTILE_TEXT), "the body is shown as it was sent");
  assert.equal(await page.evaluate(() => "hacked" in globalThis), false);
  assert.deepEqual(errors, []);
  await page.setViewport({ width: 360, height: 740 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
});

test("the next request is traced step by step, and one that an expression chooses", async (t) => {
  const { url, gateway } = await startConsole(t, POLICIES);
  const { page, errors } = await openPage(browser, `${url}#/trace`);
  await page.type("#expression", "request.path == '/chosen'");
  await page.keyboard.press("Enter");
  await waitForText(page, ".phase", "Waiting for a request.");
  await call(`${gateway}/other`);
  await call(`${gateway}/chosen`, { headers: { authorization: "Bearer secret-of-the-client", "x-note": HOSTILE } });
  await page.waitForSelector("a[download]");
  await waitForText(page, ".step-title", "Response sent");
  await waitForText(page, ".step", "HTTPRoute default/shop rule 0");
  await waitForText(page, ".step", "Policy timeouts");
  await page.click(".waterfall li:nth-child(2) .step");
  const shown = await page.$eval(".step-detail pre", (content) => content.textContent);
  assert.match(shown, /"path": "\/chosen"/);
  assert.match(shown, /<redacted>/);
  assert.ok(shown.includes(JSON.stringify(HOSTILE)));
  assert.doesNotMatch(await page.content(), /secret-of-the-client/);
  assert.deepEqual(await findBarriers(page), []);
  assert.deepEqual(errors, []);
});

/** Hostile, and yet a value that a header field can have. */
const HOSTILE = "<img src=x onerror=alert(1)>";

test("an expression that cannot be read is said to be wrong, and a recording is stopped", async (t) => {
  const { url } = await startConsole(t);
  const { page } = await openPage(browser, `${url}#/trace`);
  await page.type("#expression", "request.path ==");
  await page.keyboard.press("Enter");
  await waitForText(page, ".phase .bad", "invalid expression: ");
  await page.$eval("#expression", (input) => void (input instanceof HTMLInputElement && input.select()));
  await page.type("#expression", "true");
  await page.keyboard.press("Enter");
  await waitForText(page, ".phase", "Waiting for a request.");
  assert.deepEqual(await findBarriers(page), []);
  await page.click("form button");
  await waitForText(page, "form button", "Trace the next request");
});

test("requests that the listener serves show as a rate", async (t) => {
  const { url, gateway } = await startConsole(t);
  const { page } = await openPage(browser, `${url}#/backends`);
  assert.equal((await call(gateway)).status, 200);
  await page.waitForFunction(() => /in rotation[^]*1/.test(document.querySelector("tbody")?.textContent ?? ""));
});
