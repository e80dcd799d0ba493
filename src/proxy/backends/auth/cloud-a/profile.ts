/**
 * Reads a profile of the shared files of AWS tools, `~/.aws/credentials` and `~/.aws/config`. They are read anew for
 * each look-up, because tools rewrite them. `credential_process` starts no program here.
 */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../shared/ambient-hosts.ts";

export type Profile = Readonly<Record<string, string>>;

/** @returns undefined when no file has the profile */
export async function readProfile(environment: Environment): Promise<Profile | undefined> {
  const name = environment["AWS_PROFILE"] ?? "default";
  const folder = join(environment["HOME"] ?? homedir(), ".aws");
  const credentials = await readText(environment["AWS_SHARED_CREDENTIALS_FILE"] ?? join(folder, "credentials"));
  const config = await readText(environment["AWS_CONFIG_FILE"] ?? join(folder, "config"));
  const ofConfig = parseSections(config).get(name === "default" ? name : `profile ${name}`);
  const ofCredentials = parseSections(credentials).get(name);
  return ofConfig === undefined && ofCredentials === undefined ? undefined : { ...ofConfig, ...ofCredentials };
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return ""; // without the file, another source supplies the identity
  }
}

function parseSections(text: string): ReadonlyMap<string, Profile> {
  const sections = new Map<string, Record<string, string>>();
  let section: Record<string, string> | undefined;
  for (const line of text.split(/\r?\n/)) {
    const name = /^\s*\[\s*([^\]]+?)\s*\]/.exec(line)?.[1];
    if (name !== undefined) sections.set(name, (section = sections.get(name) ?? {}));
    const [, key, value] = /^([A-Za-z0-9_]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (section !== undefined && key !== undefined && value !== undefined) section[key.toLowerCase()] = value;
  }
  return sections;
}
