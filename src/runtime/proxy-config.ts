/** Reads the settings file of a data plane (`gwproxy proxy -f`); its members are in `src/api/data-plane-settings.ts`. */
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { readSettings, type DataPlaneSettings } from "../api/data-plane-settings.ts";
import { FatalError, messageOf } from "../lib/errors.ts";
import { isRecord } from "../lib/is-record.ts";

/** @throws FatalError when the file cannot be read, or names what is wrong in it */
export async function readConfigFile(path: string): Promise<Partial<DataPlaneSettings>> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new FatalError(`cannot read ${path}: ${messageOf(cause)}`, 1, cause);
  }
  const { settings, errors } = readSettings(parseText(text, path));
  if (errors.length === 0) return settings;
  throw new FatalError(`${path}: ${errors.map((error) => `${error.path} ${error.message}`).join("; ")}`);
}

function parseText(text: string, path: string): unknown {
  let document: unknown;
  try {
    document = parse(text);
  } catch (cause) {
    throw new FatalError(`${path}: ${messageOf(cause)}`, 1, cause);
  }
  if (isRecord(document)) return document;
  throw new FatalError(`${path}: a mapping with the member "config" is needed`);
}
