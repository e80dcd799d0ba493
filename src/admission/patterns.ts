/** Regular expressions in route matches. The schema takes any text; the router takes RE2, so that no match can stall. */
import { RE2JS } from "re2js";
import { messageOf } from "../lib/errors.ts";
import { print, violation } from "./messages.ts";
import { memberOf, textsAt } from "./paths.ts";
import type { Violation } from "./violation.ts";

const MATCH = ["spec", "rules", "*", "matches", "*"];

interface PatternPlace {
  /** To the object that holds `type` and the pattern. */
  readonly holder: readonly string[];
  readonly field: string;
}

const PLACES: Readonly<Record<string, readonly PatternPlace[]>> = {
  HTTPRoute: [
    { holder: [...MATCH, "path"], field: "value" },
    { holder: [...MATCH, "headers", "*"], field: "value" },
    { holder: [...MATCH, "queryParams", "*"], field: "value" },
  ],
  GRPCRoute: [
    { holder: [...MATCH, "method"], field: "service" },
    { holder: [...MATCH, "method"], field: "method" },
    { holder: [...MATCH, "headers", "*"], field: "value" },
  ],
};

export function patternViolations(kind: string, object: unknown): Violation[] {
  return (PLACES[kind] ?? []).flatMap(({ holder, field }) => {
    return [...textsAt(object, [...holder, field])].flatMap(({ path, text }) => {
      const parent = parentOf(object, path);
      return memberOf(parent, "type") === "RegularExpression" ? faultOf(path, text) : [];
    });
  });
}

function faultOf(path: string, text: string): Violation[] {
  try {
    RE2JS.compile(text);
    return [];
  } catch (error) {
    return [
      violation(
        path,
        "FieldValueInvalid",
        `Invalid value: ${print(text)}: not a regular expression of RE2: ${messageOf(error)}`,
      ),
    ];
  }
}

function parentOf(object: unknown, path: string): unknown {
  const parts = path.split(/[.[\]]+/).filter((part) => part !== "");
  return parts.slice(0, -1).reduce<unknown>((value, part) => memberOf(value, part), object);
}
