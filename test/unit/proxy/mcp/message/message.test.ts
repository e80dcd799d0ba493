import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readMessage, readMessages, type Message } from "../../../../../src/proxy/mcp/message/message.ts";
import {
  eachElement,
  eachMember,
  findMember,
  readString,
  stringAt,
  textOf,
  wholeOf,
} from "../../../../../src/proxy/mcp/message/spans.ts";
import { insertMember, removeMembers, setMember, splice } from "../../../../../src/proxy/mcp/message/splice.ts";
import { NOT_JSON, skipSpace, skipValue } from "../../../../../src/proxy/mcp/message/scan.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

test("a request, a notification, a result and an error are told apart", () => {
  assert.deepEqual(envelopeOf('{"jsonrpc":"2.0","id":7,"method":"tools/list"}'), [
    "request",
    "7",
    "tools/list",
    undefined,
  ]);
  assert.deepEqual(envelopeOf(' {"method":"a","params":{"b":1},"jsonrpc":"2.0"}\n'), [
    "notification",
    undefined,
    "a",
    '{"b":1}',
  ]);
  assert.deepEqual(envelopeOf('{"jsonrpc":"2.0","id":"a","result":[1]}'), ["result", '"a"', undefined, "[1]"]);
  assert.deepEqual(envelopeOf('{"jsonrpc":"2.0","id":null,"error":{"code":1}}'), [
    "error",
    undefined,
    undefined,
    '{"code":1}',
  ]);
});

test("the last of equal members counts, and escaped names are names", () => {
  const escaped = String.raw`{"jsonrpc":"1.0","\u006asonrpc":"2.0","id":1,"id":"\u0062","method":"x","met\u0068od":"y"}`;
  assert.deepEqual(envelopeOf(escaped), ["request", '"b"', "y", undefined]);
});

test("long integers are ids as they came", () => {
  assert.equal(
    envelopeOf('{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"a"}')[1],
    "123456789012345678901234567890",
  );
});

const INVALID: readonly (readonly [what: string, text: string, code: string, id?: string])[] = [
  ["nothing", "", "parse_error"],
  ["half a message", '{"jsonrpc":"2.0"', "parse_error"],
  ["text after a message", '{"jsonrpc":"2.0","id":1,"method":"a"} x', "parse_error"],
  ["a control character in a string", '{"jsonrpc":"2.0","id":1,"method":"a\nb"}', "parse_error"],
  ["a number with a leading zero", '{"jsonrpc":"2.0","id":01,"method":"a"}', "parse_error"],
  ["a trailing comma", '{"jsonrpc":"2.0","id":1,"method":"a",}', "parse_error"],
  ["an unknown escape", String.raw`{"jsonrpc":"2.0","id":1,"method":"\x"}`, "parse_error"],
  ["a string", '"a"', "invalid_request"],
  ["another version", '{"jsonrpc":"1.0","id":1,"method":"a"}', "invalid_request", "1"],
  ["no version", '{"id":1,"method":"a"}', "invalid_request", "1"],
  ["a fraction as id", '{"jsonrpc":"2.0","id":1.5,"method":"a"}', "invalid_request"],
  ["null as id of a request", '{"jsonrpc":"2.0","id":null,"method":"a"}', "invalid_request"],
  ["an object as id", '{"jsonrpc":"2.0","id":{},"method":"a"}', "invalid_request"],
  ["a long id", `{"jsonrpc":"2.0","id":"${"a".repeat(1_023)}","method":"a"}`, "invalid_request"],
  ["a method that is no string", '{"jsonrpc":"2.0","id":1,"method":1}', "invalid_request", "1"],
  ["params that are no object", '{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}', "invalid_request", "1"],
  ["a request with a result", '{"jsonrpc":"2.0","id":1,"method":"a","result":1}', "invalid_request", "1"],
  ["neither method nor result", '{"jsonrpc":"2.0","id":1}', "invalid_request", "1"],
  ["an empty batch", "[]", "invalid_request"],
  ["a batch of numbers", "[1]", "invalid_request"],
  [
    "65 levels",
    `{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":${"[".repeat(63)}${"]".repeat(63)}}}`,
    "invalid_request",
  ],
];
for (const [what, text, code, id] of INVALID)
  test(`${what} is no message`, () => {
    const read = readMessages(Buffer.from(text));
    assert.ok("code" in read);
    assert.deepEqual([read.code, read.id], [code, id]);
  });

test("bytes that are not UTF-8 are no message", () => {
  const read = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\u00e4"}', "latin1"));
  assert.equal("code" in read && read.code, "parse_error");
});

test("64 levels are read", () => {
  const text = `{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":${"[".repeat(62)}${"]".repeat(62)}}}`;
  assert.equal(envelopeOf(text)[1], "1");
});

test("a batch has its messages in order", () => {
  const read = readMessages(Buffer.from('[{"jsonrpc":"2.0","id":1,"method":"a"} , {"jsonrpc":"2.0","method":"b"}]'));
  assert.ok(!("code" in read));
  assert.equal(read.isBatch, true);
  assert.deepEqual(
    read.list.map(({ kind, method }) => [kind, method]),
    [
      ["request", "a"],
      ["notification", "b"],
    ],
  );
});

test("the scanner accepts what JSON.parse accepts, and nothing else", () => {
  const alphabet = fc.constantFrom(...'{}[]",:\\u0019eE+-. truefalsn\n\u0001');
  const texts = fc.oneof(fc.json({ maxDepth: 8 }), fc.string({ unit: alphabet, maxLength: 12 }), mutated());
  assertProperty(
    fc.property(texts, (text) => {
      const bytes = Buffer.from(text);
      const end = skipValue(bytes, skipSpace(bytes, 0));
      assert.equal(end !== NOT_JSON && skipSpace(bytes, end) === bytes.length, isJson(bytes.toString()));
    }),
    { numRuns: 2_000 },
  );
});

test("members and elements are those that JSON.parse finds", () => {
  assertProperty(
    fc.property(fc.json({ maxDepth: 3, stringUnit: "binary" }), (text) => {
      const bytes = Buffer.from(text);
      compare(JSON.parse(text), wholeOf(bytes), bytes);
    }),
  );
});

test("edits change only what they name", () => {
  const bytes = Buffer.from('{ "a" : 12345678901234567890, "__proto__":{"b":1} ,"c":"\u00e4" }');
  const whole = wholeOf(bytes);
  assert.equal(
    splice(bytes, setMember(bytes, whole, "c", '"d"')).toString(),
    '{ "a" : 12345678901234567890, "__proto__":{"b":1} ,"c":"d" }',
  );
  assert.equal(
    splice(bytes, [insertMember(bytes, whole, "z", "1")]).toString(),
    '{"z":1, "a" : 12345678901234567890, "__proto__":{"b":1} ,"c":"\u00e4" }',
  );
  assert.equal(
    splice(bytes, removeMembers(bytes, whole, "__proto__")).toString(),
    '{ "a" : 12345678901234567890 ,"c":"\u00e4" }',
  );
  const empty = Buffer.from("{ }");
  assert.equal(splice(empty, setMember(empty, wholeOf(empty), "a", "1")).toString(), '{"a":1 }');
});

test("whatever members are removed, the others stay and the text is JSON", () => {
  const object = fc.array(fc.tuple(fc.constantFrom("a", "b", "c", "d"), fc.json({ maxDepth: 2 })), { maxLength: 6 });
  assertProperty(
    fc.property(object, fc.subarray(["a", "b", "c"]), (members, names) => {
      const bytes = Buffer.from(`{${members.map(([name, value]) => ` "${name}" : ${value} `).join(",")}}`);
      const left = members.filter(([name]) => !names.includes(name));
      const text = splice(bytes, removeMembers(bytes, wholeOf(bytes), ...names)).toString();
      assert.deepEqual(
        JSON.parse(text),
        JSON.parse(`{${left.map(([name, value]) => `"${name}":${value}`).join(",")}}`),
      );
    }),
  );
});

test("a path leads through objects only", () => {
  const bytes = Buffer.from('{"a":{"b":{"c":"d"}},"e":["f"]}');
  assert.equal(stringAt(bytes, wholeOf(bytes), "a", "b", "c"), "d");
  assert.equal(findMember(bytes, wholeOf(bytes), "e", "0"), undefined);
  assert.equal(findMember(bytes, wholeOf(bytes), "a", "x", "c"), undefined);
  assert.equal(stringAt(bytes, wholeOf(bytes), "a"), undefined);
});

function envelopeOf(text: string): unknown[] {
  const bytes = Buffer.from(text);
  const message = readMessage(bytes);
  assert.ok(isMessage(message), JSON.stringify(message));
  const { kind, id, method, payload } = message;
  return [kind, id, method, payload === undefined ? undefined : textOf(bytes, payload)];
}

function isMessage(read: ReturnType<typeof readMessage>): read is Message {
  return "bytes" in read;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON with one character taken out. */
function mutated(): fc.Arbitrary<string> {
  return fc.tuple(fc.json({ maxDepth: 3 }), fc.nat()).map(([text, at]) => {
    const index = at % Math.max(1, text.length);
    return text.slice(0, index) + text.slice(index + 1);
  });
}

function compare(value: unknown, span: { start: number; end: number }, bytes: Buffer): void {
  assert.deepEqual(JSON.parse(textOf(bytes, span)), value);
  if (typeof value === "string") assert.equal(readString(bytes, span), value);
  else if (Array.isArray(value)) {
    const elements = [...eachElement(bytes, span)];
    assert.equal(elements.length, value.length);
    for (const [at, element] of elements.entries()) compare(value[at], element, bytes);
  } else if (typeof value === "object" && value !== null) {
    const last = new Map([...eachMember(bytes, span)].map((member) => [readString(bytes, member.name), member.value]));
    assert.deepEqual([...last.keys()].sort(), Object.keys(value).sort());
    // Own members of an object that JSON.parse made.
    for (const [name, own] of Object.entries(value)) compare(own, last.get(name) ?? span, bytes);
  }
}
