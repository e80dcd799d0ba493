/** The paths below /debug/pprof: the reference tool opens the profiles, and finds our functions in them. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { gunzipSync } from "node:zlib";
import { startAdminServer } from "../../../src/admin/server.ts";
import { captureProfile, type ProfileRequest, type ThreadProfile } from "../../../src/lib/profiling/capture.ts";
import { printPprof } from "../../../src/lib/profiling/pprof.ts";
import { createLogger, type LogFilter } from "../../../src/lib/log.ts";
import { call } from "../../support/clients/http.ts";

type Profile = (request: ProfileRequest, signal: AbortSignal) => Promise<readonly ThreadProfile[]>;

async function startAdmin(t: TestContext, profile: Profile): Promise<string> {
  const filter: LogFilter = { level: "info", modules: new Map() };
  const server = await startAdminServer({
    address: { host: "127.0.0.1", port: 0 },
    state: () => Promise.resolve({}),
    explain: () => Promise.resolve([]),
    explainGateway: () => Promise.resolve([]),
    watch: () => Promise.resolve({ ok: false, code: "too_many", reason: "no" }),
    console: () => Promise.resolve({}),
    tasks: () => Promise.resolve({ tasks: [], truncated: false }),
    profile,
    filter,
    log: createLogger(filter, () => undefined),
    drain: () => Promise.resolve(),
    quit: () => undefined,
  });
  t.after(() => server.close());
  return `http://${server.address}`;
}

/** A function that uses the CPU and keeps memory, by a name that the profiles must show. */
function burnForProfiles(untilMs: number, kept: unknown[]): number {
  let sum = 0;
  while (performance.now() < untilMs) {
    for (let at = 0; at < 10_000; at++) sum += Math.sqrt(at * sum);
    if (kept.length < 2_000) kept.push(Array.from({ length: 1_000 }, (_, at) => ({ at })));
  }
  return sum;
}

async function profileOfThisThread(kind: ProfileRequest["kind"]): Promise<{ bytes: Uint8Array; kept: unknown[] }> {
  const request = { kind, seconds: 0.5, frequency: 1_000 };
  const kept: unknown[] = [];
  const captured = captureProfile(request);
  // The capture has to begin before the loop blocks this thread.
  await new Promise((resolve) => setTimeout(resolve, 50));
  burnForProfiles(performance.now() + 300, kept);
  return { bytes: printPprof([await captured], request, Date.now()), kept };
}

for (const kind of ["cpu", "heap"] as const)
  test(`go tool pprof opens a ${kind} profile and shows our functions and files`, async (t) => {
    if (spawnSync("go", ["version"]).error !== undefined) return t.skip("go is not installed");
    const folder = mkdtempSync(join(tmpdir(), "gwproxy-pprof-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const { bytes } = await profileOfThisThread(kind);
    const file = join(folder, "profile.pb");
    writeFileSync(file, bytes);
    const printed = execFileSync("go", ["tool", "pprof", "-top", "-nodecount=200", file], { encoding: "utf8" });
    assert.match(printed, kind === "cpu" ? /Type: cpu/ : /Type: inuse_space/);
    assert.match(printed, /burnForProfiles/);
    const raw = execFileSync("go", ["tool", "pprof", "-raw", file], { encoding: "utf8" });
    assert.match(raw, /burnForProfiles .*pprof\.test\.ts:\d+/);
    assert.match(raw, /thread:\[?0/);
  });

test("seconds and frequency out of range are the defaults, and a second profile is refused", async (t) => {
  const asked: ProfileRequest[] = [];
  const waiting: ((profiles: readonly ThreadProfile[]) => void)[] = [];
  const admin = await startAdmin(t, (request) => {
    asked.push(request);
    return new Promise((resolve) => waiting.push(resolve));
  });
  const cases: readonly (readonly [string, number, number])[] = [
    ["", 10, 100],
    ["?seconds=300&frequency=1000", 300, 1_000],
    ["?seconds=301&frequency=1001", 10, 100],
    ["?seconds=0&frequency=0", 10, 100],
    ["?seconds=endless&frequency=-1", 10, 100],
    ["?seconds=1e9", 10, 100],
  ];
  for (const [query, seconds, frequency] of cases) {
    const answer = call(`${admin}/debug/pprof/profile${query}`);
    while (waiting.length === 0) await new Promise(setImmediate);
    const second = await call(`${admin}/debug/pprof/heap`);
    assert.equal(second.status, 409);
    waiting.pop()?.([]);
    assert.equal((await answer).status, 200);
    assert.deepEqual(asked.pop(), { kind: "cpu", seconds, frequency });
  }
});

test("a profile whose client has gone away ends at once, and frees the way for the next", async (t) => {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const admin = await startAdmin(t, async (request, signal) => {
    if (request.kind === "heap") return [];
    started.resolve();
    const profile = await captureProfile(request, signal);
    ended.resolve();
    return [profile];
  });
  const client = new AbortController();
  const answer = fetch(`${admin}/debug/pprof/profile?seconds=300`, { signal: client.signal });
  await started.promise;
  client.abort();
  await assert.rejects(answer);
  await ended.promise;
  assert.equal((await call(`${admin}/debug/pprof/heap`)).status, 200);
});

test("a profile is compressed, and one that fails frees the way for the next", async (t) => {
  let fails = true;
  const admin = await startAdmin(t, () => (fails ? Promise.reject(new Error("no")) : Promise.resolve([])));
  assert.equal((await call(`${admin}/debug/pprof/heap`)).status, 500);
  fails = false;
  const answer = await fetch(`${admin}/debug/pprof/heap`);
  assert.equal(answer.headers.get("content-type"), "application/octet-stream");
  assert.match(gunzipSync(await answer.arrayBuffer()).toString("latin1"), /inuse_space/);
});
