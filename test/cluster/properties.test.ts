/**
 * Objects that a generator makes from the schemas, sound ones and changed ones: a real API server with our CRDs and the
 * webhook, the webhook alone, and the validator say the same of each, in the same words.
 *
 * GWPROXY_OBJECTS is the number of objects of each kind, GWPROXY_SEED makes others of them.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { candidatesOf, type Candidate } from "../support/fixtures/objects/candidates.ts";
import { assertSameFaults, expectedOnServer, plain } from "../support/fixtures/objects/compare.ts";
import { faultsOf, KINDS, type Kind } from "../support/fixtures/objects/kinds.ts";
import { SEED } from "../support/fixtures/seed.ts";
import { startReviewedCluster, type ReviewedCluster } from "../support/kubernetes/reviewed-cluster.ts";

const COUNT = Number(process.env["GWPROXY_OBJECTS"] ?? 300);
/** Asked at a time: enough to keep an API server on two cores busy. */
const CONCURRENCY = 4;

let cluster: ReviewedCluster;

before(async () => {
  cluster = await startReviewedCluster();
});

after(async () => {
  await cluster?.stop();
});

async function check(kind: Kind, { title, object, isSound }: Candidate): Promise<void> {
  const here = faultsOf(kind, object);
  if (isSound) assert.deepEqual(plain(here), [], title);
  assertSameFaults(plain(here), await cluster.webhook(kind, object), `${title}: the webhook alone`);
  const there = await cluster.judge.faultsOf(kind.plural, object);
  assertSameFaults(expectedOnServer(kind, object), there, `${title}: the API server`);
}

for (const kind of KINDS) {
  test(`${COUNT} objects of ${kind.kind} get one verdict from the API server, the webhook and the validator (GWPROXY_SEED=${SEED})`, async () => {
    // All objects are made before the first one is sent: making one takes up to 2.5 s of this thread, which the webhook
    // server shares, and the API server waits five seconds for a verdict.
    const left = [...candidatesOf(kind, COUNT, SEED)].values();
    // Workers share one iterator: each object is taken once.
    const work = async (): Promise<void> => {
      for (const candidate of left) await check(kind, candidate);
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
  });
}
