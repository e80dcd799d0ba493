/**
 * Writes the software bill of materials of the images for tools/image.ts, in CycloneDX 1.6 (ECMA-424): the packages of the
 * bundle with the checksums of the lock file, Node, and the libraries that Node needs. Equal inputs give equal bytes, so
 * it has neither a date nor a serial number.
 */
import { createHash } from "node:crypto";

export interface SbomInput {
  /** Version of gwproxy. */
  readonly version: string;
  /** Folders of the bundled packages, such as "node_modules/@scope/name". */
  readonly packages: readonly string[];
  /** The parsed package-lock.json. */
  readonly lock: { readonly packages: Readonly<Record<string, LockedPackage>> };
  readonly nodeVersion: string;
  /** Files besides the bundle, by their path in the images. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

interface LockedPackage {
  readonly version?: string;
  /** Subresource integrity of the tarball, such as "sha512-…". */
  readonly integrity?: string;
  readonly license?: string;
}

/** @throws Error for a bundled package that the lock file does not pin */
export function renderSbom({ version, packages, lock, nodeVersion, files }: SbomInput): string {
  const node = {
    type: "application",
    "bom-ref": `pkg:generic/node@${nodeVersion}`,
    name: "node",
    version: nodeVersion,
    purl: `pkg:generic/node@${nodeVersion}`,
  };
  const components = [
    ...[...packages].sort().map((folder) => renderPackage(folder, lock.packages[folder])),
    node,
    ...[...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, bytes]) => renderFile(path, bytes)),
  ];
  const bom = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "application", "bom-ref": "gwproxy", name: "gwproxy", version } },
    components,
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

function renderPackage(folder: string, locked: LockedPackage | undefined): object {
  const name = folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
  const [algorithm, digest] = locked?.integrity?.split("-", 2) ?? [];
  if (locked?.version === undefined || algorithm !== "sha512" || digest === undefined)
    throw new Error(`${folder} is bundled, but package-lock.json does not pin it`);
  // A scope is a namespace of the package URL, and its @ is escaped.
  const purl = `pkg:npm/${name.replace("@", "%40")}@${locked.version}`;
  return {
    type: "library",
    // A package may be installed twice, in different folders.
    "bom-ref": folder,
    name,
    version: locked.version,
    purl,
    hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }],
    ...(locked.license === undefined ? {} : { licenses: [{ expression: locked.license }] }),
  };
}

function renderFile(path: string, bytes: Uint8Array): object {
  const content = createHash("sha256").update(bytes).digest("hex");
  return { type: "file", "bom-ref": path, name: path, hashes: [{ alg: "SHA-256", content }] };
}
