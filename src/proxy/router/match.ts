/**
 * Compiles one match of a rule (HTTPRouteMatch of the Gateway API): path, method, headers and query. `PathTable` finds
 * the path, and `restMatches` tests the rest.
 */
import type { MatchedPath } from "../exchange/exchange.ts";
import type { HttpMatch, ValueMatch } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import { ConfigError } from "../../lib/errors.ts";
import { decodeQueryText } from "../../lib/network/request-target.ts";
import { compilePattern, type TextTest } from "./pattern.ts";

/** The parts of a request that the router reads. */
export interface Routable {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly requestHeaders: HeaderList;
}

interface PathMatch extends MatchedPath {
  readonly test: TextTest;
}

interface ValueTest {
  readonly name: string;
  readonly test: TextTest;
}

export interface CompiledMatch {
  readonly path: PathMatch;
  /** "" matches every method. */
  readonly method: string;
  readonly headers: readonly ValueTest[];
  readonly query: readonly ValueTest[];
}

/** Matches every request, with the lowest precedence. */
export const EVERYTHING: CompiledMatch = { path: prefixMatch("/"), method: "", headers: [], query: [] };

/** @throws ConfigError for an invalid regular expression */
export function compileMatch(match: HttpMatch): CompiledMatch {
  return {
    path: compilePath(match),
    method: match.method,
    headers: distinct(match.headers),
    query: distinct(match.query),
  };
}

function compilePath({ path }: HttpMatch): PathMatch {
  switch (path.case) {
    case "exact": {
      const text = path.value;
      return { kind: "exact", text, test: (value) => value === text };
    }
    case "prefix":
      return prefixMatch(path.value);
    case "regex":
      return { kind: "regex", text: path.value, test: compilePattern(path.value) };
    case undefined:
      return prefixMatch("/");
  }
}

function prefixMatch(value: string): PathMatch {
  if (!value.startsWith("/")) throw new ConfigError(`path prefix ${JSON.stringify(value)} does not start with "/"`);
  const text = value.endsWith("/") ? value.slice(0, -1) : value;
  return { kind: "prefix", text, test: (path) => isUnder(path, text) };
}

/** Compares whole segments: "/a" is a prefix of "/a" and "/a/b", but not of "/ab". */
export function isUnder(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path.charCodeAt(prefix.length) === 47);
}

/** Keeps the first of several entries with one name, as the Gateway API demands for headers and query parameters. */
function distinct(matches: readonly ValueMatch[]): ValueTest[] {
  const tests = new Map<string, ValueTest>();
  for (const { name, value } of matches) {
    if (tests.has(name)) continue;
    const { value: text } = value;
    if (text === undefined) throw new ConfigError(`match of ${name} without a value`);
    tests.set(name, { name, test: value.case === "regex" ? compilePattern(text) : (given) => given === text });
  }
  return [...tests.values()];
}

/** Tests method, headers and query; the path has been matched already. */
export function restMatches(match: CompiledMatch, request: Routable): boolean {
  if (match.method !== "" && match.method !== request.method) return false;
  for (const header of match.headers) if (!headerMatches(header, request.requestHeaders)) return false;
  for (const entry of match.query) {
    const value = queryValue(request.target, entry.name);
    if (value === undefined || !entry.test(value)) return false;
  }
  return true;
}

function headerMatches({ name, test }: ValueTest, headers: HeaderList): boolean {
  const { raw } = headers;
  for (let at = 0; at < raw.length; at += 2)
    if ((raw[at] as string).toLowerCase() === name && test(raw[at + 1] as string)) return true;
  return false;
}

/** Returns the first value of a query parameter, decoded; undefined when it is absent. */
export function queryValue(target: string, name: string): string | undefined {
  for (let at = target.indexOf("?") + 1; at > 0 && at <= target.length;) {
    const found = target.indexOf("&", at);
    const end = found < 0 ? target.length : found;
    const equals = target.indexOf("=", at);
    const split = equals < 0 || equals > end ? end : equals;
    if (decodeQueryText(target.slice(at, split)) === name)
      return decodeQueryText(target.slice(Math.min(split + 1, end), end));
    at = found < 0 ? 0 : end + 1;
  }
  return undefined;
}
