/**
 * Parses the system's files about names: /etc/hosts, and search list and `ndots` of /etc/resolv.conf (hosts(5),
 * resolv.conf(5)). lookup.ts uses it in place of node's `dns.lookup`, which reports no times to live and runs on few
 * threads, all of which a slow DNS server can block.
 */
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";

export interface NameFiles {
  /** Addresses by lower-case name. */
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  readonly search: readonly string[];
  /** `ndots`: a name with fewer dots is tried with the search list first. */
  readonly dots: number;
}

const MAX_DOTS = 15;

/** A file that cannot be read counts as empty. */
export async function readNameFiles(hostsPath = "/etc/hosts", resolvPath = "/etc/resolv.conf"): Promise<NameFiles> {
  const [hosts, resolv] = await Promise.all([readText(hostsPath), readText(resolvPath)]);
  return { hosts: parseHosts(hosts), ...parseSearch(resolv) };
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return "";
  }
}

export function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>();
  for (const [address, ...names] of linesOf(text)) {
    if (address === undefined || isIP(address) === 0) continue;
    for (const name of names) {
      const known = hosts.get(name.toLowerCase()) ?? [];
      if (!known.includes(address)) hosts.set(name.toLowerCase(), [...known, address]);
    }
  }
  return hosts;
}

/** If several lines have one keyword, the last one counts. */
export function parseSearch(text: string): Pick<NameFiles, "search" | "dots"> {
  let search: string[] = [];
  let dots = 1;
  for (const [keyword, ...values] of linesOf(text)) {
    if (keyword === "search" || keyword === "domain") search = values.map((domain) => domain.replace(/\.$/, ""));
    if (keyword !== "options") continue;
    const named = values.find((value) => /^ndots:\d+$/.test(value));
    if (named !== undefined) dots = Math.min(Number(named.slice("ndots:".length)), MAX_DOTS);
  }
  return { search: search.filter((domain) => domain !== ""), dots };
}

/** Returns the full names that a name may stand for, in the order in which to ask for them. */
export function candidatesOf(name: string, { search, dots }: Pick<NameFiles, "search" | "dots">): string[] {
  if (name.endsWith(".")) return [name.slice(0, -1)];
  const found = search.map((domain) => `${name}.${domain}`);
  return name.split(".").length - 1 >= dots ? [name, ...found] : [...found, name];
}

function linesOf(text: string): string[][] {
  return text
    .split("\n")
    .map((line) => line.replace(/[#;].*/, "").trim())
    .filter((line) => line !== "")
    .map((line) => line.split(/\s+/));
}
