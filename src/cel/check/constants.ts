/**
 * Checks constant arguments of functions that parse text. A constant that cannot be parsed fails on every evaluation,
 * so admission and translation reject it with its position. check/calls.ts uses it; running programs are not affected.
 */
import { RE2JS } from "re2js";
import { messageOf } from "../../lib/errors.ts";
import type { Node } from "../ast.ts";
import { Run } from "../budget.ts";
import type { FunctionEntry } from "../function.ts";
import { CelError, Failure } from "../errors.ts";
import { templateFailure } from "../functions/format.ts";
import { parseCidr, parseIp } from "../functions/network.ts";
import { NOT_RE2, compilePattern } from "../functions/regex.ts";
import { isTimeZone, TIME_PARTS } from "../functions/time.ts";
import { quote } from "../../lib/quote.ts";

/** A parameter that must parse: its index after the receiver, and the reason why a text does not parse. */
interface ParsedParameter {
  readonly at: number;
  readonly findError: (text: string) => string | undefined;
}

const PATTERN: ParsedParameter = { at: 1, findError: findPatternError };
const ZONE: ParsedParameter = { at: 1, findError: (zone) => (isTimeZone(zone) ? undefined : "not a time zone") };

/** Functions with one parsed parameter among others. Keys are those of a FunctionTable. */
const PARAMETERS: ReadonlyMap<string, ParsedParameter> = new Map<string, ParsedParameter>([
  ...["matches/2", ".matches/1", ".find/1", ".findAll/1", ".findAll/2", ".regexReplace/2"].map(
    (key) => [key, PATTERN] as const,
  ),
  [".containsIP/1", { at: 1, findError: (text) => (parseIp(text, true) ? undefined : "not an IP address") }],
  [".containsCIDR/1", { at: 1, findError: (text) => (parseCidr(text) ? undefined : "not an address range") }],
  [".format/1", { at: 0, findError: (text) => templateFailure(text)?.message }],
  ...[...TIME_PARTS].map((part) => [`.${part}/1`, ZONE] as const),
]);

/** Pure functions of one argument, whose result for a constant never changes. They are called to test the constant. */
const PARSERS: ReadonlySet<string> = new Set(
  [
    "duration timestamp cidr ip quantity url json int uint double bool string bytes ip.isCanonical",
    "base64.decode base64Decode url.decode unvalidatedJwtPayload",
  ].flatMap((names) => names.split(" ").map((name) => `${name}/1`)),
);

/** @param args led by the receiver of a method. @throws CelError at an argument that can never be parsed */
export function checkConstants(key: string, { call }: FunctionEntry, args: readonly Node[], steps: number): void {
  const parameter = PARAMETERS.get(key);
  const node = PARSERS.has(key) ? args[0] : parameter === undefined ? undefined : args[parameter.at];
  if (node?.kind !== "constant") return;
  const { value } = node;
  if (parameter !== undefined) {
    const error = typeof value === "string" ? parameter.findError(value) : undefined;
    if (error !== undefined) refuse(key, node, error);
    return;
  }
  const result = call(new Run({ root: () => undefined }, 0, steps), value);
  // Arguments of a wrong type are reported by the overload check.
  if (result instanceof Failure && result.code !== "no_such_overload") refuse(key, node, result.message);
}

/** Rejects a constant with the name of the function and the beginning of the text. */
function refuse(key: string, node: Extract<Node, { kind: "constant" }>, error: string): never {
  const name = key.replace(/^\.|\/.*$/g, "");
  const { value } = node;
  const shown = typeof value === "string" ? ` ${quote(value.slice(0, LONGEST))}${cutMark(value)}` : "";
  throw new CelError("invalid_argument", `"${name}" never accepts its argument${shown}: ${error}`, node.position);
}

const LONGEST = 64;

function cutMark(text: string): string {
  return text.length > LONGEST ? "…" : "";
}

/** Returns the reason why a text is not a pattern, in the words of the library; undefined when it is one. */
export function findPatternError(text: string): string | undefined {
  const compiled = compilePattern(text);
  if (!(compiled instanceof Failure)) return undefined;
  if (compiled.message !== NOT_RE2) return compiled.message;
  try {
    RE2JS.compile(text);
    return NOT_RE2;
  } catch (error) {
    return `not a regular expression of RE2: ${messageOf(error)}`;
  }
}
