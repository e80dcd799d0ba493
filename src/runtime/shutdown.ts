/** How a data plane ends (proxying.md 14): when it stops to accept, and when it stops to wait for its connections. */
import type { Clock } from "../lib/clock.ts";
import type { Proxy } from "../proxy/proxy.ts";

/** Measured from the word to stop. */
export interface DrainTimes {
  /** New connections are accepted until then. */
  readonly minMs: number;
  /** Whatever is still connected then is cut off. */
  readonly maxMs: number;
}

const USUAL_MAX_SECONDS = 5;
/** What the system shall not have to end is over so long before. */
const MARGIN_SECONDS = 5;
const SHORT_GRACE_SECONDS = 10;

/** @param seconds undefined where nothing is said */
export function drainTimes(seconds: {
  readonly min: number | undefined;
  readonly max: number | undefined;
  /** Until the system ends the process. */
  readonly grace: number | undefined;
}): DrainTimes {
  const max = seconds.max ?? (seconds.grace === undefined ? USUAL_MAX_SECONDS : withinGrace(seconds.grace));
  return { minMs: Math.min(seconds.min ?? 0, max) * 1000, maxMs: max * 1000 };
}

function withinGrace(grace: number): number {
  return Math.max(1, grace - (grace <= SHORT_GRACE_SECONDS ? 1 : MARGIN_SECONDS));
}

export interface ShutdownOptions {
  readonly proxy: Pick<Proxy, "announce" | "drain">;
  readonly times: DrainTimes;
  readonly clock: Clock;
  /** Called before anything else. */
  readonly begun: () => void;
}

/** Begins with the first call of either; both may be called any number of times. */
export interface Shutdown {
  /** Resolves when no connection is accepted any more. */
  accepted(): Promise<void>;
  /** Resolves when every connection has ended, or when there is no more time. */
  over(): Promise<void>;
}

export function createShutdown({ proxy, times: { minMs, maxMs }, clock, begun }: ShutdownOptions): Shutdown {
  let run: { readonly accepted: Promise<void>; readonly over: Promise<void> } | undefined;
  const begin = (): NonNullable<typeof run> => {
    const wait = (ms: number): Promise<void> =>
      ms === 0 ? Promise.resolve() : new Promise((resolve) => void clock.after(ms, resolve));
    begun();
    proxy.announce();
    const late = wait(maxMs);
    const accepted = wait(minMs);
    return { accepted, over: Promise.race([accepted.then(() => proxy.drain()), late]) };
  };
  return {
    accepted: () => (run ??= begin()).accepted,
    over: () => (run ??= begin()).over,
  };
}
