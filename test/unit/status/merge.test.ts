import assert from "node:assert/strict";
import { test } from "node:test";
import type { DesiredCondition, DesiredEntry } from "../../../src/status/desired.ts";
import { mergeConditions, mergeEntries, type Condition, type StatusEntry } from "../../../src/status/merge.ts";

const NOW = "2026-02-03T04:05:06Z";
const BEFORE = "2020-01-01T00:00:00Z";
const OURS = "gwproxy.dev/gwproxy";
const THEIRS = "example.com/other";

function desired(type: string, status: DesiredCondition["status"], message = ""): DesiredCondition {
  return { type, status, reason: "Reason", message, observedGeneration: 3 };
}

function stored(type: string, status: DesiredCondition["status"], message = ""): Condition {
  return { ...desired(type, status, message), lastTransitionTime: BEFORE };
}

function entry(name: string, ...conditions: DesiredCondition[]): DesiredEntry {
  return { ref: { name, namespace: "default" }, conditions };
}

function storedEntry(name: string, controllerName: string, ...conditions: Condition[]): StatusEntry {
  const ref = { group: "gateway.networking.k8s.io", kind: "Gateway", name, namespace: "default" };
  return { ref, controllerName, conditions };
}

const options = { controllerName: OURS, limit: 16, now: NOW };

test("a new condition and one that changes its status get the time of now", () => {
  const merged = mergeConditions(
    [desired("Accepted", "False"), desired("Programmed", "True")],
    [stored("Accepted", "True")],
    NOW,
  );
  assert.deepEqual(
    merged.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]),
    [
      ["Accepted", NOW],
      ["Programmed", NOW],
    ],
  );
});

test("a condition that keeps its status keeps its time, whatever its message says now", () => {
  const [merged] = mergeConditions(
    [desired("Accepted", "True", "new words")],
    [stored("Accepted", "True", "old words")],
    NOW,
  );
  assert.equal(merged?.lastTransitionTime, BEFORE);
  assert.equal(merged.message, "new words");
});

test("a message is cut to what the API takes", () => {
  const [merged] = mergeConditions([desired("Accepted", "True", "x".repeat(40_000))], [], NOW);
  assert.equal(merged?.message.length, 32_768);
  assert.ok(merged.message.endsWith("…"));
});

test("a message never ends in half of a character, which the API server would store as another one", () => {
  const smile = "\u{1F600}";
  for (const message of [`${"x".repeat(32_766)}${smile}more`, `a reason that was cut: ${smile[0]}`]) {
    const [merged] = mergeConditions([desired("Accepted", "False", message)], [], NOW);
    const text = merged?.message ?? "";
    assert.ok(text.length > 20);
    assert.equal(Buffer.from(text).toString(), text);
  }
});

test("conditions come sorted by type", () => {
  const merged = mergeConditions([desired("ResolvedRefs", "True"), desired("Accepted", "True")], [], NOW);
  assert.deepEqual(
    merged.map(({ type }) => type),
    ["Accepted", "ResolvedRefs"],
  );
});

test("entries of other controllers stay as they are, ours are replaced, added, removed and sorted", () => {
  const foreign = storedEntry("shared", THEIRS, stored("Accepted", "True"));
  const current = [storedEntry("stale", OURS), foreign, storedEntry("b", OURS, stored("Accepted", "True"))];
  const merged = mergeEntries(
    [entry("b", desired("Accepted", "True")), entry("a", desired("Accepted", "True"))],
    current,
    options,
  );
  assert.equal(merged[0], foreign);
  assert.deepEqual(
    merged.map(({ ref, controllerName, conditions }) => [
      ref["name"],
      controllerName,
      conditions[0]?.lastTransitionTime,
    ]),
    [
      ["shared", THEIRS, BEFORE],
      ["a", OURS, NOW],
      ["b", OURS, BEFORE],
    ],
  );
});

test("the same reference of another controller is not ours", () => {
  const merged = mergeEntries([entry("a", desired("Accepted", "True"))], [storedEntry("a", THEIRS)], options);
  assert.deepEqual(
    merged.map(({ controllerName }) => controllerName),
    [THEIRS, OURS],
  );
});

test("references are written with the defaults that the API server would add", () => {
  const [merged] = mergeEntries([{ ref: { name: "gw" }, conditions: [] }], [], options);
  assert.deepEqual(merged?.ref, { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" });
});

test("ancestors beyond the sixteenth are summarised with their number", () => {
  const many = Array.from({ length: 20 }, (_, at) =>
    entry(`gw-${String(at).padStart(2, "0")}`, desired("Accepted", "True")),
  );
  const merged = mergeEntries(many, [], options);
  assert.equal(merged.length, 16);
  assert.deepEqual(
    merged.slice(0, 15).map(({ ref }) => ref["name"]),
    many.slice(0, 15).map(({ ref }) => ref["name"]),
  );
  const summary = merged[15];
  assert.deepEqual(summary?.ref, { group: "gwproxy.dev", kind: "Gateway", name: "StatusSummary" });
  assert.deepEqual(
    summary.conditions.map(({ type, status, reason, observedGeneration }) => [
      type,
      status,
      reason,
      observedGeneration,
    ]),
    [["StatusSummarized", "True", "StatusSummary", 3]],
  );
  assert.match(summary.conditions[0]?.message ?? "", /^5 more entries are left out/);
});

test("exactly sixteen need no summary", () => {
  const many = Array.from({ length: 16 }, (_, at) => entry(`gw-${at}`, desired("Accepted", "True")));
  assert.ok(mergeEntries(many, [], options).every(({ ref }) => ref["name"] !== "StatusSummary"));
});

test("a summary that exists already takes the number in", () => {
  const many = Array.from({ length: 16 }, (_, at) => entry(`gw-${at}`, desired("Accepted", "True")));
  const lost: DesiredEntry = {
    ref: { group: "gwproxy.dev", name: "StatusSummary" },
    conditions: [desired("Attached", "False")],
  };
  const merged = mergeEntries([...many, lost], [], options);
  const summaries = merged.filter(({ ref }) => ref["name"] === "StatusSummary");
  assert.equal(merged.length, 16);
  assert.deepEqual(
    summaries.map(({ conditions }) => conditions.map(({ type }) => type)),
    [["Attached", "StatusSummarized"]],
  );
  assert.match(summaries[0]?.conditions[1]?.message ?? "", /^1 more entry is left out/);
});

test("another controller's entries are never cut to make room for ours", () => {
  const foreign = Array.from({ length: 15 }, (_, at) => storedEntry(`theirs-${at}`, THEIRS));
  const two = [entry("a", desired("Accepted", "True")), entry("b", desired("Accepted", "True"))];
  const merged = mergeEntries(two, foreign, options);
  assert.deepEqual(merged.slice(0, 15), foreign);
  assert.deepEqual(
    merged.slice(15).map(({ ref }) => ref["name"]),
    ["StatusSummary"],
  );
  const full = [...foreign, storedEntry("theirs-15", THEIRS)];
  assert.deepEqual(mergeEntries(two, full, options), full, "a full list leaves no place at all");
});
