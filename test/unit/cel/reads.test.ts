import assert from "node:assert/strict";
import { test } from "node:test";

import { compileExpression } from "../../../src/cel/compile-expression.ts";
import { REQUEST_ENVIRONMENT } from "../../../src/cel/environment.ts";
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
