/**
 * Folds the notes of `changes/unreleased/<kind>/<slug>.md` into CHANGELOG.md as the section of one release, and removes
 * them. Run as a program: `node tools/changelog.ts VERSION` (`make changelog VERSION=…`).
 */
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Folders of notes in the order in which a release lists them, with their titles (keepachangelog.com 1.1.0). */
export const KINDS = {
  security: "Security",
  added: "Added",
  changed: "Changed",
  fixed: "Fixed",
  removed: "Removed",
} as const;

export type Kind = keyof typeof KINDS;

export interface Note {
  readonly kind: Kind;
  /** Markdown; further paragraphs belong to the same entry. */
  readonly text: string;
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CHANGELOG = join(ROOT, "CHANGELOG.md");

/**
 * Returns the changelog with one more release, the newest first.
 * @param changelog the file so far: a head, then sections that begin with "## "
 * @param title "0.2.0 (2026-12-01)"
 */
export function addRelease(changelog: string, title: string, notes: readonly Note[]): string {
  const sections = (Object.keys(KINDS) as Kind[]).flatMap((kind) => {
    const entries = notes.filter((note) => note.kind === kind).map(({ text }) => entry(text));
    return entries.length === 0 ? [] : [`### ${KINDS[kind]}\n\n${entries.join("\n")}\n`];
  });
  const release = `## ${title}\n\n${sections.join("\n")}`;
  const start = changelog.search(/^## /m);
  if (start < 0) return `${changelog.trimEnd()}\n\n${release}`;
  return `${changelog.slice(0, start)}${release}\n${changelog.slice(start)}`;
}

/** Prints a list item; its further paragraphs are indented so that they stay part of it. */
function entry(text: string): string {
  const item = text.trim().replace(/^- /, "");
  return `- ${item.replace(/\n(?=[^\n])/g, "\n  ")}`;
}

function readNotes(): (Note & { readonly file: string })[] {
  return globSync("changes/unreleased/*/*.md", { cwd: ROOT })
    .sort()
    .map((file) => {
      const kind = basename(dirname(file));
      if (!isKind(kind)) throw new Error(`${file}: the folder must be one of ${Object.keys(KINDS).join(", ")}`);
      return { file, kind, text: readFileSync(join(ROOT, file), "utf8") };
    });
}

function isKind(name: string): name is Kind {
  return Object.hasOwn(KINDS, name);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [version] = process.argv.slice(2);
  if (version === undefined || !/^[0-9]+\.[0-9]+\.[0-9]+/.test(version)) {
    process.stderr.write("usage: node tools/changelog.ts VERSION    (for example 0.2.0)\n");
    process.exit(2);
  }
  const notes = readNotes();
  const changelog = existsSync(CHANGELOG) ? readFileSync(CHANGELOG, "utf8") : "# Changelog\n";
  const today = new Date().toISOString().slice(0, 10);
  writeFileSync(CHANGELOG, addRelease(changelog, `${version} (${today})`, notes));
  for (const { file } of notes) rmSync(join(ROOT, file));
  process.stdout.write(`${notes.length} notes are in CHANGELOG.md as ${version}\n`);
}
