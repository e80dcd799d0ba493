import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createDirectorySource } from "../../../../src/sources/directory/source.ts";
import {
  effectsOf,
  followFolder as start,
  policy,
  RecordedEvents as Sink,
  refuseBad,
  route,
} from "../../../support/fixtures/followed-folder.ts";
import { Random } from "../../../support/fixtures/objects/random.ts";
import { createLogger } from "../../../../src/lib/log.ts";

const OFF = createLogger({ level: "off", modules: new Map() }, () => {});

test("start delivers every object of every file in a stable order, frozen and with its namespace", async (t) => {
  const { sink } = await start(t, {
    "b.yaml": route("two"),
    "a.yml": `${route("one")}---\n${policy("keys")}`,
    "c.txt": "no manifest",
    ".hidden.yaml": route("hidden"),
  });
  assert.deepEqual(sink.take(), ["set HTTPRoute/one", "set GwPolicy/keys", "set HTTPRoute/two"]);
  assert.deepEqual(sink.problems, []);
});

test("objects are frozen and hold namespace and time of creation", async (t) => {
  const { sink } = await start(t, { "a.yaml": route("one") });
  const [event] = sink.events;
  assert.ok(event?.type === "set");
  assert.equal(event.object.metadata.namespace, "default");
  assert.equal(event.object.metadata.creationTimestamp, "1970-01-01T00:00:00Z");
  assert.throws(() => Object.assign(event.object.metadata, { name: "other" }), TypeError);
});

test("a changed file delivers what changed and nothing else", async (t) => {
  const { sink, write } = await start(t, { "a.yaml": `${route("one")}---\n${route("two")}` });
  sink.take();
  await write("a.yaml", `${route("one")}---\n${route("two", ", x: 1")}---\n${route("three")}`);
  await sink.until(() => sink.events.length > 0);
  assert.deepEqual(sink.take(), ["set HTTPRoute/two", "set HTTPRoute/three"]);
});

test("an editor's rename over the file, a removed file and one in a new folder are noticed", async (t) => {
  const { folder, sink, write } = await start(t, { "a.yaml": route("one") });
  sink.take();
  await write(".a.yaml.tmp", route("one", ", x: 1"));
  await rename(join(folder, ".a.yaml.tmp"), join(folder, "a.yaml"));
  await sink.until(() => sink.events.length > 0);
  assert.deepEqual(sink.take(), ["set HTTPRoute/one"]);
  await rm(join(folder, "a.yaml"));
  await sink.until(() => sink.events.length > 0);
  assert.deepEqual(sink.take(), ["delete HTTPRoute/one"]);
  await mkdir(join(folder, "deep/er"), { recursive: true });
  await write("deep/er/b.json", JSON.stringify({ apiVersion: "v1", kind: "Service", metadata: { name: "svc" } }));
  await sink.until(() => sink.events.length > 0);
  assert.deepEqual(sink.take(), ["set Service/svc"]);
});

test("a named file that is removed keeps its objects in force, is reported, and is followed when it is made again", async (t) => {
  const { folder, sink, write } = await start(t, { "a.yaml": route("one") }, ["a.yaml"]);
  sink.take();
  await rm(join(folder, "a.yaml"));
  await sink.until(() => sink.problems.length > 0);
  assert.deepEqual(sink.take(), []);
  assert.match(sink.problems[0]?.message ?? "", /no such file/);
  await write("a.yaml", route("two"));
  await sink.until(() => sink.events.length > 0);
  assert.deepEqual(sink.take(), ["delete HTTPRoute/one", "set HTTPRoute/two"]);
  await sink.until(() => sink.problems.length === 0);
});

test("a pattern names files that come and go, in folders that come later too, and nothing hidden", async (t) => {
  const { folder, sink, write } = await start(t, { "a.yaml": route("one"), "a.txt": "no: [manifest" }, ["*/*.yaml"]);
  assert.match(sink.problems[0]?.message ?? "", /no file matches/);
  sink.take();
  await mkdir(join(folder, "later"));
  await write("later/.hidden.yaml", route("hidden"));
  await write("later/b.yaml", route("two"));
  await sink.until(() => sink.events.length > 0);
  assert.deepEqual(sink.take(), ["set HTTPRoute/two"]);
  await sink.until(() => sink.problems.length === 0);
  await write("later/c.yaml", route("three"));
  await rm(join(folder, "later/b.yaml"));
  await sink.until(() => sink.events.length > 1);
  assert.deepEqual(sink.take().toSorted(), ["delete HTTPRoute/two", "set HTTPRoute/three"]);
});

test("a change is delivered although another file changes without a pause", async (t) => {
  const { sink, write } = await start(t, { "busy.yaml": route("busy"), "calm.yaml": route("calm") });
  sink.take();
  let isSeen = false;
  const seen = sink.until(() =>
    sink.events.some((event) => event.type === "set" && event.object.metadata.name === "new"),
  );
  const busy = (async () => {
    for (let turn = 0; !isSeen; turn++) await write("busy.yaml", route("busy", `, turn: ${turn}`));
  })();
  await write("calm.yaml", route("new"));
  await seen;
  isSeen = true;
  await busy;
});

test("folders that are swapped by a link, as Kubernetes does it with mounts, are followed", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "directory-source-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const version of ["1", "2"]) {
    await mkdir(join(folder, `..${version}`));
    await writeFile(join(folder, `..${version}`, "a.yaml"), route(`version-${version}`));
  }
  await symlink("..1", join(folder, "..data"));
  await symlink("..data/a.yaml", join(folder, "a.yaml"));
  const { sink } = await start(t, {}, [folder]);
  assert.deepEqual(sink.take(), ["set HTTPRoute/version-1"]);
  const moved = sink.until(() => sink.events.length > 1);
  await symlink("..2", join(folder, "..next"));
  await rename(join(folder, "..next"), join(folder, "..data"));
  await moved;
  assert.deepEqual(sink.take(), ["delete HTTPRoute/version-1", "set HTTPRoute/version-2"]);
});

test("after any series of changes the same is in force as after a fresh start", async (t) => {
  const { folder, sink, write } = await start(t, { "a.yaml": route("r0") });
  await mkdir(join(folder, "below"));
  const random = new Random(1);
  const files = ["a.yaml", "b.yaml", "c.json.yml", "below/d.yaml", "notes.txt", ".hidden.yaml"];
  for (let step = 0; step < 60; step++) {
    const file = join(folder, random.pick(files));
    const name = `r${random.between(0, 3)}`;
    const texts = [
      route(name, `, step: ${step}`),
      `${route(name)}---\n${policy("p", "  bad: true")}`,
      `${route(name)}---\n{`,
    ];
    switch (random.between(0, 3)) {
      case 0:
        await rm(file, { force: true });
        break;
      case 1:
        await writeFile(`${file}~`, random.pick(texts));
        await rename(`${file}~`, file);
        break;
      default:
        await writeFile(file, random.pick(texts));
    }
  }
  // What was broken on the way kept what it said before, which a fresh start does not know.
  for (const file of files.slice(0, 4)) await write(file, route(`r${random.between(0, 3)}`, ", step: 100"));
  const fresh = new Sink();
  const other = createDirectorySource({
    paths: [folder],
    validate: refuseBad,
    applyDefaults: (_, object) => object,
    log: OFF,
  });
  t.after(() => other.stop());
  await other.start(fresh);
  await sink.until(() => sameState(sink, fresh));
  assert.deepEqual(sink.problems, fresh.problems);
});

/** What is in force after all events, by object. */
function stateOf({ events }: Sink): string {
  const state = new Map<string, unknown>();
  for (const event of events) {
    const { kind, name } =
      event.type === "set" ? { kind: event.object.kind, name: event.object.metadata.name } : event.id;
    if (event.type === "delete") state.delete(`${kind} ${name}`);
    else state.set(`${kind} ${name}`, event.object);
  }
  return JSON.stringify([...state].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function sameState(live: Sink, fresh: Sink): boolean {
  return stateOf(live) === stateOf(fresh) && JSON.stringify(live.problems) === JSON.stringify(fresh.problems);
}

test("a document that becomes broken keeps its object, while the sound documents of its file go on", async (t) => {
  const { sink, source, write } = await start(t, { "a.yaml": `${route("one")}---\n${route("two")}` });
  sink.take();
  await write("a.yaml", `${route("one", ", x: 1")}---\nkind: [unclosed\n`);
  await source.reload();
  assert.deepEqual(sink.take(), ["set HTTPRoute/one"]);
  assert.deepEqual(effectsOf(sink), ["kept: HTTPRoute default/two as accepted before"]);
  assert.ok((sink.problems[0]?.line ?? 0) >= 6);
  await write("a.yaml", route("one", ", x: 2"));
  await source.reload();
  assert.deepEqual(sink.take(), ["delete HTTPRoute/two", "set HTTPRoute/one"]);
  assert.deepEqual(sink.problems, []);
});

test("a file that is broken at start still gives its readable documents", async (t) => {
  const { sink } = await start(t, { "a.yaml": `${route("one")}---\na: b: c\n---\n${route("two")}` });
  assert.deepEqual(sink.take(), ["set HTTPRoute/one", "set HTTPRoute/two"]);
  assert.equal(sink.problems.length, 1);
});

test("a policy that is refused at start is passed on as refused until it is mended, and then kept", async (t) => {
  const { sink, source, write } = await start(t, { "a.yaml": policy("keys", "  bad: true\n") });
  const [event] = sink.events;
  assert.ok(event?.type === "refused");
  assert.equal(event.reason, "spec.bad: Invalid value: true");
  assert.deepEqual(
    sink.problems.map(({ line, column, object, path, suggestion }) => ({ line, column, object, path, suggestion })),
    [{ line: 7, column: 8, object: "GwPolicy default/keys", path: "spec.bad", suggestion: "remove it" }],
  );
  sink.take();
  await write("a.yaml", policy("keys"));
  await source.reload();
  assert.deepEqual(sink.take(), ["set GwPolicy/keys"]);
  await write("a.yaml", policy("keys", "  bad: true\n"));
  await source.reload();
  assert.deepEqual(sink.take(), []);
  assert.deepEqual(effectsOf(sink), ["kept: GwPolicy default/keys as accepted before"]);
  await write("a.yaml", "");
  await source.reload();
  assert.deepEqual(sink.take(), ["delete GwPolicy/keys"]);
});

test("a policy inside a document that cannot be read is refused where its name can be read", async (t) => {
  const { sink } = await start(t, { "a.yaml": policy("keys", "  traffic: {}\n  traffic: {}\n") });
  assert.deepEqual(sink.take(), ["refused GwPolicy/keys"]);
  assert.match(sink.problems[0]?.message ?? "", /unique/);
});

test("a refused object of another kind is not loaded at start, and later keeps its last accepted version", async (t) => {
  const { sink, source, write } = await start(t, { "a.yaml": route("one", ", bad: true") });
  assert.deepEqual(sink.take(), []);
  assert.equal(sink.problems.length, 1);
  await write("a.yaml", route("one"));
  await source.reload();
  assert.deepEqual(sink.take(), ["set HTTPRoute/one"]);
  await write("a.yaml", route("one", ", bad: true"));
  await source.reload();
  assert.deepEqual(sink.take(), []);
  assert.equal(sink.problems.length, 1);
});

test("of two objects with one name the first counts, and the error names both places", async (t) => {
  const { sink, folder } = await start(t, { "a.yaml": route("one"), "b.yaml": route("one", ", x: 1") });
  assert.deepEqual(sink.take(), ["set HTTPRoute/one"]);
  assert.equal(sink.problems.length, 1);
  assert.equal(sink.problems[0]?.file, join(folder, "b.yaml"));
  assert.match(sink.problems[0]?.message ?? "", /a\.yaml:1:1 .*b\.yaml:1:1/);
});

test("a file that is emptied for a moment, as by an editor that is about to write, loses nothing", async (t) => {
  const { sink, write } = await start(t, { "a.yaml": route("one"), "b.yaml": route("two") });
  sink.take();
  await write("a.yaml", "");
  await write("b.yaml", route("two", ", x: 1"));
  await sink.until(() => sink.events.some((event) => event.type === "set"));
  await write("a.yaml", route("one", ", x: 1"));
  await sink.until(() => sink.events.length >= 2);
  assert.deepEqual(sink.take(), ["set HTTPRoute/two", "set HTTPRoute/one"]);
});

test("locate tells where a field of an object stands", async (t) => {
  const { source, folder } = await start(t, { "a.yaml": `${route("one")}---\n${policy("keys")}` });
  const id = { group: "gwproxy.dev", kind: "GwPolicy", namespace: "default", name: "keys" };
  assert.deepEqual(source.locate(id, "spec.targetRefs[0].name"), {
    file: join(folder, "a.yaml"),
    line: 11,
    column: 32,
  });
  assert.equal(source.locate({ ...id, name: "other" }, ""), undefined);
});

test("of a file with thousands of faults a thousand are told, and its sound objects are taken", async (t) => {
  const { sink } = await start(t, {
    "a.yaml": [...Array.from({ length: 1_200 }, (_, at) => route(`r${at}`, ", bad: true")), route("sound")].join(
      "---\n",
    ),
  });
  assert.deepEqual(sink.take(), ["set HTTPRoute/sound"]);
  assert.equal(sink.problems.length, 1_000);
  assert.ok(sink.problems.some(({ message }) => message.startsWith("Too many: 201 more problems are left out")));
});

test("thousands of copies of one object are told a hundred times", async (t) => {
  const { sink } = await start(t, { "a.yaml": Array.from({ length: 5_000 }, () => route("one")).join("---\n") });
  assert.deepEqual(sink.take(), ["set HTTPRoute/one"]);
  assert.equal(sink.problems.length, 100);
});

test("a huge file leaves the event loop free, and a change beside it is taken although the reading is not over", async (t) => {
  const { folder, sink, source, write } = await start(t, { "a.yaml": route("one") });
  sink.take();
  // 10 MB: more objects than a file may have, of which nothing is taken.
  await writeFile(join(folder, "huge.yaml"), `${route("copy")}---\n`.repeat(80_000));
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await sink.until(() => sink.problems.some(({ file }) => file.endsWith("huge.yaml")));
  isOver = true;
  assert.ok(turns > 20, `${turns} turns`);
  assert.match(sink.problems[0]?.message ?? "", /more than 10000 documents/);
  assert.deepEqual(sink.take(), []);
  await write("a.yaml", route("one", ", x: 1"));
  await sink.until(() => sink.events.length > 0);
  assert.deepEqual(sink.take(), ["set HTTPRoute/one"]);
  await source.reload();
});
