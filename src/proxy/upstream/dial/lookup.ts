/**
 * One look-up of a name: the system's files, then the servers of names for both families. Out: addresses, IPv6 and IPv4 in
 * turn, and for how long they hold. Not here: what is remembered, and when it is asked again.
 */
import dns, { NODATA, NOTFOUND, Resolver as Client } from "node:dns";
import { isIPv6 } from "node:net";
import { candidatesOf, readNameFiles, type NameFiles } from "./name-files.ts";

export interface FoundAddresses {
  /** None: the name does not exist, or has no address. */
  readonly addresses: readonly string[];
  readonly ttlMs: number;
}

export interface Lookup {
  /** Rejects when nobody could say. @param host as it was configured */
  (host: string): Promise<FoundAddresses>;
}

interface AddressRecord {
  readonly address: string;
  readonly ttl: number;
}

/** Such a name means this machine, whatever any server says (RFC 6761 6.3). */
const LOCAL = /(?:^|\.)localhost\.?$/;
const LOOPBACK = ["::1", "127.0.0.1"];
/** Files say nothing about how long they hold. */
const FILE_TTL_MS = 5_000;
const NEGATIVE_TTL_MS = 1_000;
/** c-ares waits that long for an answer, and twice as long each time that it asks again. */
const TIMEOUT_MS = 1_000;
const TRIES = 3;

export function createLookup(files: () => Promise<NameFiles> = readNameFiles): Lookup {
  const client = new Client({ timeout: TIMEOUT_MS, tries: TRIES });
  // Not imported by its name, which would go on naming the servers that were there at the start.
  client.setServers(dns.getServers());
  /** Which of its full names a name stood for last: asked first, so that a search list costs its queries once. */
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

/** Both families at once; one that fails does not matter where the other has addresses. */
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

/** The families in turn, IPv6 first: when one does not work, the next try is of the other (RFC 8305 4). */
export function interleaved(addresses: readonly string[]): string[] {
  const six = addresses.filter((address) => isIPv6(address));
  const four = addresses.filter((address) => !isIPv6(address));
  const longer = Math.max(six.length, four.length);
  return Array.from({ length: longer }, (_none, at) => [six[at], four[at]].filter((one) => one !== undefined)).flat();
}
