/**
 * Defines the settings file of a data plane, `config.yaml`: one mapping `config`, whose members set what flags and
 * variables set too. `gwproxy proxy -f` reads it, the deployer writes it, and the controller checks `rawConfig` of
 * GwParameters with it before a pod has to start with it. Members that are not known are errors, because a setting
 * without effect is worse than one that is refused.
 */
import { isRecord } from "../lib/is-record.ts";
import { isAddressRange, parseHostPort, type HostPort } from "../lib/network/written-address.ts";
import { workloadAddress } from "../lib/network/workload-endpoint.ts";
import { MAX_THREADS } from "../lib/shared-table.ts";

/** The settings by the names that the options of `gwproxy proxy` have. */
export interface DataPlaneSettings {
  readonly logFormat: "text" | "json";
  readonly spiffeEndpointSocket: string;
  readonly trustedProxies: readonly string[];
  readonly workers: number;
  /** Time in seconds. */
  readonly threadTimeout: number;
  readonly adminAddress: HostPort;
  readonly metricsAddress: HostPort;
  readonly readinessAddress: HostPort;
  /** Time in seconds until new connections are refused after the word to stop. */
  readonly drainMin: number;
  /** Time in seconds until the process is killed. */
  readonly gracePeriod: number;
}

interface SettingType<Value> {
  /** Path below `config`. */
  readonly path: string;
  /** What a value must be, as the end of a sentence. */
  readonly expected: string;
  /** @returns undefined for a value that cannot be used */
  parse(value: unknown): Value | undefined;
}

const ADDRESS = { expected: 'an address such as "127.0.0.1:15000"', parse: parseAddress } as const;
const SECONDS = { expected: "a number of seconds from 0 to 31536000", parse: parseSeconds } as const;
const MAX_WORKERS = MAX_THREADS - 1;

const SETTINGS: { readonly [S in keyof DataPlaneSettings]: SettingType<DataPlaneSettings[S]> } = {
  logFormat: {
    path: "logging.format",
    expected: '"text" or "json"',
    parse: (value) => (value === "text" || value === "json" ? value : undefined),
  },
  spiffeEndpointSocket: {
    path: "spiffe.endpoint",
    expected: 'an address such as "unix:///spiffe-workload-api/spire-agent.sock"',
    parse: parseEndpoint,
  },
  trustedProxies: {
    path: "trustedProxies",
    expected: "a list of at most 1,000 addresses and ranges such as 10.0.0.0/8",
    parse: parseRanges,
  },
  workers: {
    path: "workers",
    expected: `a whole number from 1 to ${MAX_WORKERS}`,
    parse: (value) => (isWithin(value, 1, MAX_WORKERS) && Number.isInteger(value) ? value : undefined),
  },
  threadTimeout: { path: "threadTimeout", ...SECONDS },
  adminAddress: { path: "adminAddress", ...ADDRESS },
  metricsAddress: { path: "metricsAddress", ...ADDRESS },
  readinessAddress: { path: "readinessAddress", ...ADDRESS },
  drainMin: { path: "drain.min", ...SECONDS },
  gracePeriod: { path: "drain.max", ...SECONDS },
};

interface SettingError {
  /** Path in the file, such as "config.workers". */
  readonly path: string;
  readonly message: string;
}

interface ReadSettings {
  readonly settings: Partial<DataPlaneSettings>;
  readonly errors: readonly SettingError[];
}

/** Reads a settings file. @param document its parsed text; `rawConfig` of GwParameters has the same form */
export function readSettings(document: unknown): ReadSettings {
  const errors: SettingError[] = [];
  const settings = new Map<string, unknown>();
  for (const [path, value] of leaves(document, "", errors)) {
    const [name, type] = Object.entries(SETTINGS).find((entry) => `config.${entry[1].path}` === path) ?? [];
    const parsed = type?.parse(value);
    if (name !== undefined && parsed !== undefined) settings.set(name, parsed);
    else if (type !== undefined) errors.push({ path, message: `must be ${type.expected}` });
  }
  // Every value was parsed as the setting of its name.
  const read = Object.fromEntries(settings) as Partial<DataPlaneSettings>;
  if (read.drainMin !== undefined && read.gracePeriod !== undefined && read.drainMin > read.gracePeriod)
    errors.push({ path: "config.drain.min", message: "must not be greater than drain.max" });
  return { settings: read, errors };
}

/** More errors than these would only fill a status. */
const MAX_ERRORS = 20;

/** Returns the values of known settings with their paths, and reports members that are none. */
function leaves(map: unknown, prefix: string, errors: SettingError[]): (readonly [string, unknown])[] {
  if (map === null || map === undefined) return [];
  if (!isRecord(map)) {
    errors.push({ path: prefix, message: "must be a mapping" });
    return [];
  }
  const paths = Object.values(SETTINGS).map(({ path }) => `config.${path}`);
  return Object.entries(map).flatMap(([name, value]) => {
    if (errors.length >= MAX_ERRORS) return [];
    const path = prefix === "" ? name : `${prefix}.${name}`;
    if (paths.includes(path)) return value === null ? [] : [[path, value] as const];
    if (paths.some((each) => each.startsWith(`${path}.`))) return leaves(value, path, errors);
    const known = prefix === "" ? '"config"' : paths.map((each) => each.slice("config.".length)).join(", ");
    errors.push({
      path,
      message: `is not a setting of data planes; known below ${prefix === "" ? "the top" : "config"}: ${known}`,
    });
    return [];
  });
}

function parseAddress(value: unknown): HostPort | undefined {
  return typeof value === "string" ? parseHostPort(value) : undefined;
}

function parseSeconds(value: unknown): number | undefined {
  return isWithin(value, 0, 31_536_000) ? value : undefined;
}

function isWithin(value: unknown, min: number, max: number): value is number {
  return typeof value === "number" && value >= min && value <= max;
}

function parseRanges(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value) || value.length > 1_000) return undefined;
  const ranges = value.filter((each) => typeof each === "string");
  return ranges.length === value.length && ranges.every(isAddressRange) ? ranges : undefined;
}

function parseEndpoint(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  try {
    workloadAddress(value);
    return value;
  } catch {
    // The caller says what is expected.
    return undefined;
  }
}
