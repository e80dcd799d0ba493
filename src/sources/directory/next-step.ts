/**
 * Suggests a correction for a diagnostic whose message only says what is wrong: the value that was probably meant, or the
 * values that the field takes. check.ts uses it; the messages themselves stay in the words of the API server.
 */
import { SECRETS } from "../../../generated/secrets.ts";
import { explain } from "../../admission/explain.ts";
import { memberOf, reaches } from "../../admission/paths.ts";
import type { Violation } from "../../admission/violation.ts";
import { closest } from "../../lib/suggest.ts";
import type { ObjectError } from "./normalise.ts";
import { splitPath } from "./source-locations.ts";

/**
 * @param groupKind group and kind such as "gwproxy.dev/GwPolicy"
 * @param object the object as it is written
 */
export function nextStep({ path, reason, message, suggestion }: Violation, groupKind: string, object: unknown): string {
  if (suggestion !== "") return suggestion;
  const steps = splitPath(path);
  // A suggestion may repeat a value, and a secret must not be repeated.
  const isSecret = (SECRETS[groupKind] ?? []).some((pattern) => reaches(path, pattern));
  const value = isSecret ? undefined : steps.reduce<unknown>((at, step) => memberOf(at, step), object);
  return stepFor(reason, message, { value, name: steps.at(-1) ?? "" }) ?? wordsOf(groupKind, path, message);
}

interface InvalidValue {
  readonly value: unknown;
  /** Name of the field without its path. */
  readonly name: string;
}

function stepFor(reason: string, message: string, { value, name }: InvalidValue): string | undefined {
  switch (reason) {
    case "FieldValueRequired":
      return `add ${name}`;
    case "FieldValueDuplicate":
      return "remove one of them, or give it another name";
    case "FieldValueTooMany":
      return "remove some of them";
    case "FieldValueTooLong":
      return "shorten it";
    case "FieldValueTypeInvalid":
      return typeStep(message, value);
    case "FieldValueNotSupported":
      return supportedStep(message, value);
    default:
      return valueStep(message, value);
  }
}

function typeStep(message: string, value: unknown): string | undefined {
  const wanted = /must be of type ([\w,]+):/.exec(message)?.[1] ?? "";
  if (wanted.includes("string") && (typeof value === "number" || typeof value === "boolean"))
    return `put the text in quotes: "${String(value)}"`;
  if (typeof value === "string" && /integer|number/.test(wanted) && /^\d+$/.test(value))
    return `write a number, without quotes: ${Number(value)}`;
  if (typeof value === "string" && wanted === "boolean") return "write true or false, without quotes";
  if (wanted === "array") return "write a list: put [ ] around it, or begin it with a dash";
  if (wanted === "object" && Array.isArray(value)) return "write one object: remove the dash";
  if (wanted === "object") return "write fields below it, each on a line of its own and indented";
  if (value === null) return "give it a value, or remove the field";
  return undefined;
}

function supportedStep(message: string, value: unknown): string | undefined {
  const [, list = ""] = /supported values: (.*)$/s.exec(message) ?? [];
  const values = [...list.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, one = ""]) => one);
  const near = typeof value === "string" ? closest(value, values) : undefined;
  return near === undefined ? "use one of the values that the message lists" : `did you mean \`${near}\`?`;
}

/** Limit of the text that is matched against patterns, because a pattern may backtrack for long on a longer one. */
const LONGEST_TEXT = 256;

/** Repairs of common mistakes; a repaired text is suggested when it matches the pattern of the field. */
const REPAIRS: readonly ((text: string) => string)[] = [
  (text) => text.trim(),
  (text) => text.replaceAll(/\s+/g, ""),
  (text) => text.toLowerCase(),
  (text) => text.toLowerCase().replaceAll(/\s+/g, ""),
  (text) => `${text}s`,
  (text) => text.replace(/(\d+)\s*(?:seconds?|secs?)$/i, "$1s"),
  (text) => text.replace(/(\d+)\s*(?:minutes?|mins?)$/i, "$1m"),
  (text) => text.replace(/(\d+)\s*d(?:ays?)?$/i, (_, days: string) => `${Number(days) * 24}h`),
  (text) => text.replace(/\s*([KMG])B$/i, "$1i"),
  (text) => text.toLowerCase().replaceAll(/[_\s]+/g, "-"),
  (text) => text.replace(/^https?:\/\//, "").replace(/\/.*$/, ""),
  (text) => text.replace(/:\d+$/, ""),
  (text) => text.replace(/^.*\*[^.]*\./, "*."),
  (text) => `/${text}`,
];

function valueStep(message: string, value: unknown): string | undefined {
  const [, pattern] = /should match '(.*)'$/s.exec(message) ?? [];
  if (pattern !== undefined && typeof value === "string" && value.length <= LONGEST_TEXT) {
    // The patterns come from the schemas, never from a user.
    const expression = new RegExp(pattern, "u");
    const meant = REPAIRS.map((repair) => repair(value)).find((text) => text !== value && expression.test(text));
    if (meant !== undefined) return `did you mean \`${meant}\`?`;
  }
  const [, bound, limit] = /should be (greater|less) than or equal to (-?[\d.]+)/.exec(message) ?? [];
  if (bound !== undefined) return `use ${limit} or ${bound === "less" ? "less" : "more"}`;
  if (/exactly one|only one|at most one|mutually|both/i.test(message)) return "keep one of them and remove the others";
  if (/at least one|must (?:be set|have|specify)|is required/i.test(message)) return "set what the message names";
  return undefined;
}

/** Returns the description of the field from the schema, or the `kubectl explain` command for kinds without one. */
function wordsOf(groupKind: string, path: string, message: string): string {
  if (message.includes("does not compile"))
    return "docs/reference/expressions.md lists what an expression can read and call";
  const sentences = explain(groupKind, path);
  const kind = groupKind.slice(groupKind.lastIndexOf("/") + 1).toLowerCase();
  return (
    sentences.at(-1) ??
    `see kubectl explain ${[kind, ...splitPath(path).filter((step) => !/^\d+$/.test(step))].join(".")}`
  );
}

/** Suggests a correction for text that is not YAML, from the message of the parser and the line that it names. */
export function syntaxStep(message: string, line: string): string {
  if (line.includes("{{")) return "render the template first: helm template . > rendered.yaml";
  if (line.includes("\t")) return "indent with spaces: YAML does not take tabs";
  const found = SYNTAX_STEPS.find(([pattern]) => pattern.test(message));
  return found?.[1] ?? "look at the indentation, the quotes and the brackets of this line and of the one before it";
}

const SYNTAX_STEPS: readonly (readonly [RegExp, string])[] = [
  [/unique/i, "remove one of the two keys"],
  [/quote/i, "close the quote that is open"],
  [/flow|\]|\}/i, "close the bracket that is open, or indent what stands inside of it"],
  [/compact mapping|nested mapping/i, "put a value that holds a colon in quotes, or begin a new line for the field"],
  [/same column|indent/i, "begin the line in the same column as its siblings"],
  [/alias|anchor/i, "define the anchor in the same document, above its use"],
  [/merge/i, "write the fields out"],
  [/not an object/i, "begin each document with apiVersion and kind"],
  [/nested too deeply|more than/i, "split the document"],
  [/implicit|colon|map key/i, "write a colon and a space behind the name of the field"],
];

/** Suggests a correction for an object whose apiVersion, kind or metadata is wrong. */
export function envelopeStep({ path, message }: ObjectError, value: Readonly<Record<string, unknown>>): string {
  const [, ...more] = message.split("; ");
  if (more.length > 0) return more.join("; ");
  const steps = splitPath(path);
  const name = steps.at(-1) ?? "";
  if (message !== "Required value") return path.startsWith("metadata.") ? nameStep(steps, value) : `correct ${name}`;
  const holder = steps.length > 1 ? value[steps[0] ?? ""] : value;
  const written = typeof holder === "object" && holder !== null ? Object.keys(holder) : [];
  const near = closest(
    name,
    written.filter((key) => key !== name),
  );
  if (near !== undefined) return `write ${name} instead of ${near}`;
  if (path === "kind") return "add kind, such as HTTPRoute or GwPolicy";
  return path === "apiVersion"
    ? "add apiVersion, such as gwproxy.dev/v1alpha1"
    : `add ${path}, and indent it below metadata`;
}

function nameStep(steps: readonly string[], value: Readonly<Record<string, unknown>>): string {
  const written = steps.reduce<unknown>((at, step) => memberOf(at, step), value);
  if (typeof written !== "string") return `put the name in quotes, if it is one`;
  const meant = written
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, "-")
    .replaceAll(/^[-.]+|[-.]+$/g, "");
  return meant === "" ? "choose another name" : `did you mean \`${meant.slice(0, 63)}\`?`;
}
