import assert from "node:assert/strict";
import { test } from "node:test";
import { createAcknowledgements } from "../../../src/controller/acknowledgements.ts";

const POLICY = { type: "Policy", key: "policy/a/p" } as const;
const acked = { ...POLICY, version: "1" };
const refused = { ...POLICY, reason: "bad" };

test("a data plane that refuses is not outvoted by another that applies", () => {
  const [first, second] = [Symbol("first"), Symbol("second")];
  const answers = createAcknowledgements();
  answers.nack("a/gw", first, [refused]);
  assert.deepEqual(answers.ack("a/gw", second, [acked]), [acked]);
  assert.equal(answers.nackReason("Policy", POLICY.key), "bad");
  assert.deepEqual(answers.ack("a/gw", first, [acked]), [acked], "its own answer takes the refusal back");
  assert.equal(answers.nackReason("Policy", POLICY.key), undefined);
  assert.deepEqual(answers.ack("a/gw", first, [acked]), [], "nothing new");
});

test("a refusal counts for its Gateway, and for whoever asks about all", () => {
  const answers = createAcknowledgements();
  answers.nack("a/gw", Symbol("a"), [refused]);
  assert.equal(answers.nackReason("Policy", POLICY.key, "a/gw"), "bad");
  assert.equal(answers.nackReason("Policy", POLICY.key, "b/gw"), undefined);
  assert.equal(answers.nackReason("Policy", POLICY.key), "bad");
  assert.equal(answers.nackReason("Backend", POLICY.key), undefined);
});

test("the refusal of a stream that is over falls with the next acknowledgement of the same Gateway", () => {
  const [gone, stranger, next] = [Symbol("gone"), Symbol("stranger"), Symbol("next")];
  const answers = createAcknowledgements();
  answers.nack("a/gw", gone, [refused]);
  answers.closed(gone);
  answers.ack("b/gw", stranger, [acked]);
  assert.equal(answers.nackReason("Policy", POLICY.key), "bad");
  answers.ack("a/gw", next, [acked]);
  assert.equal(answers.nackReason("Policy", POLICY.key), undefined);
});

test("what is no longer sent is forgotten, for one Gateway or for all", () => {
  const answers = createAcknowledgements();
  answers.nack("a/gw", Symbol("a"), [refused]);
  answers.ack("b/gw", Symbol("b"), [acked]);
  answers.forget("a/gw", [POLICY]);
  assert.equal(answers.nackReason("Policy", POLICY.key), undefined);
  assert.equal(answers.has(POLICY.key), true);
  answers.forgetEverywhere([POLICY]);
  assert.equal(answers.has(POLICY.key), false);
});

test("a reason is cut to what fits into a condition", () => {
  const answers = createAcknowledgements();
  answers.nack("a/gw", Symbol("a"), [{ ...POLICY, reason: "x".repeat(5000) }]);
  assert.equal(answers.nackReason("Policy", POLICY.key)?.length, 1024);
});

test("a Gateway has a data plane from the first acknowledgement of a socket until its sockets are removed", () => {
  const answers = createAcknowledgements();
  const bind = (port: number) => ({ type: "Bind", key: `${port}/a/gw`, version: "1" }) as const;
  assert.deepEqual(answers.ack("a/gw", Symbol("a"), [bind(80)]), [bind(80)], "the first one is news");
  assert.deepEqual(answers.ack("a/gw", Symbol("b"), [bind(80), bind(81)]), []);
  answers.forget("a/gw", [bind(80)]);
  assert.deepEqual([answers.hasBind("a/gw"), answers.hasBind("a/other")], [true, false]);
  answers.forget("a/gw", [bind(81)]);
  assert.equal(answers.hasBind("a/gw"), false);
});

test("the first acknowledgement of a listener is news, until the listener is no longer sent", () => {
  const answers = createAcknowledgements();
  const listener = { type: "Listener", key: "a/gw.http", version: "1" } as const;
  assert.deepEqual(answers.ack("a/gw", Symbol("a"), [listener]), [listener]);
  assert.deepEqual(answers.ack("a/gw", Symbol("b"), [listener]), []);
  assert.equal(answers.has("a/gw.http"), true);
  answers.forgetEverywhere([listener]);
  assert.equal(answers.has("a/gw.http"), false);
});
