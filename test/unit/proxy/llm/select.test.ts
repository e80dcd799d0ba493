/** The choice of a provider inside the groups. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ProviderHealth, selectProvider } from "../../../../src/proxy/llm/select.ts";

function draws(...values: number[]): () => number {
  return () => values.shift() ?? 0;
}

test("of two draws the better score wins, and the same one may be drawn twice", () => {
  const good = { health: new ProviderHealth() };
  const bad = { health: new ProviderHealth() };
  bad.health.sample(false, 10);
  const groups = [[bad, good]];
  assert.equal(selectProvider(groups, draws(0, 0.9)), good);
  assert.equal(selectProvider(groups, draws(0.9, 0)), good);
  assert.equal(selectProvider(groups, draws(0, 0)), bad);
});

test("the first group with members serves", () => {
  const second = { health: new ProviderHealth() };
  assert.equal(selectProvider([[], [second]]), second);
  assert.equal(selectProvider([[], []]), undefined);
});

test("health falls with failures, and a slow provider loses more with every request in flight", () => {
  const health = new ProviderHealth();
  assert.equal(health.score, 1);
  health.sample(false, 0);
  assert.equal(health.score, 0.7);
  const slow = new ProviderHealth();
  slow.sample(true, 1000);
  assert.equal(slow.score, 1 / 1.3);
  slow.begin();
  assert.equal(slow.score, 1 / (1 + 0.3 * 1.1));
  slow.end();
  assert.equal(slow.score, 1 / 1.3);
});
