/** What counts as a proof of a field: the body has to fail by an assertion when the field is altered. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../../src/api/object.ts";
import { alterField } from "../../support/proofs/alter-field.ts";
import { expectEvent } from "../../support/proofs/expect-event.ts";
import { counterProofsOf, NotReadyError, type ProofContext } from "../../support/proofs/prove.ts";
import { findSecondValue } from "../../support/proofs/second-values.ts";

const UNIT = "GwPolicy spec.traffic.rateLimit.local[].unit";

interface Limit {
  readonly requests: number;
  readonly unit?: string;
}

function policy(
  ...local: readonly Limit[]
): KubeObject & { spec: { traffic: { rateLimit: { local: readonly Limit[] } } } } {
  return {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwPolicy",
    metadata: { name: "limit", namespace: "default" },
    spec: {
      targetRefs: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "web" }],
      traffic: { rateLimit: { local } },
    },
  } as never; // only the member that is altered matters here
}

/** The unit of the first limit as the translator would see it. */
function unitSeen({ alteration }: ProofContext): string | undefined {
  const object = policy({ requests: 2, unit: "Hours" });
  assert.ok(alteration, "only counter-proofs run here");
  return (alteration.alter(object) as typeof object).spec.traffic.rateLimit.local[0]?.unit;
}

for (const { body, verdict } of [
  { body: "passes whatever the value", verdict: /the proof passes with another/ },
  { body: "fails by an assertion", verdict: undefined },
  { body: "fails by a TypeError", verdict: /not by an assertion: TypeError/ },
  { body: "is refused a connection", verdict: /not by an assertion: Error: connect ECONNREFUSED/ },
  { body: "has a gateway that never came up", verdict: /not by an assertion: NotReadyError/ },
  { body: "sets no such field", verdict: /nothing is altered/ },
])
  test(`a proof that ${body} ${verdict === undefined ? "counts" : "does not count"}`, async (t) => {
    const [, another] = counterProofsOf(UNIT, async (context) => {
      if (body === "sets no such field") return;
      const unit = unitSeen(context);
      if (body === "passes whatever the value") return;
      if (body === "fails by a TypeError") throw new TypeError("unit is not a function");
      if (body === "is refused a connection") throw new Error("connect ECONNREFUSED 127.0.0.1:1");
      if (body === "has a gateway that never came up") throw new NotReadyError("no listener serves port 8080");
      assert.equal(unit, "Hours");
    });
    const run = another?.run(t) ?? assert.fail("the unit has a second value");
    await (verdict === undefined ? run : assert.rejects(run, verdict));
  });

test("a required field cannot be left out: its second value proves it", async (t) => {
  const [without] = counterProofsOf(UNIT, (context) => Promise.resolve(void unitSeen(context)));
  await without?.run(t);
});

test("an event that no longer comes is a failed assertion; in an ordinary run it has all the time", async (t) => {
  const never = new Promise<void>(() => undefined);
  const altered: ProofContext = { after: (clean) => t.after(clean), alteration: { alter: (object) => object } };
  await assert.rejects(expectEvent(altered, never, "the end", 1), {
    name: "AssertionError",
    message: "does not come: the end",
  });
  assert.equal(await expectEvent({ after: (clean) => t.after(clean) }, Promise.resolve(1), "a number", 0), 1);
});

test("a field is altered in every entry of its lists, and the object itself stays as it was", () => {
  const object = policy({ requests: 1, unit: "Hours" }, { requests: 2 }, { requests: 3, unit: "Seconds" });
  const altered = alterField(object, UNIT, () => "Minutes") as typeof object;
  assert.deepEqual(altered.spec.traffic.rateLimit.local, [
    { requests: 1, unit: "Minutes" },
    { requests: 2 },
    { requests: 3, unit: "Minutes" },
  ]);
  assert.equal(object.spec.traffic.rateLimit.local[0]?.unit, "Hours");
  assert.equal(
    alterField(object, "GwBackend spec.traffic.rateLimit.local[].unit", () => "Minutes"),
    object,
  );
});

test("the longest end of a path chooses the second value", () => {
  assert.equal(findSecondValue("GwPolicy spec.targetRefs[].port")?.(8080), 8081);
  assert.equal(findSecondValue("GwBackend spec.static.port")?.(8080), 1);
  assert.equal(findSecondValue("GwBackend spec.static.host"), undefined);
});
