/**
 * Shuts a data plane down in stages; data-plane.ts uses it. The times follow the termination of a Kubernetes pod
 * (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination): endpoints are removed while the
 * process is already terminating, so `minMs` lets it accept connections for some time more.
 *
 *   signal            minMs                               maxMs              grace period
 *     │ not ready,      │ listeners closed,                 │ connections       │ SIGKILL
 *     │ clients notified│ connections drained               │ cut off           │
 *     ├── accepts ──────┼── finishes active requests ───────┤                   │
 */
import type { Clock } from "../lib/time/clock.ts";
import type { Proxy } from "../proxy/proxy.ts";

/** Drain times, measured from the signal to stop. */
export interface DrainTimes {
  /** Time until which new connections are accepted. */
  readonly minMs: number;
  /** Time at which the remaining connections are cut off. */
  readonly maxMs: number;
}

const USUAL_MAX_SECONDS = 5;
/**
 * Margin between the end of the drain and the end of the grace period, so that the system need not kill the process.
 */
const MARGIN_SECONDS = 5;
const SHORT_GRACE_SECONDS = 10;

/** @param seconds the settings; undefined members take their defaults */
export function drainTimes(seconds: {
  readonly min: number | undefined;
  readonly max: number | undefined;
  /** Time until the system kills the process (terminationGracePeriodSeconds). */
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

/** The shutdown starts with the first call of either function; both may be called any number of times. */
export interface Shutdown {
  /** Resolves when no more connections are accepted. */
  accepted(): Promise<void>;
  /** Resolves when every connection has ended, or at `maxMs`. */
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
