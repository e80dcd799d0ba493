import assert from "node:assert/strict";
import { test } from "node:test";
import { createAccessLog } from "../../../src/telemetry/access-log.ts";
import type { Attribute } from "../../../src/telemetry/attributes.ts";
import { createLineForm, type LogFormat } from "../../../src/telemetry/log-lines.ts";

const TIME = "2026-11-21T22:38:56.007250Z";

function lineOf(format: LogFormat, ...attributes: readonly Attribute[]): string {
  const form = createLineForm(format);
  form.begin(TIME);
  for (const [name, value] of attributes) form.add(name, value);
  return form.end();
}

test("numbers and booleans keep their type in JSON, and lists and maps are real ones", () => {
  const line = lineOf(
    "json",
    ["int", 9_007_199_254_740_993n],
    ["double", 0.25],
    ["bool", false],
    ["list", [1n, "a", null, [true]]],
    [
      "map",
      new Map<string, Attribute[1] | null>([
        ["__proto__", "x"],
        ["none", null],
      ]),
    ],
  );
  assert.equal(
    line,
    `{"level":"info","time":"${TIME}","scope":"request","int":9007199254740993,"double":0.25,"bool":false,"list":[1,"a",null,[true]],"map":{"__proto__":"x","none":null}}\n`,
  );
});

test("an attribute with the name of a member of every JSON line gets another one", () => {
  const line = lineOf("json", ["time", "noon"], ["level", 3n], ["scope", "mine"]);
  assert.deepEqual(JSON.parse(line), {
    level: "info",
    time: TIME,
    scope: "request",
    "gwp.time": "noon",
    "gwp.level": 3,
    "gwp.scope": "mine",
  });
});

test("text quotes what could be taken for something else, in values and in names", () => {
  const line = lineOf(
    "text",
    ["plain", "a/b:c?d&e,f"],
    ["space", "a b"],
    ["equals", "a=b"],
    ["quote", 'a"b'],
    ["backslash", "a\\b"],
    ["empty", ""],
    ["umlaut", "ü"],
    ["map", new Map([["k", [1n]]])],
    ["error", "plain"],
    ["a\nb=c", 1n],
  );
  const pairs = [
    "plain=a/b:c?d&e,f",
    'space="a b"',
    'equals="a=b"',
    String.raw`quote="a\"b"`,
    String.raw`backslash="a\\b"`,
    'empty=""',
    'umlaut="ü"',
    String.raw`map="{\"k\":[1]}"`,
    'error="plain"',
    String.raw`"a\nb=c"=1`,
  ];
  assert.equal(line, `${TIME}\tinfo\trequest ${pairs.join(" ")}\n`);
});

test("no character starts a new line, hides text or turns it around, in neither form", () => {
  const forbidden = [
    ..."\n\r\t\v\f\0\u001b\u007f\u0085\u009b\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029",
    ..."\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\ud800",
  ];
  for (const character of forbidden)
    for (const format of ["text", "json"] as const) {
      const line = lineOf(format, ["name", `a${character}b`], [`a${character}b`, "x"]);
      const head = format === "text" ? 2 : 0;
      assert.equal(line.split(character).length - 1, "\n\t".includes(character) ? (character === "\n" ? 1 : head) : 0);
      if (format === "json") assert.equal((JSON.parse(line) as Record<string, unknown>)["name"], `a${character}b`);
    }
});

test("what a stalled writer does not take is held up to a bound, then given up and counted", () => {
  let resume = (): void => undefined;
  let taken = "";
  let dropped = 0;
  let isStalled = true;
  const accessLog = createAccessLog({
    format: "text",
    write(lines) {
      taken += lines;
      return !isStalled;
    },
    onReady: (call) => (resume = call),
    onDropped: (lines) => (dropped += lines),
  });
  const value = "x".repeat(10_000);
  const content = { addTo: (sink: { add(name: string, text: string): void }) => sink.add("value", value) };
  for (let at = 0; at < 1_000; at++) accessLog.write(content, undefined);
  assert.ok(dropped > 500 && dropped < 620, `${dropped} of 1000 dropped`);
  isStalled = false;
  resume();
  accessLog.write(content, undefined);
  accessLog.close();
  assert.equal(taken.split("\n").length - 1, 1_001 - dropped);
});
