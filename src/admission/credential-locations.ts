/**
 * Credential locations that get in each other's way. Of two kinds of authentication that read one place the first takes
 * its credential out or refuses that of the other, so that no request passes both; of two credentials that are written to
 * one place the later one replaces the earlier one. Neither can be meant.
 */
import { REFS } from "../../generated/refs.ts";
import { violation } from "./messages.ts";
import { memberOf, valuesAt } from "./paths.ts";
import type { Violation } from "./violation.ts";

/** A place in a request, comparable: header names without case, the rest as it is written. */
interface CredentialLocation {
  readonly kind: "header" | "queryParameter" | "cookie" | "expression";
  readonly name: string;
  /** In small letters; only of a header. */
  readonly prefix: string;
}

const TRAFFIC = ["spec", "traffic"];

/** In the order of execution, with the scheme that each reads where it names no location. */
const AUTHENTICATION = [
  ["jwtAuthentication", "bearer "],
  ["basicAuthentication", "basic "],
  ["apiKeyAuthentication", "bearer "],
] as const;

/** Kinds of `auth` that write the header Authorization, or their own `location`. */
const TOKENS = ["cloudA", "cloudB", "cloudC", "oauthTokenExchange", "crossAppAccess", "jwtSign"];

const NEXT = "name another header, query parameter or cookie";

export function* credentialLocationViolations(groupKind: string, object: unknown): Generator<Violation> {
  for (const { path, value } of valuesAt(object, TRAFFIC)) yield* readTwice(path, value);
  for (const block of authBlocks(groupKind))
    for (const { path, value } of valuesAt(object, block)) yield* writtenTwice(path, value);
}

/** The schema knows them: where `credentials[].secretRef` refers to a Secret there is a list of credentials. */
function authBlocks(groupKind: string): readonly (readonly string[])[] {
  return (REFS[groupKind] ?? [])
    .map(({ path }) => path)
    .filter((path) => path.slice(-3).join(".") === "credentials.*.secretRef")
    .map((path) => path.slice(0, -3));
}

function* readTwice(path: string, traffic: unknown): Generator<Violation> {
  const earlier: { readonly field: string; readonly location: CredentialLocation }[] = [];
  for (const [field, scheme] of AUTHENTICATION) {
    const block = memberOf(traffic, field);
    if (block === undefined) continue;
    const location = locationOf(memberOf(block, "location")) ?? { ...AUTHORIZATION, prefix: scheme };
    const rival = earlier.find((other) => isSameCredential(other.location, location));
    if (rival !== undefined) {
      const at = memberOf(block, "location") === undefined ? `${path}.${field}` : `${path}.${field}.location`;
      const message = `Duplicate value: ${describe(location)}: ${rival.field} reads its credential there, so that no request passes both`;
      yield violation(at, "FieldValueDuplicate", message, `in ${field}.location ${NEXT}`);
    }
    // What a permissive kind does not know it leaves to the next one.
    if (memberOf(block, "mode") !== "Permissive") earlier.push({ field, location });
  }
}

function* writtenTwice(path: string, auth: unknown): Generator<Violation> {
  const credentials = memberOf(auth, "credentials");
  if (!Array.isArray(credentials)) return;
  const written = new Map<string, string>();
  const primary = primaryLocation(auth);
  if (primary !== undefined) written.set(keyOf(primary), "the credential above");
  for (const [at, credential] of credentials.entries()) {
    const location = locationOf(memberOf(credential, "location"));
    if (location === undefined) continue;
    const before = written.get(keyOf(location));
    if (before !== undefined) {
      const message = `Duplicate value: ${describe({ ...location, prefix: "" })}: ${before} is written there, and would be replaced`;
      yield violation(`${path}.credentials[${at}].location`, "FieldValueDuplicate", message, NEXT);
    }
    written.set(keyOf(location), `credentials[${at}]`);
  }
}

const AUTHORIZATION: CredentialLocation = { kind: "header", name: "authorization", prefix: "" };

/** Where the one credential of `auth` is written; undefined when there is none. */
function primaryLocation(auth: unknown): CredentialLocation | undefined {
  const hasOwn = ["secretRef", "passthrough"].some((field) => memberOf(auth, field) !== undefined);
  const key = memberOf(auth, "key");
  if (hasOwn || (key !== undefined && key !== "")) return locationOf(memberOf(auth, "location")) ?? AUTHORIZATION;
  const token = TOKENS.map((field) => memberOf(auth, field)).find((block) => block !== undefined);
  return token === undefined ? undefined : (locationOf(memberOf(token, "location")) ?? AUTHORIZATION);
}

/** @returns undefined when none is set; that exactly one is set is a rule of its own */
function locationOf(location: unknown): CredentialLocation | undefined {
  const expression = memberOf(location, "expression");
  if (typeof expression === "string") return { kind: "expression", name: expression.trim(), prefix: "" };
  for (const kind of ["header", "queryParameter", "cookie"] as const) {
    const name = memberOf(memberOf(location, kind), "name");
    if (typeof name !== "string") continue;
    if (kind !== "header") return { kind, name, prefix: "" };
    const prefix = memberOf(memberOf(location, kind), "prefix");
    return { kind, name: name.toLowerCase(), prefix: typeof prefix === "string" ? prefix.toLowerCase() : "" };
  }
  return undefined;
}

function keyOf({ kind, name }: CredentialLocation): string {
  return `${kind} ${name}`;
}

/** Two prefixes of one header name different credentials, unless one of them begins with the other. */
function isSameCredential(a: CredentialLocation, b: CredentialLocation): boolean {
  return keyOf(a) === keyOf(b) && (a.prefix.startsWith(b.prefix) || b.prefix.startsWith(a.prefix));
}

function describe({ kind, name, prefix }: CredentialLocation): string {
  if (kind === "expression") return "the same expression";
  const words = { header: "header", queryParameter: "query parameter", cookie: "cookie" };
  return `${words[kind]} "${name}"${prefix.trim() === "" ? "" : ` with the prefix "${prefix.trim()}"`}`;
}
