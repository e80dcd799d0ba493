/**
 * Finds the Copilot token of the user that this process runs as, where editors and the `gh` command leave it. It is read
 * for each request, because these programs replace it while we run.
 */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { objectOf, parseObject, stringOf } from "../../shared/json.ts";

const HOST = "github.com";

/** @returns undefined when there is none */
export function findToken(environment: NodeJS.ProcessEnv): string | undefined {
  const named = environment["GH_COPILOT_TOKEN"] || environment["COPILOT_GITHUB_TOKEN"];
  if (named) return named;
  const folder = environment["XDG_CONFIG_HOME"] || join(homedir(), ".config");
  return (
    tokenOfEditor(join(folder, "github-copilot", "hosts.json")) ??
    tokenOfEditor(join(folder, "github-copilot", "apps.json")) ??
    tokenOfCommand(join(folder, "gh", "hosts.yml"))
  );
}

/** Editors write an object by host, or by host and application (`github.com:Iv1.b507a08c87ecfe98`). */
function tokenOfEditor(file: string): string | undefined {
  for (const [host, entry] of Object.entries(parseObject(readIfPresent(file)) ?? {}))
    if (host === HOST || host.startsWith(`${HOST}:`)) {
      const token = stringOf(objectOf(entry)?.["oauth_token"]);
      if (token) return token;
    }
  return undefined;
}

/** Matches the entry of the host in the file of `gh`: the first token below the line of the host. */
const ENTRY = new RegExp(`^${HOST.replace(".", "\\.")}:\\s*\\n(?:[ \\t]+.*\\n)*?[ \\t]+oauth_token:[ \\t]*(\\S+)`, "m");

function tokenOfCommand(file: string): string | undefined {
  return ENTRY.exec(`${readIfPresent(file).toString("utf8")}\n`)?.[1];
}

function readIfPresent(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    // A file that does not exist or must not be read holds no token for us.
    return Buffer.alloc(0);
  }
}
