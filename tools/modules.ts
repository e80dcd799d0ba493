/**
 * Turns src/rooms.json, the table of who may import whom, into the lint rule that enforces it. Run as a program it
 * rewrites the overrides in .oxlintrc.json; the architecture test proves that they are fresh.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface Room {
  /** Rooms whose values and types it may import; "*" is all of them. */
  readonly may: readonly string[];
  /** Rooms of which it may import types only. */
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

/** Modules that get clock, disk and network handed to them; digests they compute themselves. */
const WITHOUT_NODE = ["api", "translator"];

export function readRooms(): Rooms {
  // The file is ours; the architecture test would not survive another shape.
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
    // Two dots first: the room of that name, and not a folder of the same name inside this room.
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
