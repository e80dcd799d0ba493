/**
 * Masks secrets in what a support bundle holds. `gwproxy collect` passes everything through it.
 *
 * Where the schema of a kind says which fields are secrets, those are masked, whatever they hold. Secrets and ConfigMaps
 * keep the names of their entries alone: nothing says what an entry holds. Variables and arguments of containers, and
 * header fields, are masked by their shape in every kind. Members of kinds without a schema here are judged by their
 * names, and all text by its form.
 */
import { SECRETS } from "../../../generated/secrets.ts";
import { GATEWAY_GROUP } from "../../api/refs.ts";
import { isRecord } from "../../lib/is-record.ts";
import { maskArguments, maskCommand } from "./mask-command-line.ts";

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

/**
 * Returns an object without secrets.
 * @param groupKind "group/Kind"; by default that of the object, which members of a list do not name
 */
export function maskObject(object: unknown, groupKind: string = groupKindOf(object)): unknown {
  if (!isRecord(object)) return maskMembers(object, { isNamed: true });
  if (groupKind === "/Secret" || groupKind === "/ConfigMap") return maskEntries(object);
  const paths = SECRETS[groupKind];
  // A schema that names no secret has none; the one of GwParameters is open, because overlays hold objects of others.
  const isKnown = paths !== undefined || groupKind.startsWith(`${GATEWAY_GROUP}/`);
  return maskMembers(object, { paths: paths ?? [], isNamed: !isKnown });
}

function groupKindOf(object: unknown): string {
  const { apiVersion, kind } = isRecord(object) ? object : {};
  const group = typeof apiVersion === "string" && apiVersion.includes("/") ? apiVersion.split("/", 1)[0] : "";
  return `${group}/${String(kind)}`;
}

export function maskText(text: string): string {
  return SECRET_TEXT.reduce((masked, pattern) => masked.replaceAll(pattern, MASK), text);
}

/** Masks all entries of a Secret or ConfigMap. */
function maskEntries({ data, stringData, binaryData, ...rest }: Readonly<Record<string, unknown>>): unknown {
  const entries = [data, stringData, binaryData].flatMap((each) => Object.keys(isRecord(each) ? each : {}));
  const masked = maskMembers(rest, { isNamed: false });
  return { ...(isRecord(masked) ? masked : {}), data: Object.fromEntries(entries.map((name) => [name, MASK])) };
}

/** What is known of a value by its place. */
interface Place {
  /** Paths of secrets below the value; an empty one says that the value is one. */
  readonly paths?: readonly (readonly string[])[];
  /** Judges members by their names. */
  readonly isNamed: boolean;
  /** The value is a secret by the name of its member. */
  readonly isSecret?: boolean;
  /** Name of the member that holds the value, or the list with it. */
  readonly member?: string;
}

/** Copies of the object, which tools keep in annotations as text. */
const LEFT_OUT: ReadonlySet<string> = new Set(["kubectl.kubernetes.io/last-applied-configuration", "managedFields"]);

function maskMembers(value: unknown, place: Place): unknown {
  const { paths = [], isNamed, member = "", isSecret = false } = place;
  // Also where the value has another type than the schema says: the API server may hold objects of an older schema.
  if (paths.some((path) => path.length === 0)) return MASK;
  if (typeof value === "string") {
    if (isSecret) return MASK;
    return ARGUMENTS.has(member) ? maskCommand(maskText(value)) : maskText(value);
  }
  if (Array.isArray(value) && ARGUMENTS.has(member))
    return maskArguments(value, (item) => maskMembers(item, { paths: below(paths, "*"), isNamed, member }));
  if (Array.isArray(value))
    return value.map((item: unknown) => maskMembers(item, { paths: below(paths, "*"), isNamed, member }));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !LEFT_OUT.has(name))
      .map(([name, inner]): [string, unknown] => {
        if (isHidden(name, inner, value, member)) return [name, MASK];
        const isOwnSecret = isNamed && typeof inner === "string" && isSecretName(name, value);
        return [name, maskMembers(inner, { paths: below(paths, name), isNamed, isSecret: isOwnSecret, member: name })];
      }),
  );
}

/** Members that hold a command line: of a container, and of a program that an object starts. */
const ARGUMENTS: ReadonlySet<string> = new Set(["args", "command"]);

/** Returns whether a member is a secret by the shape of the object that it belongs to, in any kind. */
function isHidden(name: string, inner: unknown, object: Readonly<Record<string, unknown>>, member: string): boolean {
  if (name === "value") return isVariable(object, member) || isHeaderField(object, member);
  if (typeof inner !== "string") return false;
  // Tools keep copies of whole objects in annotations.
  if (member === "annotations") return /^\s*[{[]/.test(inner);
  // A map of header fields.
  return HEADERS.test(member) && object["name"] === undefined && object["type"] === undefined;
}

/** Returns what is left of the paths that lead through a member. */
function below(paths: readonly (readonly string[])[], name: string): readonly (readonly string[])[] {
  return paths.flatMap(([first, ...rest]) => (first === name || first === "*" ? [rest] : []));
}

/** The variable of a container; those with our prefix are settings of the controller, which holds no secret in them. */
function isVariable({ name }: Readonly<Record<string, unknown>>, member: string): boolean {
  return member === "env" && !(typeof name === "string" && name.startsWith("GWPROXY_"));
}

/** Members that hold header fields to be sent: of filters, of policies, and of exporters. */
const HEADERS = /headers$/i;

/** A header field that is set; in a match it has a type. */
function isHeaderField({ type }: Readonly<Record<string, unknown>>, member: string): boolean {
  return type === undefined && (member === "set" || member === "add" || HEADERS.test(member));
}

/** `value` and `key` are credentials except where they belong to a match, a selector or a reference. */
function isSecretName(name: string, { type, operator, name: sibling }: Readonly<Record<string, unknown>>): boolean {
  if (!SECRET_NAME.test(name)) return false;
  if (/^(value|key)$/i.test(name)) return type === undefined && operator === undefined && sibling === undefined;
  return true;
}
