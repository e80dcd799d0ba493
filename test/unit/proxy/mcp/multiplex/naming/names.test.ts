/** Names, URIs, task ids and request ids of targets as clients see them, and back. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { McpPrefixMode } from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Naming } from "../../../../../../src/proxy/mcp/multiplex/naming/names.ts";
import { parseRoutedId, printRoutedId } from "../../../../../../src/proxy/mcp/multiplex/naming/request-ids.ts";
import { parseUri, printUri } from "../../../../../../src/proxy/mcp/multiplex/naming/uris.ts";
import { assertProperty } from "../../../../../support/fixtures/seed.ts";

const [A, B] = [{ name: "a" }, { name: "b-2" }];
const { UNSPECIFIED: CONDITIONAL, ALWAYS, NEVER } = McpPrefixMode;

/** Name and task id of `a` as a client sees them, by prefix mode and number of targets. */
const SEEN = [
  { title: "Conditional", mode: CONDITIONAL, targets: [A], name: "echo", id: "7" },
  { title: "Conditional", mode: CONDITIONAL, targets: [A, B], name: "a_echo", id: "a+7" },
  { title: "Always", mode: ALWAYS, targets: [A], name: "a_echo", id: "a+7" },
  { title: "Always", mode: ALWAYS, targets: [A, B], name: "a_echo", id: "a+7" },
  { title: "Never", mode: NEVER, targets: [A], name: "echo", id: "7" },
  { title: "Never", mode: NEVER, targets: [A, B], name: "echo", id: "a+7" },
];

describe("names of a virtual server", () => {
  for (const { title, mode, targets, name, id } of SEEN)
    it(`prefix mode ${title} with ${targets.length} targets shows ${name} and ${id}`, () => {
      const naming = new Naming(mode, targets);
      assert.equal(naming.namePrefix(A) + "echo", name);
      assert.equal(naming.idPrefix(A) + "7", id);
      const hasOwner = mode !== NEVER || targets.length === 1;
      assert.deepEqual(naming.parseName(name), hasOwner ? { target: A, name: "echo" } : undefined);
      assert.deepEqual(naming.parseId(id), { target: A, name: "7" });
      assert.equal(printUri(A, "file:///x"), "a+file:///x");
      assert.deepEqual(parseUri(naming, "a+file:///x"), { target: A, name: "file:///x" });
      const bare = targets.length === 1 ? { target: A, name: "file:///x" } : undefined;
      assert.deepEqual(parseUri(naming, "file:///x"), bare);
    });

  const naming = new Naming(CONDITIONAL, [A, B]);

  it("splits at the first delimiter", () => {
    assert.deepEqual(naming.parseName("a_b_c"), { target: A, name: "b_c" });
    assert.deepEqual(naming.parseId("b-2+a+1"), { target: B, name: "a+1" });
    assert.deepEqual(parseUri(naming, "a+git+ssh://h/p"), { target: A, name: "git+ssh://h/p" });
  });

  it("knows no owner of names without a target, of unknown targets and of members of objects", () => {
    for (const seen of ["echo", "", "_", "c_echo", "__proto__", "constructor_x"])
      assert.equal(naming.parseName(seen), undefined, seen);
    for (const seen of ["7", "+7", "c+7", "__proto__+7"]) assert.equal(naming.parseId(seen), undefined, seen);
    for (const seen of ["file:///x", "c+file:///x", "ui://x", "ui://c+x", "a+relative", "", "+"])
      assert.equal(parseUri(naming, seen), undefined, seen);
  });

  it("keeps the scheme of user interfaces in front, and relative references as they are", () => {
    assert.equal(printUri(A, "ui://x/y"), "ui://a+x/y");
    assert.deepEqual(parseUri(naming, "ui://a+x/y"), { target: A, name: "ui://x/y" });
    assert.equal(printUri(A, "x/y"), "x/y");
    assert.equal(printUri(A, "{+path}"), "{+path}");
    assert.equal(printUri(A, "file:///{path}"), "a+file:///{path}");
  });

  it("gives a relative reference with the name of its target in front to the only target whole", () => {
    assert.deepEqual(parseUri(new Naming(CONDITIONAL, [A]), "a+b"), { target: A, name: "a+b" });
  });

  it("reads every URI with a scheme that it has printed", () => {
    const uris = fc.tuple(fc.constantFrom("file:", "ui://", "a+b:", "x"), fc.string()).map((parts) => parts.join(""));
    assertProperty(
      fc.property(fc.constantFrom(A, B), uris, (target, uri) => {
        const seen = printUri(target, uri);
        if (seen !== uri) assert.deepEqual(parseUri(naming, seen), { target, name: uri });
      }),
    );
  });
});

describe("ids of requests of targets", () => {
  it("carry the target, the kind and the id", () => {
    assert.equal(printRoutedId("a", "7"), '"gw_a_n_7"');
    assert.equal(printRoutedId("b-2", '"x_\\n"'), '"gw_b-2_s_x_\\n"');
  });

  it("come back as they were, long integers too", () => {
    const ids = fc.oneof(
      fc.string().map((text) => JSON.stringify(text)),
      fc.bigInt().map(String),
    );
    assertProperty(
      fc.property(ids, (id) => assert.deepEqual(parseRoutedId(printRoutedId("b-2", id)), { target: "b-2", id })),
    );
  });

  it("are unknown when they were not made here", () => {
    for (const seen of ["7", '"7"', '"gw_a_n_"', '"gw_a_n_1.5"', '"gw_a_n_01"', '"gw__n_1"', '"gw_a_x_1"', '"gw_a"'])
      assert.equal(parseRoutedId(seen), undefined, seen);
  });
});
