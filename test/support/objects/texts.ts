/**
 * Texts that a schema takes, and texts that miss it by one character. What rules compare a field with is part of the
 * pool, so that rules about names and kinds are met and missed in turn.
 */
import fc from "fast-check";
import type { Schema } from "../../../codegen/schema.ts";
import type { Place } from "../../../src/cel/phases.ts";
import { codePointLength } from "../../../src/lib/code-point-length.ts";

const WORDS = [
  "a",
  "b",
  "one",
  "x-1",
  "Über",
  "😀",
  "two words",
  " edge ",
  "a\nb",
  "{}",
  '"',
  "http://h/p",
  "10Mi",
  "1.2",
  "10.0.0.0/8",
  "192.0.2.1",
];
const RANGES = ["10.0.0.1", "10.0.0.0/8", "192.168.7.0/24", "::1", "2001:db8::/32", "fe80::1/128"];
const REGEXES = ["a+", "^/v[0-9]+/", "(?i)x|y", "\\d{3}-\\d{4}"];
const USERS = ["ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=", "bob:$apr1$x$y", "eve:$2y$05$z"];
const TIMES = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+02:00"];

/** One of them compiles in each place; what exists only there is among them. */
const EXPRESSIONS: Readonly<Record<Place, readonly string[]>> = {
  process: ["env.podName", '"fixed"', 'env.gateway + "." + env.namespace'],
  connection: ["source.address", "env.gateway"],
  gateway: ["proxy.gateway.name"],
  request: ["request.path", "jwt.sub == 'a'", "true"],
  backend: ["backend.name", "request.path"],
  llm: ["llmRequest.model", "llm.requestModel"],
  callout: ["callout.body.x", "callout.headers"],
  mcp: ["mcp.tool.name == 'a'", "jwt.sub"],
  response: ["response.code >= 500", "llm.totalTokens"],
  log: ["response.code", "mcp.sessionId"],
};

const STUFFING = ["a", "0", " ", "-a", ".a", "/a", "é", "😀"];
const POOL = 24;

export interface TextPlace {
  readonly schema: Schema;
  readonly cel: string | undefined;
  /** What rules that name the field compare with. */
  readonly hints: readonly string[];
}

const pools = new Map<string, readonly string[]>();

/** Texts that the schema takes: some dozen, always the same. */
export function textsFor({ schema, cel, hints }: TextPlace): readonly string[] {
  const { pattern, minLength, maxLength, format } = schema;
  const key = JSON.stringify([pattern, minLength, maxLength, format, schema["x-gw-format"], cel, hints]);
  const known = pools.get(key);
  if (known !== undefined) return known;
  const pool = [...new Set(rawTexts({ schema, cel, hints }))].filter((text) => isTaken(schema, text));
  pools.set(key, pool);
  return pool;
}

function rawTexts({ schema, cel, hints }: TextPlace): readonly string[] {
  // The generator of the schemas wrote it: one of the places.
  if (cel !== undefined) return EXPRESSIONS[cel as Place];
  if (schema["x-gw-format"] === "regex") return REGEXES;
  if (schema["x-gw-format"] === "address-range") return RANGES;
  if (schema["x-gw-format"] === "htpasswd") return USERS;
  if (schema.format === "date-time") return TIMES;
  const common = [...hints, ...(schema["x-gw-format"] === "duration" ? ["5s", "1h30m", "10ms"] : []), ...WORDS];
  if (schema.pattern === undefined) return common;
  const matching = fc.stringMatching(new RegExp(schema.pattern, "u"));
  return [...common, ...fc.sample(matching, { numRuns: POOL, seed: 1 })];
}

export function isTaken({ pattern, minLength, maxLength }: Schema, text: string): boolean {
  const length = codePointLength(text);
  // Halves of surrogate pairs do not survive the way to a server.
  if (!text.isWellFormed() || length < (minLength ?? 0) || length > (maxLength ?? Infinity)) return false;
  return pattern === undefined || new RegExp(pattern, "u").test(text);
}

/**
 * A text of exactly this many code points that the pattern takes, made by stretching others.
 * @returns undefined when there is none among many: the pattern then has a bound of its own
 */
export function textOfLength(place: TextPlace, length: number): string | undefined {
  const { minLength: _, maxLength: __, ...free } = place.schema;
  // The shortest expression, and blanks.
  if (place.cel !== undefined) return "1".padEnd(length);
  const bases = textsFor({ ...place, schema: free });
  for (const base of [...(free["x-gw-format"] === undefined ? [""] : []), ...bases]) {
    const points = [...base];
    if (points.length === length && isTaken(free, base)) return base;
    if (points.length > length) continue;
    const stretched = stretch(points, length, (text) => isTaken(free, text));
    if (stretched !== undefined) return stretched;
  }
  return undefined;
}

function stretch(points: readonly string[], length: number, takes: (text: string) => boolean): string | undefined {
  for (let at = points.length; at >= 0; at--) {
    for (const stuffing of STUFFING) {
      const unit = [...stuffing];
      const filled = Array.from({ length: length - points.length }, (_, index) => unit[index % unit.length]);
      const text = [...points.slice(0, at), ...filled, ...points.slice(at)].join("");
      if (takes(text)) return text;
    }
  }
  return undefined;
}

/** Texts of a length that fits and that the pattern does not take. */
export function textsOutside(place: TextPlace): readonly string[] {
  const { pattern, ...free } = place.schema;
  if (pattern === undefined) return [];
  const expression = new RegExp(pattern, "u");
  const broken = textsFor(place).flatMap((text) => [`${text} `, `-${text}`, `${text}\n`, `${text}é`]);
  return ["!", "a b", "Ä", "\u0000", ...broken].filter((text) => isTaken(free, text) && !expression.test(text));
}
