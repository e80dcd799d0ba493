/**
 * What a data plane learns from the variables of its pod (spec controller 7, proxying 14). An empty variable counts as
 * unset. What cannot be read stops the start: a proxy with half of its settings would drain or sign in its own way.
 */
import { FatalError } from "../../lib/errors.ts";
import { parseDuration } from "../../lib/duration.ts";
import { fromHex } from "../../lib/sha256.ts";

export interface PodEnvironment {
  /** Still accepting for this long after the word to stop. */
  readonly minDrainMs: number;
  /** After this long connections are closed; never shorter than the minimum. */
  readonly maxDrainMs: number;
  /** Whole cores that this process may use; undefined: all of the machine. */
  readonly cpuLimit: number | undefined;
  /** 32 bytes that all replicas of a Gateway share; a secret. */
  readonly sessionKey: Uint8Array | undefined;
}

type Variables = Readonly<Record<string, string | undefined>>;

const STANDARD_MAX_MS = 5_000;
const SESSION_KEY_BYTES = 32;
/** Of a longer grace period so much is left for closing what still stands; of a shorter one a second. */
const RESERVE_MS = 5_000;
const SHORT_GRACE_MS = 10_000;
const SHORT_RESERVE_MS = 1_000;

/** @throws FatalError that names the variable, never the value of a secret */
export function readPodEnvironment(variables: Variables): PodEnvironment {
  const minDrainMs = readSpan(variables, "CONNECTION_MIN_TERMINATION_DEADLINE") ?? 0;
  return {
    minDrainMs,
    maxDrainMs: Math.max(minDrainMs, maxDrain(variables)),
    cpuLimit: readCpuLimit(variables),
    sessionKey: readSessionKey(variables),
  };
}

function maxDrain(variables: Variables): number {
  const deadline = readSpan(variables, "CONNECTION_TERMINATION_DEADLINE");
  if (deadline !== undefined) return deadline;
  const grace = readSpan(variables, "TERMINATION_GRACE_PERIOD_SECONDS");
  if (grace === undefined) return STANDARD_MAX_MS;
  const reserve = grace <= SHORT_GRACE_MS ? SHORT_RESERVE_MS : RESERVE_MS;
  return Math.max(1_000, grace - reserve);
}

/** Seconds, or a duration with units. @returns milliseconds */
function readSpan(variables: Variables, name: string): number | undefined {
  const text = variables[name] ?? "";
  if (text === "") return undefined;
  const value = /^\d{1,10}$/.test(text) ? Number(text) * 1_000 : parseDuration(text);
  if (value === undefined) throw new FatalError(`${name}: "${text}" is neither seconds nor a duration such as 90s`);
  return value;
}

function readCpuLimit(variables: Variables): number | undefined {
  const text = variables["CPU_LIMIT"] ?? "";
  if (text === "") return undefined;
  const cores = /^\d{1,6}(\.\d+)?$/.test(text) ? Math.ceil(Number(text)) : 0;
  if (cores === 0) throw new FatalError(`CPU_LIMIT: "${text}" is not a number of cores`);
  return cores;
}

function readSessionKey(variables: Variables): Uint8Array | undefined {
  const text = variables["SESSION_KEY"] ?? "";
  if (text === "") return undefined;
  const key = fromHex(text);
  if (key?.length !== SESSION_KEY_BYTES) throw new FatalError("SESSION_KEY: 64 hexadecimal digits are needed");
  return key;
}
