import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { RetrySchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import type { Reply, RetryPlan } from "../../../../src/proxy/exchange/exchange.ts";
import { retry } from "../../../../src/proxy/policies/retry.ts";
import { ChunkStream, makeDeps, makeExchange, makeReply, readAll } from "../../../support/gateway/exchange.ts";

type Spec = MessageInitShape<typeof RetrySchema>;

/** Returns the plan that the policy leaves on a request; undefined when it must not be retried. */
function planFor(spec: Spec, method = "GET"): RetryPlan | undefined {
  const exchange = makeExchange({ method });
  const reply = makeReply();
  assert.equal(
    retry.compile(create(RetrySchema, spec), makeDeps())(exchange, () => reply),
    reply,
  );
  return exchange.retry;
}

async function isRetried(spec: Spec, reply: Reply): Promise<boolean> {
  const plan = planFor(spec);
  assert.ok(plan);
  return plan.wants(reply);
}

test("the plan has the attempts and the backoff of the policy", () => {
  const plan = planFor({ attempts: 3, backoffMs: 250 });
  assert.equal(plan?.attempts, 3);
  assert.equal(plan.backoffMs, 250);
});

for (const { precondition, method, planned } of [
  { precondition: "", method: "POST", planned: true },
  { precondition: "request.method == 'GET'", method: "GET", planned: true },
  { precondition: "request.method == 'GET'", method: "POST", planned: false },
  { precondition: "request.headers['x-none'] == ''", method: "GET", planned: false },
  { precondition: "request.method ==", method: "GET", planned: false },
  { precondition: "request.method", method: "GET", planned: false },
])
  test(`the precondition "${precondition}" ${planned ? "allows" : "forbids"} to retry a ${method}`, () => {
    assert.equal(planFor({ attempts: 1, precondition }, method) !== undefined, planned);
  });

const FINAL = new HeaderList(["x-final", "1"]);
for (const { name, spec, reply, retried } of [
  { name: "a listed status", spec: { codes: [502, 503] }, reply: { status: 503 }, retried: true },
  { name: "a status that is not listed", spec: { codes: [502, 503] }, reply: { status: 500 }, retried: false },
  { name: "any status without a list", spec: {}, reply: { status: 503 }, retried: false },
  { name: "a true condition", spec: { condition: "response.code == 429" }, reply: { status: 429 }, retried: true },
  { name: "a false condition", spec: { condition: "response.code == 429" }, reply: { status: 200 }, retried: false },
  {
    name: "a listed status whose condition is false",
    spec: { codes: [503], condition: "!('x-final' in response.headers)" },
    reply: { status: 503, headers: FINAL },
    retried: true,
  },
  { name: "a condition that fails", spec: { condition: "response.headers['x'] == 'y'" }, reply: {}, retried: false },
  { name: "a condition that does not compile", spec: { condition: "response.code ==" }, reply: {}, retried: false },
])
  test(`${name} ${retried ? "justifies" : "does not justify"} another attempt`, async () => {
    assert.equal(await isRetried(spec, makeReply(reply)), retried);
  });

test("a condition about the body reads it, and the client still gets all of it", async () => {
  const reply = makeReply({ body: new ChunkStream(["try ", "again"]) });
  assert.equal(await isRetried({ condition: "string(response.body) == 'try again'" }, reply), true);
  assert.equal((await readAll(reply.body)).toString(), "try again");
});

test("a condition about the status leaves the body unread", async () => {
  const body = new ChunkStream(["later"]);
  const reply = makeReply({ body });
  assert.equal(await isRetried({ condition: "response.code == 200" }, reply), true);
  assert.equal(reply.body, body);
});
