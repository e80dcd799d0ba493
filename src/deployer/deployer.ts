/**
 * Keeps a data plane in the cluster for each Gateway of ours. In: placements of the translator, sights of objects. Out:
 * applied objects, and what has become of each Gateway, for its status. What drifts or vanishes is put back, unhurried:
 * two that disagree about an object must not fill the API server with their quarrel. A Gateway that is gone leaves its
 * objects to the garbage collector. Not here: which objects those are (render.ts).
 */
import { objectId, objectKey, type KubeObject, type ObjectId } from "../api/object.ts";
import { nameKey } from "../api/refs.ts";
import { messageOf } from "../lib/errors.ts";
import { createKeyedQueue } from "../lib/keyed-queue.ts";
import type { Logger } from "../lib/log.ts";
import type { Placement } from "../translator/placement.ts";
import type { TranslatorEvent } from "../translator/translator.ts";
import { addressesOf, type ServiceAddress } from "./addresses.ts";
import { carryOut, planChanges, type Plan } from "./apply.ts";
import { createChildren } from "./children.ts";
import type { ObjectClient } from "./client.ts";
import { createComparison } from "./compare.ts";
import { servicePorts, type DeployerSettings } from "./context.ts";
import { sessionSecretName } from "./objects/session-key.ts";
import { ownerOf } from "./prune.ts";
import { render } from "./render.ts";
import { findSessionKey, sessionKeyOf } from "./session-key.ts";

export interface DeployerOptions {
  readonly client: ObjectClient;
  readonly log: Logger;
  readonly settings: DeployerSettings;
  /** The state of this Gateway is another one now. */
  readonly onState: (gateway: ObjectId) => void;
  readonly retryMs?: { readonly initial: number; readonly max: number };
}

export interface DeploymentState {
  readonly addresses: readonly ServiceAddress[];
  /** Why it is not deployed as it should be. */
  readonly failure: string | undefined;
}

export interface Deployer {
  /** How Gateways ("namespace/name") are to be deployed from now on; undefined: no longer. */
  place(placements: ReadonlyMap<string, Placement | undefined>): void;
  /** Objects of the cluster were seen; those that are no part of a data plane are passed over. */
  observe(events: readonly TranslatorEvent[]): void;
  /** Changes what all data planes have in common. */
  configure(settings: DeployerSettings): void;
  /** From now on this process writes; until then it only watches. */
  lead(): void;
  /** Somebody else writes from now on. */
  follow(): void;
  state(gateway: string): DeploymentState;
  /** Resolves when nothing is left to be done. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

const CONCURRENT_GATEWAYS = 4;

export function createDeployer(options: DeployerOptions): Deployer {
  const { client, log, onState, retryMs = { initial: 500, max: 10_000 } } = options;
  const children = createChildren();
  const comparison = createComparison();
  const placements = new Map<string, Placement>();
  const failures = new Map<string, string>();
  /** Gateways of which something was seen while they were being worked on. */
  const unsure = new Set<string>();
  let { settings } = options;
  let isLeading = false;

  const queue = createKeyedQueue<undefined>({
    concurrency: CONCURRENT_GATEWAYS,
    retryMs,
    work: async (key) => {
      unsure.delete(key);
      await deploy(key);
      fail(key, undefined);
      if (unsure.delete(key)) setImmediate(check, key);
    },
    onFailure(key, error, retryInMs) {
      log.warn("a Gateway could not be deployed", { gateway: key, error: messageOf(error), retryInMs });
      fail(key, messageOf(error));
    },
  });

  function fail(key: string, failure: string | undefined): void {
    if (failures.get(key) === failure) return;
    if (failure === undefined) failures.delete(key);
    else failures.set(key, failure);
    tell(key);
  }

  function tell(key: string): void {
    const placement = placements.get(key);
    if (placement !== undefined) onState(placement.gateway);
  }

  function planFor(placement: Placement, sessionKey: string): Plan {
    const ports = servicePorts(placement, settings);
    const wanted = render({ placement, settings, ports, sessionKey });
    return planChanges(wanted, children.of(nameKey(placement.gateway)), placement.uid, comparison);
  }

  function knownSecret({ namespace, name }: ObjectId): KubeObject | undefined {
    const id = { group: "", kind: "Secret", namespace, name: sessionSecretName(name) };
    return children.of(nameKey({ namespace, name })).get(objectKey(id));
  }

  async function deploy(key: string): Promise<void> {
    const placement = placements.get(key);
    if (!isLeading || placement === undefined || isRefused(placement)) return;
    const { gateway } = placement;
    if (servicePorts(placement, settings).length === 0) return;
    const plan = planFor(placement, await findSessionKey(client, gateway, knownSecret(gateway)));
    await carryOut(plan, client, comparison, (object) => void children.set(object));
  }

  /** Whether what was seen is still what should be; if not, it is mended. */
  function check(key: string): void {
    const placement = placements.get(key);
    if (!isLeading || placement === undefined || isRefused(placement)) return;
    if (queue.has(key)) return void unsure.add(key);
    if (servicePorts(placement, settings).length === 0) return;
    const secret = knownSecret(placement.gateway);
    const sessionKey = secret === undefined ? undefined : sessionKeyOf(secret);
    const plan = sessionKey === undefined ? undefined : planFor(placement, sessionKey);
    if (plan?.apply.length === 0 && plan.remove.length === 0) return;
    queue.putLater(key, undefined);
  }

  function deployAll(): void {
    for (const key of placements.keys()) queue.put(key, undefined);
  }

  return {
    place(changes) {
      for (const [key, placement] of changes) {
        if (placement === undefined) {
          placements.delete(key);
          failures.delete(key);
          queue.forget(key);
          continue;
        }
        placements.set(key, placement);
        if (isLeading) queue.put(key, undefined);
      }
    },
    observe(events) {
      const touched = new Set<string>();
      for (const event of events) {
        if (event.type !== "set" && event.type !== "delete") continue;
        const id = event.type === "set" ? objectId(event.object) : event.id;
        const gateways = event.type === "set" ? children.set(event.object) : children.delete(objectKey(id));
        for (const gateway of gateways) {
          touched.add(gateway);
          if (id.kind === "Service") tell(gateway);
        }
      }
      for (const gateway of touched) check(gateway);
    },
    configure(next) {
      settings = next;
      if (isLeading) deployAll();
    },
    lead() {
      isLeading = true;
      deployAll();
    },
    follow() {
      isLeading = false;
      failures.clear();
    },
    state(gateway) {
      const own = [...children.of(gateway).values()].filter(
        (child) => child.kind === "Service" && ownerOf(child)?.uid === placements.get(gateway)?.uid,
      );
      return { addresses: own.flatMap(addressesOf), failure: failures.get(gateway) };
    },
    idle: () => queue.idle(),
    stop: () => queue.stop(),
  };
}

function isRefused({ fault, addressFault }: Placement): boolean {
  return fault !== undefined || addressFault !== undefined;
}
