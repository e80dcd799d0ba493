/** Pages and code name only what exists: links, paths, targets and identifiers in pages, and documents in comments. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "../..");
const WIDTH = 120;
/**
 * A document in a comment: a path from the root or from the file's folder, with or without an anchor, that is not part of a
 * URL; or a chapter of a specification that nobody else can open, such as "spec controller 7".
 */
const DOCUMENT = /(?<![\w./:-])(?:((?:[\w.-]+\/)*[\w.-]+\.md)\b(?:#([\w-]+))?|spec [a-z-]+ \d[\d.]*)/g;

interface Line {
  /** `docs/files.md:12`, for messages. */
  readonly place: string;
  readonly text: string;
  /** Whether the line is part of a fenced block, or one of its fences. */
  readonly isCode: boolean;
}

interface Page {
  readonly path: string;
  readonly lines: readonly Line[];
}

const getPage = memoize(readPage);
const getAnchors = memoize(findAnchors);
const PAGES = globSync(["{README,CONTRIBUTING,SECURITY,CODE_OF_CONDUCT}.md", "docs/**/*.md"], { cwd: ROOT })
  .sort()
  .map(getPage);
const isGenerated = ({ path }: Page): boolean => path.startsWith("docs/reference/");

test("every relative link leads to a file that exists, and to an anchor of it", () => {
  const links = PAGES.flatMap((page) => findLinks(page).map((link) => ({ ...link, path: page.path })));
  assert.ok(links.length > 100, "the scanner sees the links");
  assert.deepEqual(
    links.filter(({ path, target }) => !leadsSomewhere(path, target)).map(({ place, target }) => `${place} ${target}`),
    [],
  );
});

test("every path that a page names exists", () => {
  const paths = PAGES.flatMap((page) =>
    findCodeSpans(page).flatMap(({ place, text }) =>
      text
        .split(/\s+/)
        .filter((word) => /^(?:src|test|codegen|crds|proto|docs|examples|generated|tools)\//.test(word))
        .filter((word) => !/[<>…]|\.\.\./.test(word))
        .map((path) => ({ place, path: path.replace(/:\d+(?:-\d+)?$/, "") })),
    ),
  );
  assert.ok(paths.length > 50, "the scanner sees the paths");
  assert.deepEqual(
    paths.filter(({ path }) => !pathExists(path)).map(({ place, path }) => `${place} ${path}`),
    [],
  );
});

test("every target of make that a page names is in the Makefile", () => {
  const makefile = readFileSync(join(ROOT, "Makefile"), "utf8");
  const targets = new Set([...makefile.matchAll(/^([a-z][a-z-]*):/gm)].map(([, name = ""]) => name));
  const named = PAGES.flatMap((page) =>
    [...findCodeSpans(page), ...page.lines.filter(({ isCode }) => isCode)].flatMap(({ place, text }) =>
      [...text.matchAll(/(?:^|[\s;&|(])make ([a-z][a-z-]*)/g)].map(([, target = ""]) => ({ place, target })),
    ),
  );
  assert.ok(named.length > 20, "the scanner sees the targets");
  assert.deepEqual(
    named.filter(({ target }) => !targets.has(target)).map(({ place, target }) => `${place} make ${target}`),
    [],
  );
});

test("every identifier that the pages for developers name is in the code", () => {
  const known = new Set(
    globSync("{src,codegen,tools,test}/**/*.{ts,tsx,mjs,json,proto}", {
      cwd: ROOT,
      exclude: ["test/unit/docs.test.ts"],
    })
      .map((file) => readFileSync(join(ROOT, file), "utf8").match(/[A-Za-z_$][\w$]*/g) ?? [])
      .flat(),
  );
  const named = PAGES.filter(
    ({ path }) => path === "docs/architecture.md" || path.startsWith("docs/developer/"),
  ).flatMap((page) =>
    findCodeSpans(page).flatMap(({ place, text }) => {
      const name = identifierIn(text);
      return name === undefined ? [] : [{ place, name }];
    }),
  );
  assert.ok(named.length > 0, "the scanner sees the identifiers");
  assert.deepEqual(
    named.filter(({ name }) => !known.has(name)).map(({ place, name }) => `${place} ${name}`),
    [],
  );
});

test(`prose is at most ${WIDTH} columns wide`, () => {
  const wide = PAGES.filter((page) => !isGenerated(page)).flatMap(({ lines }) =>
    lines.filter(({ text, isCode }) => !isCode && [...text].length > WIDTH && !isTableRow(text) && !isOneLink(text)),
  );
  assert.deepEqual(
    wide.map(({ place }) => place),
    [],
  );
});

test("every document that a comment names exists", () => {
  const files = globSync("{src,codegen,tools,test/support}/**/*.{ts,tsx,mjs,js,sh}", { cwd: ROOT }).sort();
  const comments = files.flatMap((file) => findComments(file).map((comment) => ({ ...comment, file })));
  assert.ok(comments.length > 1000, "the scanner sees the comments");
  const missing = comments.flatMap(({ place, text, file }) =>
    [...text.matchAll(DOCUMENT)]
      .filter(([, path = "", anchor]) => !documentExists(file, path, anchor))
      .map(([name]) => `${place} ${name}`),
  );
  assert.deepEqual(missing, []);
});

function memoize<T>(compute: (key: string) => T): (key: string) => T {
  const known = new Map<string, T>();
  return (key) => {
    const value = known.get(key) ?? compute(key);
    known.set(key, value);
    return value;
  };
}

function readPage(path: string): Page {
  let inFence = false;
  const lines = readFileSync(join(ROOT, path), "utf8")
    .split("\n")
    .map((text, index): Line => {
      const isFence = /^\s*(?:```|~~~)/.test(text);
      if (isFence) inFence = !inFence;
      return { place: `${path}:${index + 1}`, text, isCode: isFence || inFence };
    });
  return { path, lines };
}

interface Found {
  readonly place: string;
  readonly text: string;
}

/** Returns the comments of a file line by line; one that begins behind code is found where it begins with `//` or `#`. */
function findComments(path: string): Found[] {
  const trailing = path.endsWith(".sh") ? /(?:^|\s)#\s(.*)$/ : /(?:^|\s)\/\/\s(.*)$/;
  let inBlock = false;
  return readFileSync(join(ROOT, path), "utf8")
    .split("\n")
    .flatMap((line, index) => {
      // A block comment begins its line here; "/*" behind something else is part of a glob pattern.
      if (line.trimStart().startsWith("/*")) inBlock = true;
      const text = inBlock ? line : trailing.exec(line)?.[1];
      if (line.includes("*/")) inBlock = false;
      return text === undefined ? [] : [{ place: `${path}:${index + 1}`, text }];
    });
}

/** Returns what stands between backticks outside of fenced blocks. A span may go on in the next line of a paragraph. */
function findCodeSpans(page: Page): Found[] {
  return findInParagraphs(page, /(?<!`)(`+)(?!`)([\s\S]*?[^`])\1(?!`)/g, (match) => match[2] ?? "");
}

/** Returns the targets of inline links and images, and of link definitions. */
function findLinks(page: Page): { readonly place: string; readonly target: string }[] {
  const blank = (text: string): string =>
    text.replace(/(?<!`)(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, (code) => code.replace(/[^\n]/g, "x"));
  const pattern = /\]\(\s*<?([^\s()<>]+(?:\([^\s()]*\)[^\s()]*)*)>?(?:\s+"[^"]*")?\s*\)|^\s*\[[^\]]+\]:\s+(\S+)/gm;
  return findInParagraphs(page, pattern, (match) => match[1] ?? match[2] ?? "", blank).map(({ place, text }) => ({
    place,
    target: text,
  }));
}

/** Matches a pattern in each paragraph, so that a match may go over a line's end, but not over an empty line or a block of code. */
function findInParagraphs(
  { lines }: Page,
  pattern: RegExp,
  pick: (match: RegExpMatchArray) => string,
  prepare: (text: string) => string = (text) => text,
): Found[] {
  const found: Found[] = [];
  let paragraph: Line[] = [];
  const finish = (): void => {
    const text = prepare(paragraph.map((line) => line.text).join("\n"));
    for (const match of text.matchAll(pattern)) {
      const line = paragraph[text.slice(0, match.index).split("\n").length - 1];
      found.push({ place: line?.place ?? "", text: pick(match) });
    }
    paragraph = [];
  };
  for (const line of lines) {
    const isAlone = isTableRow(line.text);
    if (line.isCode || isAlone || line.text.trim() === "") finish();
    if (!line.isCode) paragraph.push(line);
    if (isAlone) finish();
  }
  finish();
  return found;
}

function leadsSomewhere(from: string, target: string): boolean {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return true;
  const [file = "", anchor] = target.split("#");
  const path = file === "" ? from : join(dirname(from), decodeURI(file));
  if (path.startsWith("..") || !existsSync(join(ROOT, path))) return false;
  return anchor === undefined || !path.endsWith(".md") || getAnchors(path).has(decodeURIComponent(anchor));
}

/** Returns the anchors that GitHub gives to headings, and those that a page writes itself. */
function findAnchors(path: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const { text, isCode } of getPage(path).lines) {
    if (isCode) continue;
    for (const [, name = ""] of text.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(name);
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(text)?.[1];
    if (heading === undefined) continue;
    const slug = slugOf(heading);
    let unique = slug;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${slug}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

function documentExists(from: string, path: string, anchor: string | undefined): boolean {
  if (path === "") return false;
  const target = [path, join(dirname(from), path)].find((name) => existsSync(join(ROOT, name)));
  return target !== undefined && (anchor === undefined || getAnchors(target).has(anchor));
}

function slugOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M} _-]/gu, "")
    .replace(/ /g, "-");
}

function pathExists(path: string): boolean {
  return /[*{]/.test(path) ? globSync(path, { cwd: ROOT }).length > 0 : existsSync(join(ROOT, path));
}

/** Returns the name in `startGateway`, `HttpExchange` and `exchange.abort()`; words such as `true` and `Exchange` may be prose. */
function identifierIn(text: string): string | undefined {
  const called = /^(?:[\w$]+\.)*([A-Za-z_$][\w$]*)\(\)$/.exec(text)?.[1];
  if (called !== undefined) return called;
  return /^[a-z][a-z0-9]*[A-Z]\w*$/.test(text) || /^[A-Z]\w*[A-Z]\w*$/.test(text) ? text : undefined;
}

function isTableRow(text: string): boolean {
  return text.trimStart().startsWith("|");
}

function isOneLink(text: string): boolean {
  return /^\s*(?:[-*]\s+|\d+\.\s+|>\s*)?!?(?:\[[^\]]*\]\([^)]*\)|<?https?:\S+)[.,;:]?$/.test(text);
}
