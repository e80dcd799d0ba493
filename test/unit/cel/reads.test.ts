import assert from "node:assert/strict";
import { test } from "node:test";
import { findAbsentReads } from "../../../src/cel/absent-reads.ts";

import { compileExpression } from "../../../src/cel/compile/compile-expression.ts";
import { REQUEST_ENVIRONMENT } from "../../../src/cel/environments/index.ts";
import { unionOfReads } from "../../../src/cel/reads.ts";

function attributes(source: string): string[] {
  return [...compileExpression(source, REQUEST_ENVIRONMENT).reads.attributes].sort();
}

function bodies(source: string): [boolean, boolean] {
  const { requestBody, responseBody } = compileExpression(source, REQUEST_ENVIRONMENT).reads;
  return [requestBody, responseBody];
}

test("the first two segments of each member chain are what is read", () => {
  assert.deepEqual(attributes('request.headers["x"] == jwt.sub && llm.prompt[0].role == "user"'), [
    "jwt.sub",
    "llm.prompt",
    "request.headers",
  ]);
});

test("bodies are asked for only by who reads them", () => {
  assert.deepEqual(bodies("request.path == '/'"), [false, false]);
  assert.deepEqual(bodies("json(request.body).model"), [true, false]);
  assert.deepEqual(bodies('request["body"]'), [true, false]);
  assert.deepEqual(bodies("size(response.bodyPrefix)"), [false, true]);
});

test("a computed index, and a root used as a whole, read everything below it", () => {
  assert.deepEqual(attributes("request[jwt.field]"), ["jwt.field", "request.*"]);
  assert.deepEqual(bodies("request[jwt.field]"), [true, false]);
  assert.deepEqual(bodies("[request].map(r, r.path)"), [true, false]);
});

test("variables() reads every root and both bodies", () => {
  assert.deepEqual(bodies("variables().request.method"), [true, true]);
});

test("a local variable is not a root", () => {
  assert.deepEqual(attributes("[1].map(request, request + 1)"), []);
});

test("the reads of several expressions join", () => {
  const union = unionOfReads(
    ["request.body", "jwt.sub"].map((source) => compileExpression(source, REQUEST_ENVIRONMENT).reads),
  );
  assert.deepEqual([[...union.roots].sort(), union.requestBody, union.responseBody], [["jwt", "request"], true, false]);
});

/** Expressions, and what each reads that a request may not have. */
const ABSENT: readonly (readonly [expression: string, reads: readonly string[]])[] = [
  [`request.headers["X-Team"] == "a"`, [`request.headers["x-team"]`]],
  [`request.headers.host == "a"`, [`request.headers["host"]`]],
  [`"x-team" in request.headers && request.headers["x-team"] == "a"`, []],
  [`!("x-team" in request.headers) || request.headers["x-team"] == "a"`, []],
  [`has(request.headers.team) ? request.headers["team"] == "a" : true`, []],
  [`default(request.headers["x-team"], "") == "a"`, []],
  [`coalesce(request.headers["a"], request.headers["b"]) == "a"`, [`request.headers["b"]`]],
  [`coalesce(request.headers["a"], "")  == "a"`, []],
  [`default(request.headers["a"], jwt.sub) == "a"`, ["jwt.sub"]],
  [`jwt.sub == "a" && jwt["https://claim"] == "b"`, ["jwt.sub", `jwt["https://claim"]`]],
  [`has(jwt.sub) && jwt.sub == "a"`, []],
  [`has(jwt.realm.roles) && "a" in jwt.realm.roles`, ["jwt.realm"]],
  [`has(jwt.realm) && has(jwt.realm.roles) && "a" in jwt.realm.roles`, []],
  [`jwt.groups.exists(group, group == "a")`, ["jwt.groups"]],
  [`apiKey.group != "writers"`, ["apiKey.group"]],
  [`request.uri.query("team")[0] == "a"`, [`request.uri.query("team")[0]`]],
  [`size(request.uri.query("team")) > 0 && request.uri.query("team")[0] == "a"`, []],
  [`"a" in request.uri.query("team")`, []],
  [`request.headers.cookie("session") == "a"`, [`request.headers.cookie("session")`]],
  [`request.path.startsWith("/admin") && request.method != "GET"`, []],
  [`[request.headers["a"]] == ["b"] || {"k": jwt.sub} == {}`, [`request.headers["a"]`, "jwt.sub"]],
];

for (const [expression, reads] of ABSENT) {
  test(`what a request may not have is found in ${expression}`, () => {
    const found = findAbsentReads(expression, REQUEST_ENVIRONMENT).map(({ text }) => text);
    assert.deepEqual(found.sort(), [...reads].sort());
  });
}
