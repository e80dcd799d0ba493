/**
 * Turns src/rooms.json, the table of the modules and their allowed imports, into the lint rule that enforces it. Run as
 * a program it rewrites the overrides in .oxlintrc.json; the architecture test proves that they are up to date.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface Room {
  /** Modules whose values and types it may import; "*" means all. */
  readonly may: readonly string[];
  /** Modules of which it may import only types. */
  readonly types?: readonly string[];
}
export type Rooms = Readonly<Record<string, Room>>;

interface LintOverride {
  readonly files: readonly string[];
  readonly rules: Readonly<Record<string, unknown>>;
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LINT_FILE = `${ROOT}.oxlintrc.json`;
const GENERATED_PARTS = ["generated/types", "generated/proto", "generated/validators"];

/** Modules that get clock, disk and network passed in; only node:crypto is allowed, for digests. */
const WITHOUT_NODE = ["api", "translator"];

export function readRooms(): Rooms {
  // The cast is safe: the file is ours, and the architecture test fails for another shape.
  return JSON.parse(readFileSync(`${ROOT}src/rooms.json`, "utf8")) as Rooms;
}

export function lintOverrides(rooms: Rooms): LintOverride[] {
  return Object.entries(rooms)
    .filter(([, room]) => !room.may.includes("*"))
    .map(([name, room]) => ({
      files: [`src/${name}/**`],
      rules: { "no-restricted-imports": ["error", { patterns: forbidden(name, room, Object.keys(rooms)) }] },
    }));
}

function forbidden(name: string, room: Room, all: readonly string[]): { group: string[]; message: string }[] {
  const allowed = [name, ...room.may, ...(room.types ?? [])];
  const others = [...all, "codegen"].filter((other) => !allowed.includes(other));
  const parts = allowed.includes("generated") ? [] : GENERATED_PARTS.filter((part) => !allowed.includes(part));
  const patterns = [...others, ...parts].map((other) => ({
    // Begin with two dots, which match the module of that name and not a folder of the same name inside this module.
    group: [`../${other}/**`, `../../${other}/**`, `../../../${other}/**`, `../../../../${other}/**`],
    message: `${name} may not import ${other} (src/rooms.json)`,
  }));
  const node = {
    group: ["node:*", "!node:crypto"],
    message: `${name} is pure: what it needs of Node beside node:crypto is passed in`,
  };
  return WITHOUT_NODE.includes(name) ? [...patterns, node] : patterns;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const lint = JSON.parse(readFileSync(LINT_FILE, "utf8")) as Record<string, unknown>;
  writeFileSync(LINT_FILE, `${JSON.stringify({ ...lint, overrides: lintOverrides(readRooms()) }, null, 2)}\n`);
}
