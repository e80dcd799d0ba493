import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { TimeoutsSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { timeouts } from "../../../../src/proxy/policies/timeouts.ts";
import { makeDeps, makeExchange, makeReply } from "../../../support/gateway/exchange.ts";

function deadlineAfter(requestMs: number, before?: number): number | undefined {
  const exchange = makeExchange({ startedAtMs: 1000 });
  exchange.deadlineAtMs = before;
  const reply = makeReply();
  assert.equal(
    timeouts.compile(create(TimeoutsSchema, { requestMs }), makeDeps())(exchange, () => reply),
    reply,
  );
  return exchange.deadlineAtMs;
}

test("the deadline counts from the arrival of the request", () => {
  assert.equal(deadlineAfter(250), 1250);
});

test("the shorter of two deadlines stays", () => {
  assert.equal(deadlineAfter(250, 1100), 1100);
  assert.equal(deadlineAfter(250, 9000), 1250);
});

test("a timeout of zero sets no deadline", () => {
  assert.equal(deadlineAfter(0), undefined);
});
