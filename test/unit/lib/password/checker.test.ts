import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createPasswordChecker } from "../../../../src/lib/password/checker.ts";
import { TurnQueue } from "../../../../src/lib/password/turn-queue.ts";
import { HTPASSWD } from "../../../support/fixtures/htpasswd.ts";
import { testClock } from "../../../support/gateway/test-clock.ts";

const ANN = { group: "policy/a", source: "192.0.2.1" };
const SLOW = "$2y$12$GJDnI6BMAwGu7vEUgAffTe6t8BiJEPidW8OfTBAt.unLhxqGATILa";

test("answers come back to their own questions, however many threads there are", async (t) => {
  // The clock stands still: however busy the machine is, no question waits too long.
  const checker = createPasswordChecker({ maxThreads: 2, clock: testClock() });
  t.after(() => checker.close());
  const answers = await Promise.all(
    HTPASSWD.flatMap(({ password, hash }) => [
      checker.check(Buffer.from(password), hash, ANN),
      checker.check(Buffer.from("neither of them"), hash, ANN),
    ]),
  );
  assert.deepEqual(
    answers,
    HTPASSWD.flatMap(() => [true, false]),
  );
});

test("the thread of the caller stays free while a password is checked", async (t) => {
  const checker = createPasswordChecker({ maxThreads: 1 });
  t.after(() => checker.close());
  let turns = 0;
  let answer: boolean | "overloaded" | undefined;
  void checker.check(Buffer.from("x"), SLOW, ANN).then((verdict) => (answer = verdict));
  while (answer === undefined) {
    await setImmediate();
    turns++;
  }
  assert.equal(answer, false);
  assert.ok(turns > 100, `${turns} turns of the event loop`);
});

test("only so many may wait, and closing answers those who do", async () => {
  const checker = createPasswordChecker({ maxThreads: 1, maxWaiting: 2 });
  const first = checker.check(Buffer.from("x"), SLOW, ANN);
  const second = checker.check(Buffer.from("x"), SLOW, ANN);
  const third = checker.check(Buffer.from("x"), SLOW, ANN);
  assert.equal(await checker.check(Buffer.from("x"), SLOW, ANN), "overloaded");
  checker.close();
  assert.deepEqual(await Promise.all([first, second, third]), ["overloaded", "overloaded", "overloaded"]);
  assert.equal(await checker.check(Buffer.from("x"), SLOW, ANN), "overloaded");
});

const QUICK = "$2y$05$wkcVS32lLf0d7TKFTIb33eaBWOpkpIP1d4YahqSiteTx5gt0zpMAe";
const asker = (group: string, source: string) => ({ group, source });

test("who has waited two seconds for a turn is turned away, and the rest goes on", async (t) => {
  const clock = testClock();
  const checker = createPasswordChecker({ maxThreads: 1, clock });
  t.after(() => checker.close());
  const running = checker.check(Buffer.from("x"), SLOW, ANN);
  const early = checker.check(Buffer.from("secret"), QUICK, ANN);
  await clock.advance(1000);
  const late = checker.check(Buffer.from("secret"), QUICK, ANN);
  await clock.advance(1500);
  assert.equal(await early, "overloaded");
  assert.deepEqual(await Promise.all([running, late]), [false, true]);
  assert.deepEqual(clock.waiting(), []);
});

test("a network that guessed wrong waits behind those that did not, and gets every other turn", async (t) => {
  const checker = createPasswordChecker({ maxThreads: 1, clock: testClock() });
  t.after(() => checker.close());
  const guessers = [...Array(10).keys()].map((at) => asker("policy/a", `198.51.100.${at}`));
  await Promise.all(guessers.map((guesser) => checker.check(Buffer.from("wrong"), QUICK, guesser)));
  const order: string[] = [];
  const check = async (password: string, from: typeof ANN): Promise<void> => {
    await checker.check(Buffer.from(password), QUICK, from);
    order.push(from.source);
  };
  const guesses = guessers.flatMap((guesser) => [check("1", guesser), check("2", guesser)]);
  await Promise.all([...guesses, check("secret", ANN), check("secret", asker("policy/b", "other"))]);
  assert.equal(order.length, 22);
  assert.ok(order.indexOf(ANN.source) <= 4, order.join(" "));
  assert.ok(order.indexOf("other") <= 4, order.join(" "));
});

test("a full queue makes room for who holds little in it, at the cost of guessers and of who holds most", async (t) => {
  const checker = createPasswordChecker({ maxThreads: 1, maxWaiting: 4, clock: testClock() });
  t.after(() => checker.close());
  const many = [...Array(5).keys()].map(() => checker.check(Buffer.from("x"), SLOW, ANN));
  assert.equal(await checker.check(Buffer.from("x"), SLOW, ANN), "overloaded");
  const other = checker.check(Buffer.from("secret"), QUICK, asker("policy/a", "192.0.2.2"));
  const elsewhere = checker.check(Buffer.from("secret"), QUICK, asker("policy/b", "192.0.2.1"));
  assert.deepEqual(await Promise.all(many.slice(3)), ["overloaded", "overloaded"]);
  assert.deepEqual(await Promise.all([...many.slice(0, 1), other, elsewhere]), [false, true, true]);
});

test("groups take turns, then their sources, and the jobs of one source keep their order", () => {
  const queue = new TurnQueue<{ readonly asker: typeof ANN; readonly name: string }>();
  for (const name of ["a1 1", "a1 2", "a1 3", "a2 1", "b1 1", "b1 2"]) {
    queue.push({ name, asker: asker(name.charAt(0), name.slice(0, 2)) });
  }
  const order: string[] = [];
  for (let job = queue.shift(); job !== undefined; job = queue.shift()) order.push(job.name);
  assert.deepEqual(order, ["a1 1", "b1 1", "a2 1", "b1 2", "a1 2", "a1 3"]);
  assert.equal(queue.size, 0);
  assert.equal(queue.dropNewest(), undefined);
});
