/** The choice of a provider inside the groups. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hashEndpoint } from "../../../../src/proxy/balancing/affinity.ts";
import type { BalancedEndpoint } from "../../../../src/proxy/balancing/pick.ts";
import { ProviderGroups } from "../../../../src/proxy/llm/call/select.ts";
import { testMembers } from "../../../support/gateway/endpoints.ts";

interface Named extends BalancedEndpoint {
  readonly name: string;
}

test("the first group with a member in rotation serves, and a member out of it when there is none", () => {
  const deps = testMembers();
  const provider = (name: string): Named => ({
    name,
    record: deps.record(name),
    capacity: 1,
    hash: hashEndpoint(name),
  });
  const [a, b, c] = [provider("a"), provider("b"), provider("c")];
  const groups = new ProviderGroups([[], [a], [b, c]]);
  const chosen = () => groups.select(deps)?.name;
  assert.equal(chosen(), "a");
  a.record.evict(1000, undefined, deps.now);
  b.record.evict(5000, undefined, deps.now);
  assert.equal(chosen(), "c");
  c.record.evict(500, undefined, deps.now);
  assert.equal(chosen(), "a", "all are out");
  deps.now += 500;
  assert.equal(chosen(), "c");
  deps.now += 500;
  assert.equal(chosen(), "a");
});

test("a provider that failed this request is left out within its group, and a lower group is not touched for it", () => {
  const deps = testMembers();
  const provider = (name: string): Named => ({
    name,
    record: deps.record(name),
    capacity: 1,
    hash: hashEndpoint(name),
  });
  const [a, b, c] = [provider("a"), provider("b"), provider("c")];
  const groups = new ProviderGroups([[a, b], [c]]);
  for (let at = 0; at < 20; at++) assert.equal(groups.select(deps, { affinity: undefined, tried: [a] })?.name, "b");
  const again = new Set(
    Array.from({ length: 40 }, () => groups.select(deps, { affinity: undefined, tried: [a, b] })?.name),
  );
  assert.deepEqual([...again].toSorted(), ["a", "b"]);
});

test("without providers nothing is chosen", () => {
  assert.equal(new ProviderGroups([[], []]).select(testMembers()), undefined);
});
