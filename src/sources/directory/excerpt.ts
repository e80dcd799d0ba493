/**
 * Extracts the source line of a diagnostic for display. parse.ts uses it. Secrets are masked, control characters cannot
 * reach the terminal (they could rewrite its output), and a long line is cut to the part around the diagnostic.
 */
import { SECRETS } from "../../../generated/secrets.ts";
import type { Span } from "./source-locations.ts";

export interface Excerpt {
  readonly text: string;
  /** Start of the diagnostic in `text`, in UTF-16 code units from 0. `length` is at least 1. */
  readonly from: number;
  readonly length: number;
}

const MASK = "***";
const WIDTH = 120;
/** Number of characters before the diagnostic that a shortened line shows. */
const BEFORE = 40;

/** Number of characters around the diagnostic that are searched for the line: a file may be one line of megabytes. */
const NEAR = 1_024;

/** @param secrets spans that must not be shown, in any order */
export function excerptOf(text: string, span: Span, secrets: readonly Span[]): Excerpt {
  // A diagnostic inside of a secret marks the whole secret: one mask, so that the position within the secret stays hidden.
  const { start, end } = secrets.find((secret) => secret.start <= span.start && secret.end >= span.end) ?? span;
  const from = Math.max(0, start - NEAR);
  const lineStart = from + text.slice(from, start).lastIndexOf("\n") + 1;
  const near = text.slice(start, start + NEAR);
  const newline = near.indexOf("\n");
  const lineEnd = start + (newline < 0 ? near.length : newline);
  const hidden = secrets.filter((secret) => secret.start < lineEnd && secret.end > lineStart);
  const prefix = masked(text, { start: lineStart, end: start }, hidden);
  const marked = masked(text, { start, end: Math.max(start, Math.min(end, lineEnd)) }, hidden);
  const suffix = masked(text, { start: Math.min(Math.max(start, end), lineEnd), end: lineEnd }, hidden);
  return cut(plain(prefix), plain(marked), plain(suffix.trimEnd()));
}

/** Decides whether lines of an unparsable text may be shown: only when the text contains no name of a secret field. */
export function mayHoldSecrets(text: string): boolean {
  return MAY_HOLD_SECRETS.test(text);
}

const SECRET_NAMES = [
  ...new Set(
    Object.values(SECRETS).flatMap((paths) =>
      paths.flatMap((path) => path.filter((part) => part !== "*").at(-1) ?? []),
    ),
  ),
];
const MAY_HOLD_SECRETS = new RegExp(`\\bSecret(List)?\\b|(?<![\\w-])(${SECRET_NAMES.join("|")})["']?\\s*:`);

/**
 * Returns a part of the text with each secret replaced by one mask, also when the secret begins or ends outside of the
 * part.
 */
function masked(text: string, part: Span, secrets: readonly Span[]): string {
  const hidden = secrets
    .filter(({ start, end }) => start < part.end && end > part.start)
    .sort((a, b) => a.start - b.start);
  let shown = "";
  let at = part.start;
  for (const { start, end } of hidden) {
    if (end <= at) continue;
    shown += text.slice(at, Math.max(at, start)) + MASK;
    at = end;
  }
  return shown + (at < part.end ? text.slice(at, part.end) : "");
}

/** Replaces control and bidirectional characters. Tabs stay, since the line of marks below can repeat them. */
function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what must not get through
  return text.replaceAll(/[\u0000-\u0008\u000A-\u001F\u007F-\u009F\u200E\u200F\u202A-\u202E\u2066-\u2069]/g, "\uFFFD");
}

function cut(prefix: string, marked: string, suffix: string): Excerpt {
  const head = prefix.length + marked.length > WIDTH && prefix.length > BEFORE ? `…${prefix.slice(-BEFORE)}` : prefix;
  const body = marked.length > WIDTH ? `${marked.slice(0, WIDTH)}…` : marked;
  const room = Math.max(0, WIDTH - head.length - body.length);
  const tail = suffix.length > room ? `${suffix.slice(0, room)}…` : suffix;
  return { text: head + body + tail, from: head.length, length: Math.max(1, body.length) };
}
