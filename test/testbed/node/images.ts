/** The images of a node besides ours, packed from programs that the testbed builds. There is no registry. */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packImages } from "../../../tools/image-archive.ts";

export const PAUSE_IMAGE = "registry.k8s.io/pause:3.10";

/** An image of a single program. It is kept beside the program, as long as that lives. @returns path of the archive */
export function programImage(program: string, names: readonly string[]): string {
  const key = createHash("sha256").update(names.join()).digest("hex").slice(0, 8);
  const archive = `${program}-${key}.image.tar`;
  if (existsSync(archive)) return archive;
  const root = mkdtempSync(join(tmpdir(), "gwproxy-root-"));
  try {
    copyFileSync(program, join(root, "program"));
    packImages(root, [{ names, entrypoint: ["/program"], user: "" }], archive);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return archive;
}
