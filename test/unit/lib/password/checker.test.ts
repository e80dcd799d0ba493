import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createPasswordChecker } from "../../../../src/lib/password/checker.ts";
import { HTPASSWD } from "../../../support/htpasswd.ts";

const SLOW = "$2y$12$GJDnI6BMAwGu7vEUgAffTe6t8BiJEPidW8OfTBAt.unLhxqGATILa";

test("answers come back to their own questions, however many threads there are", async (t) => {
  const checker = createPasswordChecker({ maxThreads: 2 });
  t.after(() => checker.close());
  const answers = await Promise.all(
    HTPASSWD.flatMap(({ password, hash }) => [
      checker.check(Buffer.from(password), hash),
      checker.check(Buffer.from("neither of them"), hash),
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
  void checker.check(Buffer.from("x"), SLOW).then((verdict) => (answer = verdict));
  while (answer === undefined) {
    await setImmediate();
    turns++;
  }
  assert.equal(answer, false);
  assert.ok(turns > 100, `${turns} turns of the event loop`);
});

test("only so many may wait, and closing answers those who do", async () => {
  const checker = createPasswordChecker({ maxThreads: 1, maxWaiting: 2 });
  const first = checker.check(Buffer.from("x"), SLOW);
  const second = checker.check(Buffer.from("x"), SLOW);
  const third = checker.check(Buffer.from("x"), SLOW);
  assert.equal(await checker.check(Buffer.from("x"), SLOW), "overloaded");
  checker.close();
  assert.deepEqual(await Promise.all([first, second, third]), ["overloaded", "overloaded", "overloaded"]);
  assert.equal(await checker.check(Buffer.from("x"), SLOW), "overloaded");
});
