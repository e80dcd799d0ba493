/** Masks secrets in what a support bundle holds. `gwproxy collect` passes everything through it. */
import { isRecord } from "../../lib/is-record.ts";

const MASK = "<redacted>";

/** Names of members whose text is a secret wherever they stand. */
const SECRET_NAME =
  /^(data|stringData|key|keys|token|password|passwd|secret|clientSecret|privateKey|authorization|cookie|apiKey|value)$/i;
/** Text that is a secret by its form: PEM keys, bearer tokens, keys of known vendors, passwords in URLs. */
const SECRET_TEXT: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi,
  /\b(sk|pk|ghp|gho|xox[abp]|AKIA|ASIA)[-_]?[\w-]{12,}/g,
  /\beyJ[\w-]+\.[\w-]+\.[\w-]*/g,
  /\$2[aby]\$\d\d\$[./\w]{20,}/g,
  /(?<=:\/\/[^/\s:@]*:)[^/\s@]+(?=@)/g,
];

/** Returns an object without secrets: all data of Secrets, what stands in fields of credentials, and secrets in text. */
export function maskObject(object: unknown): unknown {
  if (isRecord(object) && object["kind"] === "Secret") return maskSecret(object);
  return maskMembers(object, false);
}

export function maskText(text: string): string {
  return SECRET_TEXT.reduce((masked, pattern) => masked.replaceAll(pattern, MASK), text);
}

function maskSecret(secret: Readonly<Record<string, unknown>>): unknown {
  const { data, stringData, ...rest } = secret;
  const namesOf = (entries: unknown): Record<string, string> =>
    Object.fromEntries(Object.keys(isRecord(entries) ? entries : {}).map((name) => [name, MASK]));
  const masked = isRecord(rest) ? maskMembers(rest, false) : {};
  return { ...(isRecord(masked) ? masked : {}), data: { ...namesOf(data), ...namesOf(stringData) } };
}

/** @param isSecret true below a member whose name says that it holds credentials */
function maskMembers(value: unknown, isSecret: boolean): unknown {
  if (typeof value === "string") return isSecret ? MASK : maskText(value);
  if (Array.isArray(value)) return value.map((item) => maskMembers(item, isSecret));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      // The last applied configuration repeats the whole object as one text.
      .filter(([name]) => name !== "kubectl.kubernetes.io/last-applied-configuration" && name !== "managedFields")
      .map(([name, member]) => [name, maskMembers(member, typeof member === "string" && isSecretName(name, value))]),
  );
}

/** `value` and `key` are credentials except where they belong to a match, a selector or a reference. */
function isSecretName(name: string, { type, operator, name: sibling }: Readonly<Record<string, unknown>>): boolean {
  if (!SECRET_NAME.test(name)) return false;
  if (/^(value|key)$/i.test(name)) return type === undefined && operator === undefined && sibling === undefined;
  return true;
}
