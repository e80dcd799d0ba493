/**
 * Decides which replica of the controller writes: the holder of the lease, or every replica when leader election is
 * disabled. `controller.ts` uses it.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { systemClock } from "../lib/time/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { KubernetesClient } from "../sources/kubernetes/client.ts";
import { createLeader, type Leader } from "../sources/kubernetes/leader.ts";

const LEASE_NAME = "gwproxy-controller";

export interface LeadershipOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  /** Makes every replica write. */
  readonly isDisabled: boolean;
  readonly log: Logger;
  readonly onChange: (isLeader: boolean) => void;
}

export function createLeadership({ client, namespace, isDisabled, log, onChange }: LeadershipOptions): Leader {
  if (isDisabled) return { start: () => onChange(true), stop: () => Promise.resolve() };
  // A container that restarts in its pod is the same replica, and continues without waiting for its own lease to
  // expire.
  const identity = process.env["POD_NAME"] ?? `${hostname()}_${randomUUID()}`;
  return createLeader({ client, namespace, name: LEASE_NAME, identity, clock: systemClock, log, onChange });
}
