/**
 * Reads a completion script for fish as fish does, as far as such scripts go: lines of `complete` with words and single
 * quotes, whose conditions ask which subcommands have been seen. Everything else is refused, so that a script with a
 * quote too many fails also where fish is not installed.
 */

/** A `complete` of the script. */
interface Completion {
  readonly condition: string;
  /** Values of -a, and of the options -l and -s without their dashes. */
  readonly words: readonly string[];
  readonly long: string | undefined;
  readonly short: string | undefined;
  /** -r: the option takes a value. */
  readonly takesValue: boolean;
  /** -F: file names are completed. */
  readonly takesFiles: boolean;
}

/** Flags of `complete` with a value, and without. */
const VALUED: ReadonlySet<string> = new Set(["-c", "-n", "-a", "-d", "-l", "-s"]);
const PLAIN: ReadonlySet<string> = new Set(["-f", "-r", "-F"]);

/** @throws Error for what fish would not take, or what such a script does not need */
export function readFishScript(script: string): Completion[] {
  if (!script.endsWith("\n")) throw new Error("the last line has no end");
  return script
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(readLine);
}

function readLine(line: string): Completion {
  const [command, ...words] = splitWords(line);
  if (command !== "complete") throw new Error(`not a completion: ${line}`);
  const values = new Map<string, string>();
  for (let at = 0; at < words.length; at++) {
    const flag = words[at] ?? "";
    if (values.has(flag) || (!VALUED.has(flag) && !PLAIN.has(flag))) throw new Error(`${flag} in: ${line}`);
    const value = VALUED.has(flag) ? words[++at] : "";
    if (value === undefined) throw new Error(`no value of ${flag} in: ${line}`);
    values.set(flag, value);
  }
  if (values.get("-c") !== "gwproxy") throw new Error(`another program: ${line}`);
  return {
    condition: values.get("-n") ?? "",
    words: (values.get("-a") ?? "").split(" ").filter((word) => word !== ""),
    long: values.get("-l"),
    short: values.get("-s"),
    takesValue: values.has("-r"),
    takesFiles: values.has("-F"),
  };
}

/** In single quotes fish knows two escapes, of the quote and of the backslash; other words here have plain characters. */
function splitWords(line: string): string[] {
  const word = /'((?:[^'\\]|\\[\\'])*)'(?= |$)|([\w./:-]+)(?= |$)/y;
  const words: string[] = [];
  for (let at = 0; at <= line.length; at = word.lastIndex + 1) {
    word.lastIndex = at;
    const found = word.exec(line);
    if (found === null) throw new Error(`cannot be read from column ${at}: ${line}`);
    words.push(found[2] ?? (found[1] ?? "").replace(/\\([\\'])/g, "$1"));
  }
  return words;
}

/**
 * Returns what fish offers for the last word of a command line.
 * @param files names that stand in the current folder
 */
export function offersOfFish(script: string, words: readonly string[], files: readonly string[]): string[] {
  const last = words.at(-1) ?? "";
  const before = words.slice(1, -1);
  const active = readFishScript(script).filter(({ condition }) => holds(condition, before));
  const option = active.find(
    ({ long, short, takesValue }) =>
      takesValue && (words.at(-2) === `--${long}` || (short !== undefined && words.at(-2) === `-${short}`)),
  );
  const candidates =
    option === undefined
      ? active.flatMap((each) => [
          ...(each.long === undefined && each.short === undefined ? valuesOf(each, files) : []),
          ...(each.long === undefined || !last.startsWith("-") ? [] : [`--${each.long}`]),
          ...(each.short === undefined || !last.startsWith("-") ? [] : [`-${each.short}`]),
        ])
      : valuesOf(option, files);
  return candidates.filter((candidate) => candidate.startsWith(last));
}

function valuesOf({ words, takesFiles }: Completion, files: readonly string[]): readonly string[] {
  return takesFiles ? [...words, ...files] : words;
}

/** @throws Error for a condition that such a script does not need */
function holds(condition: string, seen: readonly string[]): boolean {
  if (condition === "") return true;
  if (condition === "__fish_use_subcommand") return seen.every((word) => word.startsWith("-"));
  return condition.split("; and ").every((part) => {
    const [, not, names = ""] = /^(not )?__fish_seen_subcommand_from ((?:[a-z]+ ?)+)$/.exec(part) ?? [];
    if (names === "") throw new Error(`cannot be read: ${condition}`);
    const found = names.split(" ").some((name) => seen.includes(name));
    return not === undefined ? found : !found;
  });
}
