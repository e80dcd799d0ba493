/**
 * Every bound of our kinds at its edge: what is just inside is taken, what is just outside is refused, by a real API server
 * and by the validator, in the same words. The cases are derived from the schemas.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertSameFaults, expectedOnServer } from "../support/fixtures/objects/compare.ts";
import { edgesOf, type Edge } from "../support/fixtures/objects/edges.ts";
import { faultsOf, KINDS, type Kind } from "../support/fixtures/objects/kinds.ts";
import { startReviewedCluster, type ReviewedCluster } from "../support/kubernetes/reviewed-cluster.ts";

const CONCURRENCY = 4;

let cluster: ReviewedCluster;

before(async () => {
  cluster = await startReviewedCluster();
});

after(async () => {
  await cluster?.stop();
});

async function check(kind: Kind, { title, object, isSound }: Edge): Promise<void> {
  assert.equal(faultsOf(kind, object).length === 0, isSound, title);
  assertSameFaults(expectedOnServer(kind, object), await cluster.judge.faultsOf(kind.plural, object), title);
}

for (const kind of KINDS) {
  test(`every bound of ${kind.kind} holds at its edge`, async (t) => {
    const { edges, missed, narrowed } = edgesOf(kind);
    assert.deepEqual(missed, [], "values that their schema takes, and no object can have");
    t.diagnostic(
      `${edges.length} objects; not reached because a rule says less than the bound: ${narrowed.join("; ")}`,
    );
    const left = edges.values();
    const work = async (): Promise<void> => {
      for (const edge of left) await check(kind, edge);
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
  });
}
