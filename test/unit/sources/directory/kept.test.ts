/** What becomes of objects that serve when a typing error hides them. */
import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { effectsOf, followFolder as start, policy, route } from "../../../support/fixtures/followed-folder.ts";

const KEPT_KEYS = "kept: GwPolicy default/keys as accepted before";
const KEPT_ONE = "kept: HTTPRoute default/one as accepted before";
const CLOSED_KEYS = "closed: what GwPolicy default/keys targets answers 500 until it is mended";

/** What becomes of an accepted object when its file says this instead; the first text of each is the accepted one. */
const MISTAKES: Readonly<Record<string, readonly [before: string, after: string, effect: string]>> = {
  "a field that is refused": [route("one"), route("one", ", bad: true"), KEPT_ONE],
  "a policy's field that is refused": [policy("keys"), policy("keys", "  bad: true\n"), KEPT_KEYS],
  "a misspelt kind": [route("one"), route("one").replace("HTTPRoute", "HTPRoute"), KEPT_ONE],
  "a kind in the wrong case": [policy("keys"), policy("keys").replace("GwPolicy", "GWPolicy"), KEPT_KEYS],
  "a kind that resembles none": [policy("keys"), policy("keys").replace("GwPolicy", "Quota"), KEPT_KEYS],
  "a wrong group": [policy("keys"), policy("keys").replace("gwproxy.dev", "gwproxy.io"), KEPT_KEYS],
  "a group without a version": [
    policy("keys"),
    policy("keys").replace("gwproxy.dev/v1alpha1", "gwproxy.dev"),
    KEPT_KEYS,
  ],
  "no apiVersion": [route("one"), route("one").replace(/.*\n/, ""), KEPT_ONE],
  "a misspelt apiVersion": [route("one"), route("one").replace("apiVersion", "apiversion"), KEPT_ONE],
  "no kind": [route("one"), route("one").replace("kind: HTTPRoute\n", ""), KEPT_ONE],
  "no name": [route("one"), route("one").replace("name: one", "nam: one"), KEPT_ONE],
  "a name that no object can have": [route("one"), route("one").replace("name: one", "name: One"), KEPT_ONE],
  "metadata that is a text": [route("one"), route("one").replace("{name: one}", "one"), KEPT_ONE],
  "a file of prose": [route("one"), "to be written\n", KEPT_ONE],
  "an unclosed quote": [route("one"), route("one").replace("a.example", '"a.example'), KEPT_ONE],
  "an unclosed list": [policy("keys"), `${policy("keys")}  traffic: [\n`, KEPT_KEYS],
  "a tab": [route("one"), route("one").replace("spec: {", "spec:\n\t{"), KEPT_ONE],
  "a repeated key": [policy("keys"), policy("keys", "  traffic: {}\n  traffic: {}\n"), KEPT_KEYS],
  "braces of a template": [route("one"), route("one").replace("name: one", "name: {{ .Values.name }}"), KEPT_ONE],
  "a Secret that is not base64": [secret("a2V5"), secret("%%%"), "kept: Secret default/credentials as accepted before"],
  "a broken item of a List": [
    JSON.stringify({ apiVersion: "v1", kind: "List", items: [parsedRoute("one"), parsedRoute("two")] }),
    JSON.stringify({ apiVersion: "v1", kind: "List", items: ["one", parsedRoute("two")] }),
    KEPT_ONE,
  ],
};

function secret(value: string): string {
  return `apiVersion: v1\nkind: Secret\nmetadata: {name: credentials}\ndata: {key: "${value}"}\n`;
}

function parsedRoute(name: string): object {
  return { apiVersion: "gateway.networking.k8s.io/v1", kind: "HTTPRoute", metadata: { name } };
}

for (const [mistake, [before, after, effect]] of Object.entries(MISTAKES)) {
  test(`an accepted object outlives ${mistake}, and the fault says so`, async (t) => {
    const { sink, source, write } = await start(t, { "a.yaml": before });
    sink.take();
    await write("a.yaml", after);
    await source.reload();
    assert.deepEqual(
      sink.take().filter((event) => !/^set (GWPolicy|HTPRoute|Quota|GwPolicy)/.test(event)),
      [],
    );
    assert.ok(effectsOf(sink).includes(effect), JSON.stringify(sink.problems));
    await write("a.yaml", before);
    await source.reload();
    assert.deepEqual(sink.problems, []);
  });
}

test("what a file says no more is deleted: an emptied file, a removed document, another name", async (t) => {
  const { sink, source, write, folder } = await start(t, { "a.yaml": `${route("one")}---\n${route("two")}` });
  sink.take();
  await write("a.yaml", route("two"));
  await source.reload();
  assert.deepEqual(sink.take(), ["delete HTTPRoute/one"]);
  await write("a.yaml", route("three"));
  await source.reload();
  assert.deepEqual(sink.take(), ["delete HTTPRoute/two", "set HTTPRoute/three"]);
  await write("a.yaml", "# nothing\n");
  await source.reload();
  assert.deepEqual(sink.take(), ["delete HTTPRoute/three"]);
  await write("a.yaml", route("four"));
  await source.reload();
  await rm(join(folder, "a.yaml"));
  await source.reload();
  assert.deepEqual(sink.take(), ["set HTTPRoute/four", "delete HTTPRoute/four"]);
});

test("an object that moves to another file is kept when it breaks on the way, and when its old file breaks", async (t) => {
  const { sink, source, write } = await start(t, { "a.yaml": `${route("one")}---\n${route("two")}`, "b.yaml": "" });
  sink.take();
  await write("b.yaml", route("one", ", bad: true"));
  await write("a.yaml", route("two"));
  await source.reload();
  assert.deepEqual(sink.take(), []);
  assert.deepEqual(effectsOf(sink), [KEPT_ONE]);
  await write("b.yaml", route("one"));
  await source.reload();
  await write("a.yaml", "kind: [unclosed\n");
  await write("b.yaml", `${route("one")}---\n${route("two", ", x: 1")}`);
  await source.reload();
  assert.deepEqual(sink.take(), ["set HTTPRoute/two"]);
});

test("a file that cannot be read any more keeps its objects", async (t) => {
  const { sink, source, folder } = await start(t, { "a.yaml": route("one") });
  sink.take();
  await writeFile(join(folder, "a.yaml"), Buffer.from([0xff, 0xfe, 0x00, 0x80]));
  await source.reload();
  assert.deepEqual(sink.take(), []);
  assert.deepEqual(effectsOf(sink), [KEPT_ONE]);
});

/** Each is a policy that was never accepted. */
const NEVER_ACCEPTED: Readonly<Record<string, string>> = {
  "a refused field": policy("keys", "  bad: true\n"),
  "a kind in the wrong case": policy("keys").replace("GwPolicy", "Gwpolicy"),
  "a wrong group": policy("keys").replace("gwproxy.dev", "gwproxy.io"),
  "no apiVersion": policy("keys").replace(/.*\n/, ""),
  "a repeated key": policy("keys", "  traffic: {}\n  traffic: {}\n"),
};

for (const [mistake, text] of Object.entries(NEVER_ACCEPTED)) {
  test(`a policy that was never accepted closes what it targets: ${mistake}`, async (t) => {
    const { sink } = await start(t, { "a.yaml": text });
    const refused = sink.events.find((event) => event.type === "refused");
    assert.equal(refused?.id.name, "keys");
    assert.ok(effectsOf(sink).includes(CLOSED_KEYS), JSON.stringify(sink.problems));
  });
}

test("a policy without a name closes what it targets too", async (t) => {
  const { sink } = await start(t, { "a.yaml": policy("Keys!") });
  const [refused] = sink.events;
  assert.ok(refused?.type === "refused");
  assert.deepEqual((refused.object as { spec: { targetRefs: unknown } }).spec.targetRefs, [
    { kind: "Gateway", name: "gw" },
  ]);
  assert.match(effectsOf(sink)[0] ?? "", /^closed: what GwPolicy /);
});
