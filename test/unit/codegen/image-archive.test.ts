/** Images that are packed without Docker, as any runtime reads them. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { packImages, type Image } from "../../../tools/image-archive.ts";

const IMAGES: readonly Image[] = ["one", "two"].map((name) => ({
  names: [`example.dev/${name}:1`],
  entrypoint: ["/app/program", name],
  user: "10101:10101",
}));

interface Manifest {
  readonly Config: string;
  readonly RepoTags: readonly string[];
  readonly Layers: readonly string[];
}

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-test-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** @returns path of the archive of a root with one file of the given age */
function pack(folder: string, name: string, changedAt: number): string {
  const root = join(folder, name);
  mkdirSync(join(root, "app"), { recursive: true });
  writeFileSync(join(root, "app/program"), "#!/bin/sh\n", { mode: 0o755 });
  utimesSync(join(root, "app/program"), changedAt, changedAt);
  const archive = join(folder, `${name}.tar`);
  packImages(root, IMAGES, archive);
  return archive;
}

test("several images share one layer, and each names its entry point and user", (t) => {
  const folder = folderOf(t);
  const archive = pack(folder, "root", 1);
  const read = (file: string): Buffer => execFileSync("tar", ["-xOf", archive, file]);
  const manifest = JSON.parse(read("manifest.json").toString()) as Manifest[]; // as packImages writes it
  assert.deepEqual(
    manifest.map(({ RepoTags: tags }) => tags),
    [["example.dev/one:1"], ["example.dev/two:1"]],
  );
  const [layer = ""] = manifest[0]?.Layers ?? [];
  assert.deepEqual(manifest[1]?.Layers, [layer]);
  const digest = createHash("sha256").update(read(layer)).digest("hex");
  for (const [at, { Config: file }] of manifest.entries()) {
    const { config, rootfs } = JSON.parse(read(file).toString()) as Record<string, object>; // as packImages writes it
    assert.deepEqual(rootfs, { type: "layers", diff_ids: [`sha256:${digest}`] });
    assert.partialDeepStrictEqual(config, { Entrypoint: IMAGES[at]?.entrypoint, User: "10101:10101" });
  }
  const listed = execFileSync("tar", ["-tv"], { input: read(layer), encoding: "utf8" });
  assert.match(listed, /^-rwxr-xr-x 0\/0 .* \.\/app\/program$/m);
  assert.match(listed, /^drwxrwxrwt 0\/0 .* \.\/tmp\/$/m);
});

test("the same contents give the same bytes, whenever they were written", (t) => {
  const folder = folderOf(t);
  const [one, other] = [pack(folder, "one", 1), pack(folder, "other", 2_000_000_000)];
  assert.ok(readFileSync(one).equals(readFileSync(other)));
});
