/**
 * Masks secrets in command lines: the lists `args` and `command` of containers, and scripts inside of them, as in
 * `sh -c "run --token=…"`. mask.ts uses it. Where a value ends is decided so that rather too much is masked: quotes of a
 * script may stand inside those of another one.
 */
const MASK = "<redacted>";

/** Last words of names whose values are secrets. A name that ends in `-file` names a path. */
const WORDS = "(?:key|token|password|passwd|passphrase|pwd|secret|credential)s?";
/** A word of a shell, with its quotes, escapes and substitutions; one that is not closed reaches to the end. */
const VALUE = "(?:\"(?:\\\\[^]|[^\"\\\\])*\"?|'[^']*'?|`[^`]*`?|\\$\\([^)]*\\)?|\\\\[^]|[^\\s;&|\"'`\\\\])+";
/**
 * Each pattern begins where a name can begin and ends with the value, so that it takes time in proportion to the text,
 * whatever the text is.
 */
const ASSIGNED: readonly RegExp[] = [
  // A header field or a member of an object: "X-Api-Key: a b", {"token": "a b"}.
  new RegExp(`(?<![\\w.-])([\\w.-]*${WORDS}["']?:\\s+)(?:"(?:\\\\[^]|[^"\\\\])*"?|'[^']*'?|[^\\r\\n"']+)`, "gi"),
  // --token=a, TOKEN=a, ?token=a&b, token:a
  new RegExp(`(?<![\\w.-])([\\w.-]*${WORDS}["']?[=:])${VALUE}`, "gi"),
  // --token a; not --token --next
  new RegExp(`(?<![\\w.-])(--?[\\w.-]*${WORDS}\\s+)(?!--)${VALUE}`, "gi"),
];

/** Masks what the names in a command line or script say is a secret. @param text masked by the form of secrets already */
export function maskCommand(text: string): string {
  return ASSIGNED.reduce((masked, pattern) => masked.replaceAll(pattern, `$1${MASK}`), text);
}

/** A flag that is named as a secret, with what follows `=`. */
const SECRET_FLAG = new RegExp(`^(--?[\\w.-]*${WORDS})(=[^]*)?$`, "i");

/**
 * Masks the values of flags that are named as secrets, both `--token=VALUE` and `--token VALUE`.
 * @param maskOther masks a member that is no value of such a flag
 */
export function maskArguments(values: readonly unknown[], maskOther: (value: unknown) => unknown): unknown[] {
  const flagOf = (value: unknown): RegExpExecArray | null =>
    typeof value === "string" ? SECRET_FLAG.exec(value) : null;
  return values.map((value, at) => {
    const [, flag = "", given] = flagOf(value) ?? [];
    if (given !== undefined) return `${flag}=${MASK}`;
    const [, before = "", ownValue] = flagOf(values[at - 1]) ?? [];
    const isFlag = typeof value === "string" && value.startsWith("--");
    return before !== "" && ownValue === undefined && !isFlag ? MASK : maskOther(value);
  });
}
