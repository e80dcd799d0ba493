import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { DelaySchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Abortable } from "../../../../src/proxy/exchange/exchange.ts";
import { delay } from "../../../../src/proxy/policies/delay.ts";
import { makeDeps, makeExchange, makeReply } from "../../../support/gateway/exchange.ts";

type Duration = NonNullable<MessageInitShape<typeof DelaySchema>["duration"]>;

/** Starts a POST request under the policy, on a clock that the test moves. */
function startDelayed(context: TestContext, duration: Duration) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const waits: Abortable[] = [];
  const exchange = makeExchange({ method: "POST", headers: ["x-wait", "70"] });
  exchange.onAbort = (target) => void waits.push(target);
  const calls: string[] = [];
  const policy = delay.compile(create(DelaySchema, { duration }), makeDeps());
  const reply = makeReply();
  const answer = Promise.resolve(
    policy(exchange, () => {
      calls.push("next");
      return reply;
    }),
  );
  return { answer, reply, waits, calls };
}

for (const { name, duration, ms } of [
  { name: "a fixed time", duration: { case: "ms", value: 50 }, ms: 50 },
  { name: "a computed duration", duration: { case: "expression", value: "duration('1.5s')" }, ms: 1500 },
  { name: "a computed whole number of milliseconds", duration: { case: "expression", value: "20 + 10" }, ms: 30 },
  { name: "a computed fraction of milliseconds", duration: { case: "expression", value: "40.0" }, ms: 40 },
  {
    name: "a duration that the request decides",
    duration: { case: "expression", value: "duration(request.headers['x-wait'] + 'ms')" },
    ms: 70,
  },
] as const)
  test(`a request waits for ${name}, and not longer`, async (context) => {
    const { answer, reply, calls } = startDelayed(context, duration);
    context.mock.timers.tick(ms - 1);
    await Promise.resolve();
    assert.deepEqual(calls, []);
    context.mock.timers.tick(1);
    await nextTurn();
    assert.deepEqual(calls, ["next"]);
    assert.equal(await answer, reply);
  });

for (const { name, duration } of [
  { name: "no duration", duration: { case: undefined } },
  { name: "zero", duration: { case: "ms", value: 0 } },
  { name: "a negative duration", duration: { case: "expression", value: "duration('-5s')" } },
  { name: "an expression that fails", duration: { case: "expression", value: "duration(request.headers['x-none'])" } },
  { name: "an expression that does not compile", duration: { case: "expression", value: "5 seconds" } },
  { name: "a text", duration: { case: "expression", value: "'50ms'" } },
] as const)
  test(`${name} delays nothing`, async (context) => {
    const { answer, reply, waits, calls } = startDelayed(context, duration);
    await nextTurn();
    assert.deepEqual(calls, ["next"]);
    assert.equal(await answer, reply);
    assert.deepEqual(waits, []);
  });

test("the deadline of the request ends the wait with its error, and nothing runs after it", async (context) => {
  const { answer, waits, calls } = startDelayed(context, { case: "ms", value: 1000 });
  const error = new Error("deadline");
  for (const wait of waits) wait.abort(error);
  await assert.rejects(answer, error);
  context.mock.timers.tick(1000);
  await Promise.resolve();
  assert.deepEqual(calls, []);
});
