/**
 * Which of several replicas writes: the one that holds a Lease (coordination.k8s.io/v1) and renews it in time. Times are
 * measured on our own clock from when a change of the Lease was seen, because clocks of a cluster differ.
 */
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";

export interface LeaderOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly name: string;
  /** Tells replicas apart. */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called at each change; the first call is with true. */
  readonly onChange: (isLeader: boolean) => void;
}

export interface Leader {
  start(): void;
  /** Gives the Lease back, so that another replica need not wait for its end. */
  stop(): Promise<void>;
}

/** A holder that is silent for so long has lost it. */
const LEASE_SECONDS = 15;
/** A holder that could not renew for so long stops writing, well before another one starts. */
const RENEW_WITHIN_MS = 10_000;
const TURN_MS = 2_000;
const REQUEST_MS = 4_000;

interface LeaseObject {
  readonly metadata: { readonly resourceVersion?: string };
  readonly spec?: LeaseSpec;
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export function createLeader(options: LeaderOptions): Leader {
  const { client, namespace, name, identity, clock, log, onChange } = options;
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  const path = `${collection}/${encodeURIComponent(name)}`;
  let seen: { readonly version: string | undefined; readonly atMs: number } | undefined;
  let renewedMs = 0;
  let complaint = "";
  let isLeader = false;
  let isStopped = false;
  let cancel = (): void => {};
  let running: Promise<void> = Promise.resolve();

  function become(leads: boolean): void {
    if (leads === isLeader) return;
    isLeader = leads;
    log.info(leads ? "this replica writes now" : "another replica may write now", { identity });
    onChange(leads);
  }

  async function read(): Promise<LeaseObject | undefined> {
    try {
      const signal = AbortSignal.timeout(REQUEST_MS);
      return (await client.request({ method: "GET", path, signal })) as LeaseObject; // the API server validated its shape
    } catch (error) {
      if (isStatus(error, 404)) return undefined;
      throw error;
    }
  }

  async function write(spec: LeaseSpec, replaces: LeaseObject | undefined): Promise<boolean> {
    const { resourceVersion } = replaces?.metadata ?? {};
    const metadata = { name, namespace, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
    const body = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
    const target =
      replaces === undefined ? ({ method: "POST", path: collection } as const) : { method: "PUT" as const, path };
    try {
      await client.request({ ...target, body, signal: AbortSignal.timeout(REQUEST_MS) });
      return true;
    } catch (error) {
      // Somebody else was quicker.
      if (isStatus(error, 409)) return false;
      throw error;
    }
  }

  /** @returns whether the Lease is ours now */
  async function hold(): Promise<boolean> {
    const lease = await read();
    const now = clock.now();
    const { holderIdentity = "", leaseDurationSeconds = LEASE_SECONDS, leaseTransitions = 0 } = lease?.spec ?? {};
    if (seen === undefined || seen.version !== lease?.metadata.resourceVersion)
      seen = { version: lease?.metadata.resourceVersion, atMs: now };
    const isOurs = holderIdentity === identity;
    const isHeld = holderIdentity !== "" && now - seen.atMs < leaseDurationSeconds * 1_000;
    if (isHeld && !isOurs) return false;
    const time = microTime(now);
    return write(
      {
        holderIdentity: identity,
        leaseDurationSeconds: LEASE_SECONDS,
        acquireTime: (isOurs ? lease?.spec?.acquireTime : undefined) ?? time,
        renewTime: time,
        leaseTransitions: isOurs || lease === undefined ? leaseTransitions : leaseTransitions + 1,
      },
      lease,
    );
  }

  /** Once for each new reason: the tries go on every two seconds. */
  function complain(error: unknown): void {
    const message = messageOf(error);
    if (message === complaint) return;
    complaint = message;
    const hint = isStatus(error, 404) ? "create the namespace, or name another with POD_NAMESPACE" : undefined;
    log.error("the lease cannot be held, so nothing is written", { namespace, name, error: message, hint });
  }

  async function turn(): Promise<void> {
    const began = clock.now();
    try {
      const isHeld = await hold();
      if (isStopped) return;
      if (isHeld) renewedMs = began;
      complaint = "";
      become(isHeld);
    } catch (error) {
      complain(error);
      if (clock.now() - renewedMs >= RENEW_WITHIN_MS) become(false);
    }
    if (!isStopped) cancel = clock.after(TURN_MS, next);
  }

  function next(): void {
    running = turn();
  }

  return {
    start: next,
    async stop() {
      isStopped = true;
      cancel();
      await running;
      if (!isLeader) return;
      become(false);
      try {
        const lease = await read();
        if (lease?.spec?.holderIdentity === identity) await write({ ...lease.spec, holderIdentity: "" }, lease);
      } catch (error) {
        log.warn("the lease could not be given back; it ends by itself", { error: messageOf(error) });
      }
    },
  };
}

/** As metav1.MicroTime is written. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
