/** Lists of several targets: names by prefix mode, order, pages, authorization, and the bytes of what is not changed. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { McpPrefixMode } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { McpError } from "../../../../../src/proxy/mcp/mcp-error.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";
import {
  scriptedTarget,
  testServer,
  type Behaviour,
  type Received,
} from "../../../../support/servers/scripted-target.ts";

const { UNSPECIFIED, ALWAYS, NEVER } = McpPrefixMode;

/** A target whose lists have these pages; cursors are `after-<page>`. */
function paged(name: string, method: string, member: string, pages: readonly (readonly unknown[])[]) {
  return scriptedTarget(name, { [method]: (received) => pageOf(received, member, pages) });
}

function pageOf({ params }: Received, member: string, pages: readonly (readonly unknown[])[]): Behaviour {
  const cursor = params?.["cursor"];
  const page = typeof cursor === "string" ? Number(cursor.slice("after-".length)) : 0;
  const nextCursor = page + 1 < pages.length ? `after-${page + 1}` : undefined;
  return { result: { [member]: pages[page], nextCursor } };
}

interface Kind {
  readonly method: string;
  readonly member: string;
  readonly name: string;
  /** Names of two items as targets have them. */
  readonly own: readonly [string, string];
}

const KINDS: readonly Kind[] = [
  { method: "tools/list", member: "tools", name: "name", own: ["echo", "a_b"] },
  { method: "prompts/list", member: "prompts", name: "name", own: ["echo", "a_b"] },
  { method: "resources/list", member: "resources", name: "uri", own: ["file:///x", "ui://x"] },
  {
    method: "resources/templates/list",
    member: "resourceTemplates",
    name: "uriTemplate",
    own: ["file:///{x}", "ui://{x}"],
  },
  { method: "tasks/list", member: "tasks", name: "taskId", own: ["7", "a+b"] },
];

function seenName(kind: Kind, mode: McpPrefixMode, count: number, { target, own }: { target: string; own: string }) {
  if (kind.name.startsWith("uri"))
    return own.startsWith("ui://") ? own.replace("ui://", `ui://${target}+`) : `${target}+${own}`;
  const isTask = kind.name === "taskId";
  const prefixes = mode === ALWAYS || (count > 1 && (mode !== NEVER || isTask));
  return prefixes ? `${target}${isTask ? "+" : "_"}${own}` : own;
}

async function listNames(ask: (params: unknown) => Promise<Received>, { member, name }: Kind): Promise<string[]> {
  const names: string[] = [];
  let cursor: unknown;
  do {
    const { result } = await ask(cursor === undefined ? {} : { cursor });
    const page = result as Record<string, unknown>;
    for (const item of page[member] as Record<string, string>[]) names.push(item[name] ?? "");
    cursor = page["nextCursor"];
  } while (cursor !== undefined);
  return names;
}

describe("a list of several targets", () => {
  for (const kind of KINDS)
    for (const [title, mode] of [
      ["Conditional", UNSPECIFIED],
      ["Always", ALWAYS],
      ["Never", NEVER],
    ] as const)
      for (const count of [1, 2])
        it(`${kind.method}: prefix mode ${title} names items of ${count} targets`, async () => {
          const [first, second] = kind.own;
          const a = paged("a", kind.method, kind.member, [[{ [kind.name]: first }]]);
          const b = paged("b", kind.method, kind.member, [[{ [kind.name]: second }]]);
          const server = testServer(count === 1 ? [a] : [a, b], { mode });
          const names = await listNames((params) => server.ask(kind.method, params), kind);
          const expected = [seenName(kind, mode, count, { target: "a", own: first })];
          if (count === 2) expected.push(seenName(kind, mode, count, { target: "b", own: second }));
          assert.deepEqual(names, expected);
        });

  it("has every item exactly once, however targets cut it into pages", async () => {
    const kind = KINDS[0];
    assert.ok(kind);
    const pagesOf = fc.array(fc.nat(3), { minLength: 1, maxLength: 4 });
    await assertProperty(
      fc.asyncProperty(fc.array(pagesOf, { minLength: 2, maxLength: 3 }), async (sizes) => {
        const expected = new Set<string>();
        const targets = sizes.map((pages, target) => {
          let item = 0;
          const items = pages.map((size) => Array.from({ length: size }, () => ({ name: `tool-${item++}` })));
          for (const { name } of items.flat()) expected.add(`t${target}_${name}`);
          return paged(`t${target}`, kind.method, kind.member, items);
        });
        const names = await listNames((params) => testServer(targets).ask(kind.method, params), kind);
        assert.equal(names.length, expected.size);
        assert.deepEqual(new Set(names), expected);
      }),
    );
  });

  it("gives each target its own cursor and leaves finished ones alone", async () => {
    const a = paged("a", "tools/list", "tools", [[{ name: "x" }], [{ name: "y" }]]);
    const b = paged("b", "tools/list", "tools", [[{ name: "z" }]]);
    const server = testServer([a, b]);
    const { result } = await server.ask("tools/list");
    await server.ask("tools/list", { cursor: (result as { nextCursor: string }).nextCursor, _meta: { a: 1 } });
    assert.deepEqual(a.received[1]?.params, { cursor: "after-1", _meta: { a: 1 } });
    assert.equal(b.received.length, 1);
  });

  it("ends where targets give no cursor, null, or an empty one", async () => {
    for (const nextCursor of ["", null, undefined]) {
      const a = scriptedTarget("a", { "tools/list": () => ({ result: { tools: [{ name: "x" }], nextCursor } }) });
      const { result } = await testServer([a, scriptedTarget("b", {})]).ask("tools/list");
      assert.deepEqual(result, { tools: [{ name: "a_x" }] });
    }
  });

  it("refuses cursors that were changed, made up, or made for another list or backend", async () => {
    const pages = [[{ name: "x" }], [{ name: "y" }]];
    const targets = ["a", "b"].map((name) =>
      scriptedTarget(name, {
        "tools/list": (received) => pageOf(received, "tools", pages),
        "prompts/list": (received) => pageOf(received, "prompts", pages),
      }),
    );
    const server = testServer(targets);
    const { result } = await server.ask("tools/list");
    const { nextCursor } = result as { nextCursor: string };
    const other = testServer(targets, { backend: "ns/others" });
    const changed = nextCursor.replace(/.$/, (last) => (last === "A" ? "B" : "A"));
    for (const cursor of [changed, "", "x", "after-1", 7, null])
      await assert.rejects(server.ask("tools/list", { cursor }), isInvalidCursor);
    await assert.rejects(server.ask("prompts/list", { cursor: nextCursor }), isInvalidCursor);
    await assert.rejects(other.ask("tools/list", { cursor: nextCursor }), isInvalidCursor);
    assert.ok(await server.ask("tools/list", { cursor: nextCursor }));
  });

  it("passes the cursors of a single target through", async () => {
    const a = paged("a", "tools/list", "tools", [[{ name: "x" }], [{ name: "y" }]]);
    const server = testServer([a]);
    const { result } = await server.ask("tools/list");
    assert.deepEqual(result, { tools: [{ name: "x" }], nextCursor: "after-1" });
    assert.deepEqual((await server.ask("tools/list", { cursor: "after-1" })).result, { tools: [{ name: "y" }] });
  });

  it("keeps the bytes of items", async () => {
    const text = '[ {"x":12345678901234567890, "__proto__":{"y":1},\n "name" : "e\\u0063ho" } ]';
    const [a, b] = ["a", "b"].map((name) =>
      scriptedTarget(name, { "tools/list": () => ({ result: `{"tools":${text}}` }) }),
    );
    assert.ok(a && b);
    const answer = await testServer([a, b]).open("tools/list");
    const item = (prefix: string): string => text.slice(2, -2).replace('"e', `"${prefix}e`);
    assert.equal(
      answer.only?.bytes.toString(),
      `{"jsonrpc":"2.0","id":1,"result":{"tools":[${item("a_")},${item("b_")}]}}`,
    );
  });

  it("leaves out what rules deny, also when nothing stays", async () => {
    const items = ["a", "b", "c", "d"].map((name) => ({ name }));
    const denied = fc.subarray(items.map(({ name }) => name));
    await assertProperty(
      fc.asyncProperty(denied, fc.constantFrom(1, 2), async (names, count) => {
        const targets = ["t", "u"].slice(0, count).map((name) => paged(name, "tools/list", "tools", [items]));
        const server = testServer(targets, {
          authorize: () => (kind, target, name) => kind === "tool" && !(target === "t" && names.includes(name)),
        });
        const kind = KINDS[0];
        assert.ok(kind);
        const kept = items.map(({ name }) => name);
        const ofT = kept.filter((name) => !names.includes(name));
        const expected = count === 1 ? ofT : [...ofT.map((name) => `t_${name}`), ...kept.map((name) => `u_${name}`)];
        assert.deepEqual(await listNames((params) => server.ask("tools/list", params), kind), expected);
      }),
    );
  });

  it("rewrites where tools have their user interface, and removes what is denied", async () => {
    const tool = { name: "x", _meta: { ui: { resourceUri: "ui://app", other: 1 }, "ui/resourceUri": "ui://app" } };
    const a = paged("a", "tools/list", "tools", [[tool]]);
    const seen = (await testServer([a]).ask("tools/list")).result;
    const _meta = { ui: { resourceUri: "ui://a+app", other: 1 }, "ui/resourceUri": "ui://a+app" };
    assert.deepEqual(seen, { tools: [{ name: "x", _meta }] });
    const strict = testServer([a], { authorize: () => (kind) => kind !== "resource" });
    assert.deepEqual((await strict.ask("tools/list")).result, { tools: [{ name: "x", _meta: { ui: { other: 1 } } }] });
  });

  it("is what the others serve when a target does not know the method", async () => {
    const a = paged("a", "prompts/list", "prompts", [[{ name: "x" }]]);
    const server = testServer([a, scriptedTarget("b", {})]);
    assert.deepEqual((await server.ask("prompts/list")).result, { prompts: [{ name: "a_x" }] });
    assert.deepEqual((await testServer([scriptedTarget("b", {}), scriptedTarget("c", {})]).ask("tools/list")).result, {
      tools: [],
    });
  });

  it("marks lists as complete and not to be cached, for clients that know such marks", async () => {
    const result = { tools: [], resultType: "complete", ttlMs: 60_000, cacheScope: "public" };
    const targets = ["a", "b"].map((name) => scriptedTarget(name, { "tools/list": () => ({ result }) }));
    const marks = { tools: [], resultType: "complete", ttlMs: 0, cacheScope: "private" };
    for (const some of [targets, targets.slice(1)]) {
      assert.deepEqual((await testServer(some, { version: "2026-07-28" }).ask("tools/list")).result, marks);
      assert.deepEqual((await testServer(some).ask("tools/list")).result, { tools: [] });
    }
  });
});

describe("names without a target", () => {
  const tools = (...names: string[]): unknown[] => names.map((name) => ({ name }));

  it("are left out when two targets serve them", async () => {
    const a = paged("a", "tools/list", "tools", [tools("x", "both")]);
    const b = paged("b", "tools/list", "tools", [tools("both", "y")]);
    const { result } = await testServer([a, b], { mode: NEVER }).ask("tools/list");
    assert.deepEqual(result, { tools: tools("x", "y") });
  });

  it("are shown when the caller may see one of them only", async () => {
    const a = paged("a", "tools/list", "tools", [tools("both")]);
    const b = paged("b", "tools/list", "tools", [tools("both")]);
    const server = testServer([a, b], { mode: NEVER, authorize: () => (_kind, target) => target === "b" });
    assert.deepEqual((await server.ask("tools/list")).result, { tools: tools("both") });
  });

  it("are not shown again on later pages", async () => {
    const a = paged("a", "tools/list", "tools", [tools("x"), tools("z")]);
    const b = paged("b", "tools/list", "tools", [tools("y"), tools("x")]);
    const kind = KINDS[0];
    assert.ok(kind);
    const server = testServer([a, b], { mode: NEVER });
    assert.deepEqual(await listNames((params) => server.ask("tools/list", params), kind), ["x", "y", "z"]);
  });

  it("are read to the end at once when a cursor could not carry those that were shown", async () => {
    const many = Array.from({ length: 2_100 }, (_, index) => `tool-${index}`);
    const a = paged("a", "tools/list", "tools", [tools(...many), tools("last")]);
    const b = paged("b", "tools/list", "tools", [tools("y"), tools("tool-7", "w")]);
    const { result } = await testServer([a, b], { mode: NEVER }).ask("tools/list");
    const names = (result as { tools: { name: string }[] }).tools.map(({ name }) => name);
    assert.deepEqual(Object.keys(result as object), ["tools"]);
    assert.deepEqual(names, [...many.filter((name) => name !== "tool-7"), "y", "last", "w"]);
  });
});

function isInvalidCursor(error: unknown): boolean {
  return error instanceof McpError && error.rpcCode === -32_602 && error.status === 200;
}
