/**
 * Finds conflicts of credential locations; semantics.ts uses it. When two kinds of authentication read one place, the
 * first one removes its credential or refuses that of the other, so no request can pass both. When two credentials are
 * written to one place, the later one replaces the earlier one.
 */
import { REFS } from "../../../generated/refs.ts";
import { violation } from "../messages.ts";
import { memberOf, valuesAt } from "../paths.ts";
import type { Violation } from "../violation.ts";

/** A place in a request in comparable form: header names in lower case, other names as written. */
interface CredentialLocation {
  readonly kind: "header" | "queryParameter" | "cookie" | "expression";
  readonly name: string;
  /** In lower case; "" for other kinds than a header. */
  readonly prefix: string;
}

const TRAFFIC = ["spec", "traffic"];

/** The kinds of authentication in order of execution, each with the scheme that it reads by default. */
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

/**
 * Returns the paths of all `auth` blocks: the schema has a list of credentials wherever `credentials[].secretRef`
 * exists.
 */
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
    const conflict = earlier.find((other) => isSameCredential(other.location, location));
    if (conflict !== undefined) {
      const at = memberOf(block, "location") === undefined ? `${path}.${field}` : `${path}.${field}.location`;
      const message = `Duplicate value: ${describe(location)}: ${conflict.field} reads its credential there, so that no request passes both`;
      yield violation(at, "FieldValueDuplicate", message, `in ${field}.location ${NEXT}`);
    }
    // A permissive kind passes credentials that it does not know on to the next one.
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
