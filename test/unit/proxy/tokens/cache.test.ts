import assert from "node:assert/strict";
import { test } from "node:test";
import type { Abortable } from "../../../../src/proxy/exchange/exchange.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { TokenCache, type TokenCacheOptions } from "../../../../src/proxy/tokens/cache.ts";
import { CredentialReport } from "../../../../src/proxy/tokens/report.ts";
import { directBroker, type FetchedToken } from "../../../../src/proxy/tokens/token.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";

const CALLER = { onAbort: (): void => undefined };
const MARGIN_MS = 60_000;

/** A cache on a clock of its own, and a source whose answers the test gives. */
function setUp(options: Partial<TokenCacheOptions> = {}) {
  const { log, lines } = recordingLog();
  const results: string[] = [];
  const report = new CredentialReport("cloudB", "GwBackend default/web spec.policies.auth", {
    log,
    onFetched: (kind, result) => results.push(`${kind} ${result}`),
  });
  const clock = { nowMs: 1_000_000 };
  const cache = new TokenCache<string>(
    { kind: "cloudB", place: "", block: "b", marginMs: MARGIN_MS, maxEntries: 2, timeoutMs: 5_000, ...options },
    { broker: directBroker, report, nowMs: () => clock.nowMs },
  );
  const pending: PromiseWithResolvers<FetchedToken<string>>[] = [];
  const get = (key = "k"): string | Promise<string> =>
    cache.get(key, CALLER, () => {
      const call = Promise.withResolvers<FetchedToken<string>>();
      pending.push(call);
      return call.promise;
    });
  /** Answers the call that was made first. */
  const answer = (value: string, lifetimeMs: number): void =>
    pending.shift()?.resolve({ value, fetchedAtMs: clock.nowMs, expiresAtMs: clock.nowMs + lifetimeMs });
  /** Lets what was answered settle. */
  const settle = (): Promise<void> => new Promise(setImmediate);
  return { cache, clock, pending, get, answer, settle, report, lines, results };
}

test("misses share one call, and hits are there at once", async () => {
  const { get, answer, pending } = setUp();
  const waiting = Array.from({ length: 200 }, () => get());
  assert.equal(pending.length, 1);
  answer("t1", 3_600_000);
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(["t1"]));
  assert.equal(get(), "t1");
});

test("the last quarter of the usable life renews without waiting, and a failed renewal changes nothing", async () => {
  const { clock, get, answer, pending, settle, report, results } = setUp();
  const first = get();
  answer("t1", MARGIN_MS + 400_000);
  await first;
  clock.nowMs += 299_999;
  assert.equal(get(), "t1");
  assert.equal(pending.length, 0, "three quarters are not over");
  clock.nowMs += 1;
  assert.equal(get(), "t1", "nobody waits for a renewal");
  assert.equal(get(), "t1");
  assert.equal(pending.length, 1, "one renewal at a time");
  pending.shift()?.reject(new Error("down"));
  await settle();
  assert.equal(get(), "t1");
  assert.equal(pending.length, 0, "not more than once a second");
  clock.nowMs += 1_000;
  assert.equal(get(), "t1");
  assert.equal(pending.length, 1);
  answer("t2", 3_600_000);
  await settle();
  assert.equal(get(), "t2");
  assert.deepEqual(results, ["cloudB ok", "cloudB error", "cloudB ok"]);
  assert.equal(report.dump().lastError, "down");
});

test("nothing is used within the margin, and what lives shorter is used once", async () => {
  const { clock, get, answer, pending } = setUp();
  const first = get();
  answer("t1", MARGIN_MS + 1_000);
  await first;
  clock.nowMs += 1_000;
  const second = get();
  answer("t2", MARGIN_MS);
  assert.equal(await second, "t2");
  const third = get();
  assert.equal(pending.length, 1, "t2 was not kept");
  answer("t3", 0);
  await assert.rejects(Promise.resolve(third), { code: "credential_unavailable" });
});

test("a failure reaches all who wait and is not kept; the log names the first one and the recovery", async () => {
  const { get, answer, pending, lines } = setUp();
  for (let round = 0; round < 2; round++) {
    const waiting = [get(), get()];
    pending.shift()?.reject(new ProxyError("credential_unavailable", { detail: "status 401" }));
    for (const each of waiting) await assert.rejects(Promise.resolve(each), { detail: "status 401" });
  }
  const last = get();
  answer("t1", 3_600_000);
  await last;
  assert.equal(lines.length, 2, lines.join("\n"));
  assert.match(lines[0] ?? "", /a credential cannot be fetched.*status 401/);
  assert.match(lines[1] ?? "", /credentials are fetched again/);
  assert.doesNotMatch(lines.join(), /t1/);
});

test("a refusal because of the client's token is not logged", async () => {
  const { get, pending, lines, results } = setUp();
  const waiting = get();
  pending.shift()?.reject(new ProxyError("request_invalid"));
  await assert.rejects(Promise.resolve(waiting), { code: "request_invalid" });
  assert.deepEqual([lines, results], [[], ["cloudB refused"]]);
});

test("the least recent entry leaves a full cache, and a size of 0 keeps nothing", async () => {
  const { get, answer, pending } = setUp();
  for (const key of ["a", "b", "c"]) {
    const waiting = get(key);
    answer(key, 3_600_000);
    await waiting;
  }
  assert.equal(get("b"), "b");
  const again = get("a");
  assert.equal(pending.length, 1);
  answer("a", 3_600_000);
  await again;
  const none = setUp({ maxEntries: 0 });
  for (let round = 0; round < 2; round++) {
    const waiting = none.get();
    none.answer("t", 3_600_000);
    assert.equal(await waiting, "t");
  }
});

test("a caller that leaves stops waiting, and the call goes on for the others", async () => {
  const { cache, get, answer } = setUp();
  const stays = get();
  let leave = (_error: Error): void => assert.fail("it waits");
  const leaver = { onAbort: ({ abort }: Abortable): void => void (leave = abort) };
  const left = Promise.resolve(cache.get("k", leaver, () => assert.fail("one call is on its way")));
  leave(new Error("gone"));
  await assert.rejects(left, /gone/);
  answer("t", 3_600_000);
  assert.equal(await stays, "t");
});
