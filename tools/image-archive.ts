/**
 * Packs a folder as container images without Docker, for tools/image.ts: an archive in the format of `docker save`,
 * which `docker load`, `podman load` and `ctr images import` read. Equal contents give equal bytes.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Image {
  /** References such as "ghcr.io/gwproxy/proxy:1.2.3". */
  readonly names: readonly string[];
  readonly entrypoint: readonly string[];
  /** User and group such as "10101:10101"; "" is root. */
  readonly user: string;
}

/** A fixed date, so that the archive is reproducible. */
const CREATED = "2026-01-01T00:00:00Z";
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64" };
const SAME_BYTES = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", `--mtime=${CREATED}`];

/**
 * @param root the files of all images, at their paths inside the images; a folder tmp is added
 * @param out path of the archive
 */
export function packImages(root: string, images: readonly Image[], out: string): void {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-image-"));
  try {
    mkdirSync(join(root, "tmp"), { recursive: true });
    // mkdir applies the umask of this process, so set the mode separately.
    chmodSync(join(root, "tmp"), 0o1777);
    chmodSync(root, 0o755);
    const layer = join(folder, "layer.tar");
    tar(root, ["."], layer);
    const digest = sha256(readFileSync(layer));
    mkdirSync(join(folder, digest));
    renameSync(layer, join(folder, digest, "layer.tar"));
    const manifest = images.map((image) => {
      const text = configuration(image, digest);
      const name = `${sha256(text)}.json`;
      writeFileSync(join(folder, name), text);
      return { Config: name, RepoTags: image.names, Layers: [`${digest}/layer.tar`] };
    });
    writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
    // Rename the finished archive into place: an interrupted run must not leave one that looks complete.
    const unfinished = `${out}.${process.pid}`;
    tar(folder, [...manifest.map(({ Config: name }) => name), digest, "manifest.json"], unfinished);
    renameSync(unfinished, out);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function configuration({ entrypoint, user }: Image, digest: string): string {
  return JSON.stringify({
    architecture: ARCHITECTURES[process.arch] ?? process.arch,
    os: "linux",
    created: CREATED,
    config: { Entrypoint: entrypoint, User: user, Env: ["PATH=/usr/bin:/bin"], WorkingDir: "/" },
    rootfs: { type: "layers", diff_ids: [`sha256:${digest}`] },
  });
}

function tar(folder: string, files: readonly string[], out: string): void {
  execFileSync("tar", [...SAME_BYTES, "-C", folder, "-cf", out, ...files]);
}

function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}
