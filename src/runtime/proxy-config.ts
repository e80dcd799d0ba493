/**
 * Checks the settings file of a data plane (`gwproxy proxy -f`). It has one mapping, `config`. Unknown members are
 * refused by name, because a setting without effect is worse than a start that fails.
 */
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { FatalError, messageOf } from "../lib/errors.ts";

/**
 * Known members of `config`. There are none yet: a data plane receives its configuration over xDS and from environment
 * variables.
 */
const KNOWN: readonly string[] = [];

/** @throws FatalError when the file cannot be read or contains an unknown member */
export async function checkConfigFile(path: string): Promise<void> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new FatalError(`cannot read ${path}: ${messageOf(cause)}`, 1, cause);
  }
  const error = findConfigError(text);
  if (error !== undefined) throw new FatalError(`${path}: ${error}`);
}

function findConfigError(text: string): string | undefined {
  let document: unknown;
  try {
    document = parse(text);
  } catch (error) {
    return messageOf(error);
  }
  if (!isMapping(document)) return 'a mapping with the member "config" is needed';
  const stranger = Object.keys(document).find((name) => name !== "config");
  if (stranger !== undefined) return `${stranger} is not known; the only member is "config"`;
  const { config = {} } = document;
  if (!isMapping(config)) return "config must be a mapping";
  const unknown = Object.keys(config).find((name) => !KNOWN.includes(name));
  return unknown === undefined ? undefined : `config.${unknown} is not known to this version of gwproxy`;
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
