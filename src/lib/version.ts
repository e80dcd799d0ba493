/** The version of this program, read once from its package.json, which stands two or three folders up. */
import { existsSync, readFileSync } from "node:fs";

export const VERSION: string = readVersion();

function readVersion(): string {
  const file = ["../../package.json", "../../../package.json"]
    .map((path) => new URL(path, import.meta.url))
    .find((url) => existsSync(url));
  if (file === undefined) return "unknown";
  // Our own manifest.
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
