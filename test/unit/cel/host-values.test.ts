import assert from "node:assert/strict";
import { test } from "node:test";

import { bodyOf, failingExpression } from "../../../src/cel/compile/compile-expression.ts";
import { CelError } from "../../../src/cel/errors.ts";
import { HeaderView } from "../../../src/cel/header-view.ts";
import { Duration, Secret } from "../../../src/cel/values.ts";
import { HeaderList } from "../../../src/lib/header-list.ts";
import { evaluate, failureCode, fails, gives, scopeOf } from "./support.ts";

/** JSON does not say whether 1 is an int. */
gives(
  [
    ["llmRequest.fraction * 2.0", 1.4],
    ["llmRequest.whole * 2.0", 2],
    ["llmRequest.whole + 1", 2n],
    ["llmRequest.fraction + 1", 1.7],
    ["2.0 - llmRequest.whole", 1],
    ["llmRequest.list.map(x, x * 2.0)", [2, 5]],
    ["llmRequest.whole == 1 && llmRequest.whole == 1.0 && llmRequest.whole < 1.5", true],
    ["llmRequest.big > 9e15", true],
    ["llmRequest.list[0]", 1n],
    ["size(llmRequest)", 5n],
    ["llmRequest.nothing == null && has(llmRequest.nothing)", true],
  ],
  { llmRequest: JSON.parse('{"fraction":0.7,"whole":1,"list":[1,2.5],"big":1e300,"nothing":null}') },
);

const HEADERS = new HeaderView(
  new HeaderList(["X-One", "1", "x-two", "a, b", "X-Two", "c", "Cookie", "s=1; t=x=y", "Authorization", "Bearer t"]),
);

gives(
  [
    ['request.headers["x-one"]', "1"],
    ['request.headers["X-ONE"]', "1"],
    ['request.headers["x-two"]', ["a, b", "c"]],
    ['request.headers.join()["x-two"]', "a, b,c"],
    ['request.headers.raw()["x-one"]', ["1"]],
    ['request.headers.raw().split()["x-two"]', ["a", "b", "c"]],
    ['request.headers.cookie("t")', "x=y"],
    ['request.headers.redacted()["authorization"]', "<redacted>"],
    ['request.headers.redacted().raw()["authorization"]', ["<redacted>"]],
    ['"x-one" in request.headers && !("x-no" in request.headers)', true],
    ['has(request.headers.cookie) && default(request.headers["x-no"], "none") == "none"', true],
    ['request.headers.filterKeys(k, k.startsWith("x-")).mapValues(v, size(v)) == {"x-one": 1, "x-two": 2}', true],
  ],
  { request: { headers: HEADERS } },
);

fails(
  [
    ['request.headers["x-no"]', "no_such_key"],
    ['request.headers.cookie("no")', "no_such_key"],
  ],
  {
    request: { headers: HEADERS },
  },
);

test("a header that is not UTF-8 reads as missing", () => {
  const headers = new HeaderView(new HeaderList(["x-a", "\u00ff", "x-b", "\u00c3\u00a9"]));
  assert.deepEqual(
    evaluate('[has(request.headers["x-a"]) ? 1 : 0]'.replace('["x-a"]', ".a"), { request: { headers } }),
    [0n],
  );
  assert.equal(evaluate('request.headers["x-b"]', { request: { headers } }), "é");
});

test("a secret prints redacted everywhere and shows itself only when asked", () => {
  const roots = { apiKey: { key: new Secret("s3cret"), group: "g" } };
  for (const source of ["apiKey.key", "string(apiKey.key)", "toJson(apiKey)", '"%s".format([apiKey.key])', "apiKey"]) {
    const value = evaluate(source, roots);
    assert.match(value instanceof Map ? String(value.get("key")) : String(value), /<redacted>/);
    assert.doesNotMatch(bodyOf(value).toString(), /s3cret/);
  }
  assert.equal(evaluate("apiKey.key.unredacted()", roots), "s3cret");
  assert.equal(evaluate('variables().apiKey.key == "s3cret"', roots), false);
});

test("a lazy attribute is made only when it is selected, not when has() asks for it", () => {
  let made = 0;
  const request = {
    path: "/",
    get body(): string {
      made++;
      return "text";
    },
  };
  assert.equal(evaluate('has(request.body) && request.path == "/"', { request }), true);
  assert.equal(made, 0);
  assert.equal(evaluate("request.body", { request }), "text");
  assert.equal(made, 1);
});

test("a root that does not exist is an error to select, and absent for has() and default()", () => {
  assert.equal(evaluate("has(jwt.sub)"), false);
  assert.equal(evaluate('default(jwt.sub, "anonymous")'), "anonymous");
  assert.equal(evaluate('coalesce(jwt.sub, apiKey.owner, "anonymous")', { apiKey: { owner: "o" } }), "o");
  assert.throws(() => evaluate("jwt.sub"), CelError);
});

test("dates and durations of the host are timestamps and durations here", () => {
  const request = { startTime: new Date("2024-01-01T00:00:00.250Z") };
  const proxy = { upstreamDuration: Duration.ofMilliseconds(1500.5) };
  assert.equal(evaluate("string(request.startTime)", { request }), "2024-01-01T00:00:00.25Z");
  assert.equal(evaluate("string(proxy.upstreamDuration)", { proxy }), "1.5005s");
});

test("a body is text or bytes as it is, and JSON for every other value", () => {
  assert.equal(bodyOf("é").toString(), "é");
  assert.equal(bodyOf(evaluate('b"\\x01\\x02"')).toString("hex"), "0102");
  const value = evaluate('{"i": 9007199254740993, "d": 1.0, "l": [null, true], "t": duration("1s"), "b": b"hi"}');
  assert.equal(bodyOf(value).toString(), '{"i":9007199254740993,"d":1,"l":[null,true],"t":"1s","b":"aGk="}');
});

test("an attribute that cannot be read is a failed expression", () => {
  const request = {
    get path(): string {
      throw new Error("gone");
    },
  };
  assert.throws(() => evaluate("request.path", { request }), CelError);
});

test("an expression that does not compile can be replaced by one that always fails and names its text", () => {
  const expression = failingExpression("1 +", "the expression ends too early");
  assert.throws(
    () => expression.evaluate(scopeOf({})),
    (error) => error instanceof CelError && error.code === "does_not_compile" && error.message.includes('"1 +"'),
  );
});

test("a map of a hundred thousand members is listed once, however often an expression and later ones ask for them", () => {
  let listed = 0;
  const members = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, at]));
  const llmRequest = new Proxy(members, {
    ownKeys(target) {
      listed++;
      return Reflect.ownKeys(target);
    },
  });
  const sizes = Array.from({ length: 50 }, () => "default(size(llmRequest), 0)").join(" + ");
  for (let again = 0; again < 3; again++) {
    assert.equal(
      failureCode(() => evaluate(sizes, { llmRequest })),
      "cost_limit",
    );
  }
  assert.equal(listed, 1);
  assert.equal(evaluate("llmRequest.k99999", { llmRequest }), 99_999n);
});
