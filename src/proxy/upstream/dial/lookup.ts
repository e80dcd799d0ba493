/**
 * One look-up of a host name: the system's files first, then the DNS servers, both address families at once. It returns
 * addresses that alternate between IPv6 and IPv4, and how long they are valid. Caching and retries are dns.ts.
 */
import dns, { NODATA, NOTFOUND, Resolver as Client } from "node:dns";
import { isIPv6 } from "node:net";
import { candidatesOf, readNameFiles, type NameFiles } from "./name-files.ts";

export interface FoundAddresses {
  /** Empty when the name does not exist or has no address. */
  readonly addresses: readonly string[];
  readonly ttlMs: number;
}

export interface Lookup {
  /** Rejects when no server has answered. @param host as configured */
  (host: string): Promise<FoundAddresses>;
}

interface AddressRecord {
  readonly address: string;
  readonly ttl: number;
}

/** Such names always mean the local machine (RFC 6761 §6.3). */
const LOCAL = /(?:^|\.)localhost\.?$/;
const LOOPBACK = ["::1", "127.0.0.1"];
/** Files carry no time to live. */
const FILE_TTL_MS = 5_000;
const NEGATIVE_TTL_MS = 1_000;
/** c-ares waits this long for an answer, and twice as long at each repetition. */
const TIMEOUT_MS = 1_000;
const TRIES = 3;

export function createLookup(files: () => Promise<NameFiles> = readNameFiles): Lookup {
  const client = new Client({ timeout: TIMEOUT_MS, tries: TRIES });
  // `dns.getServers` is called as a member: a named import would keep the servers of the start of the process.
  client.setServers(dns.getServers());
  /**
   * The full name that last resolved a short one; it is asked first, so that a search list costs its queries only once.
   */
  const stoodFor = new Map<string, string>();
  return async (host) => {
    const name = host.toLowerCase();
    const known = await files();
    const listed = known.hosts.get(name.replace(/\.$/, "")) ?? (LOCAL.test(name) ? LOOPBACK : undefined);
    if (listed !== undefined) return { addresses: interleaved(listed), ttlMs: FILE_TTL_MS };
    const candidates = candidatesOf(name, known);
    const last = stoodFor.get(name);
    if (last !== undefined && candidates.includes(last)) candidates.unshift(last);
    let failure: unknown;
    for (const candidate of new Set(candidates)) {
      const outcome = await ask(client, candidate);
      if ("error" in outcome) failure = outcome.error;
      else if (outcome.addresses.length > 0) {
        if (candidate === name) stoodFor.delete(name);
        else stoodFor.set(name, candidate);
        return outcome;
      }
    }
    stoodFor.delete(name);
    if (failure !== undefined) throw failure;
    return { addresses: [], ttlMs: NEGATIVE_TTL_MS };
  };
}

/** Asks for both families at once; the failure of one does not matter when the other one has addresses. */
async function ask(client: Client, name: string): Promise<FoundAddresses | { readonly error: unknown }> {
  const [six, four] = await Promise.all([query(client, "resolve6", name), query(client, "resolve4", name)]);
  const records = [...(six.records ?? []), ...(four.records ?? [])];
  if (records.length === 0) {
    const error = four.error ?? six.error;
    return error === undefined ? { addresses: [], ttlMs: NEGATIVE_TTL_MS } : { error };
  }
  const addresses = interleaved(records.map(({ address }) => address));
  return { addresses, ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1_000 };
}

interface Answered {
  readonly records?: readonly AddressRecord[];
  readonly error?: unknown;
}

function query(client: Client, method: "resolve4" | "resolve6", name: string): Promise<Answered> {
  return new Promise((resolve) => {
    client[method](name, { ttl: true }, (error, records) => {
      if (error === null) resolve({ records });
      else resolve(error.code === NOTFOUND || error.code === NODATA ? {} : { error });
    });
  });
}

/**
 * Alternates the families, IPv6 first: when one family does not work, the next attempt uses the other (RFC 8305 §4).
 */
export function interleaved(addresses: readonly string[]): string[] {
  const six = addresses.filter((address) => isIPv6(address));
  const four = addresses.filter((address) => !isIPv6(address));
  const longer = Math.max(six.length, four.length);
  return Array.from({ length: longer }, (_none, at) => [six[at], four[at]].filter((one) => one !== undefined)).flat();
}
