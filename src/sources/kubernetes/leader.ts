/**
 * Leader election: of several replicas only the one that holds a Lease (coordination.k8s.io/v1) and renews it in time
 * writes. The controller uses it through controller/controller.ts.
 *
 * A Lease carries the time of its last renewal, but clocks in a cluster differ. So this replica measures on its own
 * clock from the moment at which it saw the Lease change (a new resourceVersion), as client-go does. Two margins keep
 * two replicas from writing at once: a holder that could not renew for 10 s stops, and others take over only after 15 s
 * without a change.
 *
 *   follower ──(Lease free, or unchanged for 15 s, and our write wins)──▶ leader
 *   leader ──(renewed every 2 s)──▶ leader
 *   leader ──(another holder, a lost write, or no renewal for 10 s)──▶ follower
 */
import type { Clock } from "../../lib/time/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { isStatus } from "./api-error.ts";
import type { KubernetesClient } from "./client.ts";
import { ownedBy, type ObjectOwner } from "./owner.ts";

export interface LeaderOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly name: string;
  /** Name that tells replicas apart. */
  readonly identity: string;
  /** Object with which the Lease is removed; undefined when it stays. */
  readonly owner?: ObjectOwner | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called at each change; the first call is with true. */
  readonly onChange: (isLeader: boolean) => void;
}

export interface Leader {
  start(): void;
  /** Releases the Lease, so that another replica need not wait until it expires. */
  stop(): Promise<void>;
}

/** Duration of the Lease: without a change for this long, another replica may take it. */
const LEASE_SECONDS = 15;
/** A holder that could not renew for this long stops writing, well before another one may start. */
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
  const { client, namespace, name, identity, owner, clock, log, onChange } = options;
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  const path = `${collection}/${encodeURIComponent(name)}`;
  let seen: { readonly version: string | undefined; readonly atMs: number } | undefined;
  let renewedMs = 0;
  let lastWarning = "";
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
      // the API server validated its shape
      return (await client.request({ method: "GET", path, signal })) as LeaseObject;
    } catch (error) {
      if (isStatus(error, 404)) return undefined;
      throw error;
    }
  }

  async function write(spec: LeaseSpec, replaces: LeaseObject | undefined): Promise<boolean> {
    const { resourceVersion } = replaces?.metadata ?? {};
    const version = resourceVersion === undefined ? {} : { resourceVersion };
    const metadata = { name, namespace, ...ownedBy(owner), ...version };
    const body = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
    const target =
      replaces === undefined ? ({ method: "POST", path: collection } as const) : { method: "PUT" as const, path };
    try {
      await client.request({ ...target, body, signal: AbortSignal.timeout(REQUEST_MS) });
      return true;
    } catch (error) {
      // Another replica wrote first (optimistic concurrency by resourceVersion).
      if (isStatus(error, 409)) return false;
      throw error;
    }
  }

  /**
   * Takes or renews the Lease.
   * @returns whether this replica holds the Lease now
   */
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

  /** Logs each new reason once, because the attempts continue every two seconds. */
  function complain(error: unknown): void {
    const message = messageOf(error);
    if (message === lastWarning) return;
    lastWarning = message;
    const hint = isStatus(error, 404) ? "create the namespace, or name another with POD_NAMESPACE" : undefined;
    log.error("the lease cannot be held, so nothing is written", { namespace, name, error: message, hint });
  }

  /**
   * One attempt to hold the Lease. The renewal counts from the start of the attempt, which is earlier than the renewal
   * that other replicas see, so this replica never believes in its Lease for longer than they do.
   */
  async function turn(): Promise<void> {
    const began = clock.now();
    try {
      const isHeld = await hold();
      if (isStopped) return;
      if (isHeld) renewedMs = began;
      lastWarning = "";
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

/** Formats a time as metav1.MicroTime. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
