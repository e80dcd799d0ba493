/** Reads the version of this program from its package.json, which is two folders up, or three in the package. */
import { existsSync, readFileSync } from "node:fs";

export const VERSION: string = readVersion();

function readVersion(): string {
  const file = ["../../package.json", "../../../package.json"]
    .map((path) => new URL(path, import.meta.url))
    .find((url) => existsSync(url));
  if (file === undefined) return "unknown";
  // The cast is safe: package.json is our own file.
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
