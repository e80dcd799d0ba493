import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { create } from "@bufbuild/protobuf";
import { HttpMatchSchema, type HttpMatch } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { compileMatch, restMatches, type Routable } from "../../../../src/proxy/router/match.ts";
import { PathTable } from "../../../../src/proxy/router/path-table.ts";
import { comparePrecedence, type Candidate } from "../../../../src/proxy/router/precedence.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

const segment = fc.constantFrom("a", "b", "ab", "a.c");
const pathText = fc.array(segment, { maxLength: 3 }).map((parts) => `/${parts.join("/")}`);
const header = fc.record({ name: fc.constantFrom("x-a", "x-b"), text: fc.constantFrom("1", "2") });
const match = fc.record({
  kind: fc.constantFrom("exact" as const, "prefix" as const, "regex" as const),
  text: fc.oneof(
    pathText,
    pathText.map((path) => `${path === "/" ? "" : path}/`),
  ),
  pattern: fc.constantFrom("/a.*", "/a/b", "/[ab]+", ".*", "/a/.+"),
  method: fc.constantFrom("", "GET", "POST"),
  headers: fc.array(header, { maxLength: 2 }),
  query: fc.array(header, { maxLength: 2 }),
});
const candidate = fc.record({ match, age: fc.integer({ min: 0, max: 2 }), name: fc.constantFrom("n/a", "n/b", "n/c") });
const request = fc.record({
  path: fc.oneof(
    pathText,
    pathText.map((path) => `${path}/`),
    pathText.map((path) => `${path}/b/a/b`),
  ),
  method: fc.constantFrom("GET", "POST"),
  headers: fc.array(header, { maxLength: 2 }),
  query: fc.array(header, { maxLength: 2 }),
});

function messageOf(given: typeof match extends fc.Arbitrary<infer T> ? T : never): HttpMatch {
  const values = (list: { name: string; text: string }[]) =>
    list.map(({ name, text }) => ({ name, value: { case: "exact" as const, value: text } }));
  const path = { case: given.kind, value: given.kind === "regex" ? given.pattern : given.text };
  return create(HttpMatchSchema, {
    path,
    method: given.method,
    headers: values(given.headers),
    query: values(given.query),
  });
}

type Given = typeof candidate extends fc.Arbitrary<infer T> ? T : never;

/** Those of the list with the largest value. */
function largest<T>(list: readonly T[], valueOf: (each: T) => number): T[] {
  const most = Math.max(...list.map(valueOf));
  return list.filter((each) => valueOf(each) === most);
}

/** A prefix means the same with a slash at its end and without one. */
const pathLength = {
  exact: (text: string): number => text.length,
  prefix: (text: string): number => text.replace(/\/$/, "").length,
  regex: (_text: string, pattern: string): number => pattern.length,
};

/** Of several entries with one name only the first counts. */
const namesOf = (list: readonly { readonly name: string }[]): number => new Set(list.map(({ name }) => name)).size;

/**
 * The rule of the Gateway API (HTTPRouteRule, "matches") by elimination, from what was given and without the code under test.
 * @returns the place of the one that serves; undefined when the list is empty
 */
function winnerOf(matching: readonly { readonly given: Given; readonly place: number }[]): number | undefined {
  if (matching.length === 0) return undefined;
  let left = [...matching];
  for (const valueOf of [
    ({ match: { kind } }: Given) => Number(kind === "exact"),
    ({ match: { kind, text, pattern } }: Given) => pathLength[kind](text, pattern),
    ({ match: { method } }: Given) => Number(method !== ""),
    ({ match: { headers } }: Given) => namesOf(headers),
    ({ match: { query } }: Given) => namesOf(query),
    ({ age }: Given) => -age,
    // One character tells the names apart.
    ({ name }: Given) => -name.charCodeAt(name.length - 1),
  ])
    left = largest(left, ({ given }) => valueOf(given));
  return Math.min(...left.map(({ place }) => place));
}

function tableOf(candidates: readonly Candidate<number>[]): PathTable<number> {
  const table = new PathTable<number>();
  for (const each of candidates) table.add(each);
  return table;
}

test("the table finds what the rule of the Gateway API leaves of all that match, whatever was in it before", () => {
  assertProperty(
    fc.property(fc.array(candidate, { maxLength: 12 }), fc.nat({ max: 4 }), request, (given, gone, asked) => {
      const candidates = given.map((each, ruleIndex): Candidate<number> => ({
        match: compileMatch(messageOf(each.match)),
        createdAtMs: BigInt(each.age),
        routeName: each.name,
        ruleIndex,
        matchIndex: 0,
        rule: ruleIndex,
      }));
      const query = asked.query.map(({ name, text }) => `${name}=${text}`).join("&");
      const routable: Routable = {
        method: asked.method,
        target: query === "" ? asked.path : `${asked.path}?${query}`,
        requestHeaders: new HeaderList(asked.headers.flatMap(({ name, text }) => [name, text])),
      };
      const table = tableOf(candidates);
      for (const each of candidates.splice(0, gone)) table.remove(each);
      assert.equal(table.size, candidates.length);
      const matching = candidates
        .filter(({ match: each }) => each.path.test(asked.path) && restMatches(each, routable))
        .flatMap(({ rule: place }) => given.slice(place, place + 1).map((each) => ({ given: each, place })));
      assert.equal(table.find(asked.path, routable)?.rule, winnerOf(matching));
    }),
    { numRuns: 3000 },
  );
});

test("precedence is a total order", () => {
  assertProperty(
    fc.property(fc.array(candidate, { minLength: 3, maxLength: 3 }), (given) => {
      const [a, b, c] = given.map((each, ruleIndex): Candidate<number> => ({
        match: compileMatch(messageOf(each.match)),
        createdAtMs: BigInt(each.age),
        routeName: each.name,
        ruleIndex,
        matchIndex: 0,
        rule: ruleIndex,
      })) as [Candidate<number>, Candidate<number>, Candidate<number>];
      assert.equal(Math.sign(comparePrecedence(a, b)), -Math.sign(comparePrecedence(b, a)));
      assert.notEqual(comparePrecedence(a, b), 0);
      if (comparePrecedence(a, b) < 0 && comparePrecedence(b, c) < 0) assert.ok(comparePrecedence(a, c) < 0);
    }),
  );
});

test("a path with very many segments is walked no deeper than the longest prefix", () => {
  const deep = `/${"x/".repeat(30_000)}`;
  const messages = [create(HttpMatchSchema, { path: { case: "prefix", value: "/x/x" } })];
  const table = tableOf(
    messages.map((message) => ({
      match: compileMatch(message),
      createdAtMs: 0n,
      routeName: "n/a",
      ruleIndex: 0,
      matchIndex: 0,
      rule: 1,
    })),
  );
  assert.equal(table.find(deep, { method: "GET", target: deep, requestHeaders: new HeaderList() })?.rule, 1);
});
