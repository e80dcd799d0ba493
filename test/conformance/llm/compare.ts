/** Finds the places at which two JSON values differ. */
import { isDeepStrictEqual } from "node:util";

export interface Difference {
  /** Path with `[]` for every index of a list. */
  readonly path: string;
  readonly ours: string;
  readonly theirs: string;
}

const ABSENT = "none";
const MAX_SHOWN = 120;

/** Members that are made up anew for each answer. */
const MADE_UP: ReadonlySet<string> = new Set(["id", "created", "created_at", "completed_at", "item_id", "responseId"]);

/** A member that is null or empty says as much as none. */
export function findDifferences(ours: unknown, theirs: unknown, path = ""): Difference[] {
  const [a, b] = [parsed(ours), parsed(theirs)];
  if (isDeepStrictEqual(a, b) || (isBlank(a) && isBlank(b))) return [];
  if (isObject(a) && isObject(b))
    return [...new Set([...Object.keys(a), ...Object.keys(b)])]
      .sort()
      .filter((name) => !MADE_UP.has(name) || isBlank(a[name]) !== isBlank(b[name]))
      .flatMap((name) => findDifferences(a[name], b[name], path === "" ? name : `${path}.${name}`));
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length)
    return a.flatMap((item, at) => findDifferences(item, b[at], `${path}[]`));
  return [{ path, ours: show(a), theirs: show(b) }];
}

function isBlank(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** Reads the texts that hold JSON, such as arguments of calls, whose spelling means nothing. */
function parsed(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*\{/.test(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Compares what clients get. A peer that fails where we serve is one difference. */
export function compareAnswers(ours: Record<string, unknown>, theirs: Record<string, unknown>): Difference[] {
  const hasFailed = (answer: Record<string, unknown>): boolean => typeof answer["status"] === "number";
  if (hasFailed(ours) || !hasFailed(theirs)) return findDifferences(ours, theirs);
  return [{ path: "(fails)", ours: "served", theirs: show(theirs["error"]) }];
}

/** Numbers and digests that are made up anew are left out, so that the list stays the same. */
function show(value: unknown): string {
  const text = (value === undefined ? ABSENT : JSON.stringify(value))
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,}/g, "…")
    .replaceAll(/"(created|created_at)":[0-9.]+/g, '"$1":0');
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
