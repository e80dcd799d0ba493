/**
 * Translates the matches of an HTTPRoute rule; `http.ts` uses it, and `grpc.ts` shares its parts.
 *
 * A regular expression that does not compile is left out, which makes its match wider. Its rule then answers 500, so
 * that a typing error never lets traffic fall through to another route.
 */
import { create } from "@bufbuild/protobuf";
import type {
  HTTPHeaderMatch,
  HTTPPathMatch,
  HTTPQueryParamMatch,
  HTTPRouteMatch,
} from "../../../generated/types/gateway-api/httproute.ts";
import {
  HttpMatchSchema,
  ValueMatchSchema,
  type HttpMatch,
  type ValueMatch,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

import { findPatternError } from "../../cel/check/constants.ts";

export type Report = (path: string, message: string) => void;

/** Returns at least one match, since a rule without matches takes every path. */
export function translateMatches(matches: readonly HTTPRouteMatch[] | undefined, report: Report): HttpMatch[] {
  const wanted = matches === undefined || matches.length === 0 ? [{}] : matches;
  return wanted.map((match: HTTPRouteMatch, at) => {
    const reportHere: Report = (path, message) => report(`matches[${at}].${path}`, message);
    return create(HttpMatchSchema, {
      path: translatePath(match.path, reportHere),
      headers: translateHeaders(match.headers, reportHere),
      query: firstOfEach(match.queryParams ?? [], (name) => name, "queryParams", reportHere),
      method: match.method ?? "",
    });
  });
}

export function translateHeaders(headers: readonly HTTPHeaderMatch[] | undefined, report: Report): ValueMatch[] {
  return firstOfEach(headers ?? [], (name) => name.toLowerCase(), "headers", report);
}

function translatePath(path: HTTPPathMatch | undefined, report: Report): NonNullable<HttpMatch["path"]> {
  const value = path?.value ?? "/";
  switch (path?.type ?? "PathPrefix") {
    case "Exact":
      return { case: "exact", value };
    case "PathPrefix":
      return { case: "prefix", value: value.length > 1 && value.endsWith("/") ? value.slice(0, -1) : value };
    case "RegularExpression":
      if (isRegex(value, "path.value", report)) return { case: "regex", value };
      return { case: "prefix", value: "/" };
  }
}

/** Keeps the first of several entries with one name, as the Gateway API requires. */
function firstOfEach(
  entries: readonly (HTTPHeaderMatch | HTTPQueryParamMatch)[],
  nameOf: (name: string) => string,
  field: string,
  report: Report,
): ValueMatch[] {
  const found = new Map<string, ValueMatch>();
  entries.forEach((entry, at) => {
    const name = nameOf(entry.name);
    if (found.has(name)) return;
    if (entry.type !== "RegularExpression")
      found.set(name, create(ValueMatchSchema, { name, value: { case: "exact", value: entry.value } }));
    else if (isRegex(entry.value, `${field}[${at}].value`, report))
      found.set(name, create(ValueMatchSchema, { name, value: { case: "regex", value: entry.value } }));
  });
  return [...found.values()];
}

/**
 * Checks a pattern and reports its error. The data plane refuses a whole route for one pattern that it cannot run, so
 * each pattern is checked here first.
 */
export function isRegex(text: string, path: string, report: Report): boolean {
  const error = findPatternError(text);
  if (error !== undefined) report(path, `"${text}": ${error}`);
  return error === undefined;
}
