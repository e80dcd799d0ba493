import assert from "node:assert/strict";
import { test } from "node:test";
import { type UnreadMember, trackAccess } from "../../../src/lib/track-access.ts";

const pathsOf = (list: readonly UnreadMember[]) => list.map(({ path }) => path);
const value = () => ({ a: { b: 1, c: [{ d: "x" }, { d: "y", e: null }] }, f: {}, g: undefined });

test("a view equals the value that is watched, and what was compared was read", () => {
  const { view, unread } = trackAccess({ a: { b: 1, c: [{ d: "x" }] }, f: {} });
  assert.deepEqual(JSON.parse(JSON.stringify(view)), { a: { b: 1, c: [{ d: "x" }] }, f: {} });
  assert.deepEqual(pathsOf(unread()), []);
});

test("what nobody reads is named once, by its outermost member", () => {
  const { unread } = trackAccess(value());
  assert.deepEqual(pathsOf(unread()), [["a"], ["f"]]);
});

test("a member that is read leaves those of its own members that are not", () => {
  const { view, unread } = trackAccess(value());
  const { a, f } = view;
  assert.deepEqual(f, {});
  assert.deepEqual(pathsOf(unread()), [
    ["a", "b"],
    ["a", "c"],
  ]);
  assert.deepEqual(
    a.c.map(({ d }) => d),
    ["x", "y"],
  );
  assert.deepEqual(pathsOf(unread()), [
    ["a", "b"],
    ["a", "c", 1, "e"],
  ]);
});

test("a member is the same object each time it is read", () => {
  const { view } = trackAccess(value());
  assert.equal(view.a.c[0], view.a.c[0]);
  assert.equal(view.a, view.a);
});
