/** Drives a real Chromium, for tests of the console. The browser is a package of the system, as a user has it. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import axe from "axe-core";
import puppeteer, { type Browser, type Page } from "puppeteer-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export async function startBrowser(): Promise<Browser> {
  const executablePath = process.env["CHROMIUM"] ?? PLACES.find((path) => existsSync(path));
  assert.ok(executablePath !== undefined, "a browser is needed: apt-get install chromium, or name one by CHROMIUM");
  // Tests run as root in containers, where the sandbox of Chromium cannot be set up. The pages are our own.
  return puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

export interface TestPage {
  readonly page: Page;
  /** Errors of scripts, and what the browser refused to load or run. */
  readonly errors: string[];
}

export async function openPage(browser: Browser, url: string): Promise<TestPage> {
  const page = await browser.newPage();
  // Bounds a test that would wait for ever; a busy machine may be slow.
  page.setDefaultTimeout(120_000);
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  await page.goto(url);
  return { page, errors };
}

/** Returns what axe-core finds serious or critical, as "rule: element". */
export async function findBarriers(page: Page): Promise<string[]> {
  // Runs outside of the page's own policy, as extensions do.
  await page.evaluate(axe.source);
  // The expression is typed by what it returns, which axe-core documents.
  const found = (await page.evaluate(
    `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations.flatMap(({ id, impact, nodes }) =>
      nodes.map(({ target }) => ({ id, impact, target: String(target) }))))`,
  )) as readonly { readonly id: string; readonly impact: string; readonly target: string }[];
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, target }) => `${id}: ${target}`);
}
