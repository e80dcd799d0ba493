import assert from "node:assert/strict";
import { test } from "node:test";
import { ValidatedTextCache } from "../../../../src/admission/checks/validated-text-cache.ts";

function ask(sound: ValidatedTextCache, text: string, rules = "a"): boolean {
  let isAsked = false;
  sound.check(rules, text, () => {
    isAsked = true;
    return [];
  });
  return isAsked;
}

test("a sound text is checked once for each set of rules, and a faulty one each time", () => {
  const sound = new ValidatedTextCache(8);
  assert.equal(ask(sound, "x"), true);
  assert.equal(ask(sound, "x"), false);
  assert.equal(ask(sound, "x", "b"), true);
  assert.deepEqual(
    [1, 2].map((fault) => sound.check("a", "y", () => [fault])),
    [[1], [2]],
  );
});

test("what was asked for lately stays, whatever else comes, and the rest goes", () => {
  const sound = new ValidatedTextCache(4);
  ask(sound, "often");
  for (let at = 0; at < 100; at++) {
    assert.equal(ask(sound, `once ${at}`), true);
    assert.equal(ask(sound, "often"), false);
  }
  assert.equal(ask(sound, "once 0"), true);
});
