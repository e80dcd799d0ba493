/**
 * Keeps a data plane deployed in the cluster for each Gateway of this controller. `src/controller` uses it. Objects are
 * rendered in render.ts.
 *
 *     deployment plans ─▶ place ───┐
 *                                  ├─▶ queue by Gateway ─▶ plan ─▶ apply, delete
 *     observed objects ─▶ observe ─┘                                  │
 *            ▲──────────────────── watch events ◀─────────────────────┘
 *
 * A changed plan is applied at once. An observed object that drifted or vanished is restored after a growing delay: two
 * controllers that disagree about an object must not flood the API server. An object observed while its Gateway is
 * being worked on may be older than the write in progress, so the check waits until the work has ended. A deleted
 * Gateway leaves its objects to the Kubernetes garbage collector (owner references).
 */
import { objectId, objectKey, type KubeObject, type ObjectId } from "../api/object.ts";
import { nameKey } from "../api/refs.ts";
import { messageOf } from "../lib/errors.ts";
import { createKeyedQueue, type KeyedQueue } from "../lib/keyed-queue.ts";
import type { Logger } from "../lib/log.ts";
import type { DeploymentPlan } from "../translator/gateways/deployment-plan.ts";
import type { TranslatorEvent } from "../translator/translator.ts";
import { addressesOf, type ServiceAddress } from "./addresses.ts";
import { carryOut, planChanges, refuseForeign, type ChangeSet } from "./apply.ts";
import { createChildren, type Children } from "./children.ts";
import type { ObjectClient } from "./client.ts";
import { createComparison, type Comparison } from "./compare.ts";
import { servicePorts, type DeployerSettings } from "./objects/context.ts";
import { hasMesh } from "./objects/mesh.ts";
import { bringsSessionKey, sessionSecretName } from "./objects/session-key.ts";
import { ownerOf } from "./prune.ts";
import { hasReadyPods } from "./readiness.ts";
import { render } from "./render.ts";
import { findSessionKey, sessionKeyOf } from "./session-key.ts";

export interface DeployerOptions {
  readonly client: ObjectClient;
  readonly log: Logger;
  readonly settings: DeployerSettings;
  /** Called when the state of a Gateway has changed. */
  readonly onState: (gateway: ObjectId) => void;
  readonly retryMs?: { readonly initial: number; readonly max: number };
}

export interface DeploymentState {
  readonly addresses: readonly ServiceAddress[];
  /** Explains why the deployment failed or is incomplete. */
  readonly failure: string | undefined;
  /** At least one pod of the workload is ready. */
  readonly hasReadyPods: boolean;
  /** The data plane is deployed as a member of a service mesh. */
  readonly hasMesh: boolean;
}

const CONCURRENT_GATEWAYS = 4;
const RETRY_MS = { initial: 500, max: 10_000 } as const;

/** Reconciles data planes. Gateways are named "namespace/name". */
export class Deployer {
  readonly #options: DeployerOptions;
  readonly #queue: KeyedQueue<undefined>;
  readonly #children: Children = createChildren();
  readonly #comparison: Comparison = createComparison();
  readonly #plans = new Map<string, DeploymentPlan>();
  readonly #failures = new Map<string, string>();
  /** Gateways whose objects were observed while they were being worked on; they are checked again afterwards. */
  readonly #unsure = new Set<string>();
  /** Gateways with a pod that is ready, as far as their state was last told. */
  readonly #ready = new Set<string>();
  #settings: DeployerSettings;
  #isLeading = false;

  constructor(options: DeployerOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#queue = createKeyedQueue<undefined>({
      concurrency: CONCURRENT_GATEWAYS,
      retryMs: options.retryMs ?? RETRY_MS,
      work: (key) => this.#work(key),
      onFailure: (key, error, retryInMs) => {
        const message = messageOf(error);
        options.log.warn("a Gateway could not be deployed", { gateway: key, error: message, retryInMs });
        this.#fail(key, message);
      },
    });
  }

  /** Sets how Gateways are deployed from now on; undefined when a Gateway is no longer deployed. */
  deploy(plans: ReadonlyMap<string, DeploymentPlan | undefined>): void {
    for (const [key, plan] of plans) {
      if (plan === undefined) this.#forget(key);
      else {
        this.#plans.set(key, plan);
        if (this.#isLeading) this.#queue.put(key, undefined);
      }
    }
  }

  /** Takes in observed objects; those that are not part of a data plane are ignored. */
  observe(events: readonly TranslatorEvent[]): void {
    const touched = new Set<string>();
    for (const event of events) {
      if (event.type !== "set" && event.type !== "delete") continue;
      const id = event.type === "set" ? objectId(event.object) : event.id;
      if (event.type === "delete") this.#comparison.forget(objectKey(id));
      const gateways = event.type === "set" ? this.#children.set(event.object) : this.#children.delete(objectKey(id));
      for (const gateway of gateways) {
        touched.add(gateway);
        if (id.kind === "Service" || this.#hasChangedReadiness(gateway)) this.#notify(gateway);
      }
    }
    for (const gateway of touched) this.#check(gateway);
  }

  /** Changes the settings that all data planes share. */
  configure(settings: DeployerSettings): void {
    this.#settings = settings;
    if (this.#isLeading) this.#deployAll();
  }

  /** Starts writing; until then this process only watches. */
  lead(): void {
    this.#isLeading = true;
    this.#deployAll();
  }

  /** Stops writing, because another replica writes from now on. */
  follow(): void {
    this.#isLeading = false;
    this.#failures.clear();
  }

  state(gateway: string): DeploymentState {
    const plan = this.#plans.get(gateway);
    return {
      addresses: this.#ownChildren(gateway)
        .filter(({ kind }) => kind === "Service")
        .flatMap(addressesOf),
      failure: this.#failures.get(gateway),
      hasReadyPods: this.#ownChildren(gateway).some(hasReadyPods),
      hasMesh: plan !== undefined && hasMesh({ plan, settings: this.#settings }),
    };
  }

  /** Resolves when no work is left. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  stop(): Promise<void> {
    return this.#queue.stop();
  }

  /** Returns the observed objects of this very Gateway, and not those of an earlier one of the same name. */
  #ownChildren(gateway: string): KubeObject[] {
    const uid = this.#plans.get(gateway)?.uid;
    return [...this.#children.of(gateway).values()].filter((child) => ownerOf(child)?.uid === uid);
  }

  /** Pods come and go all the time; only the first that is ready, and the last, change the state. */
  #hasChangedReadiness(gateway: string): boolean {
    const isReady = this.#ownChildren(gateway).some(hasReadyPods);
    if (isReady === this.#ready.has(gateway)) return false;
    if (isReady) this.#ready.add(gateway);
    else this.#ready.delete(gateway);
    return true;
  }

  #deployAll(): void {
    for (const key of this.#plans.keys()) this.#queue.put(key, undefined);
  }

  #forget(key: string): void {
    this.#plans.delete(key);
    this.#failures.delete(key);
    this.#ready.delete(key);
    this.#queue.forget(key);
  }

  async #work(key: string): Promise<void> {
    this.#unsure.delete(key);
    await this.#deploy(key);
    this.#fail(key, undefined);
    if (this.#unsure.delete(key)) setImmediate(() => this.#check(key));
  }

  async #deploy(key: string): Promise<void> {
    const plan = this.#wanted(key);
    if (plan === undefined) return;
    const { client } = this.#options;
    if (plan.isForeign) return this.#withdraw(plan);
    const sessionKey = bringsSessionKey(plan) ? undefined : await findSessionKey(client, plan, this.#secretOf(plan));
    const changes = this.#planChanges(plan, sessionKey);
    // The Secret has a rule of its own (session-key.ts): one without an owner is taken as the key that a user has made.
    const apply = changes.apply.filter(({ kind }) => kind !== "Secret");
    await refuseForeign({ apply }, this.#children.of(key), key, client);
    await carryOut(changes, client, this.#comparison, (object) => void this.#children.set(object));
  }

  /** Deletes the objects of a Gateway whose class now belongs to another controller. */
  async #withdraw({ gateway, uid }: DeploymentPlan): Promise<void> {
    const changes = planChanges([], this.#children.of(nameKey(gateway)), uid, this.#comparison);
    await carryOut(changes, this.#options.client, this.#comparison, () => undefined);
  }

  /** Compares the observed objects with the plan, and queues the Gateway when they differ. */
  #check(key: string): void {
    const plan = this.#wanted(key);
    if (plan === undefined || plan.isForeign) return;
    if (this.#queue.has(key)) return void this.#unsure.add(key);
    const secret = this.#secretOf(plan);
    const sessionKey = secret === undefined ? undefined : sessionKeyOf(secret);
    const isKnown = sessionKey !== undefined || bringsSessionKey(plan);
    const changes = isKnown ? this.#planChanges(plan, sessionKey) : undefined;
    if (changes?.apply.length === 0 && changes.remove.length === 0) return;
    this.#queue.putLater(key, undefined);
  }

  /** Returns the plan of a Gateway, or undefined when nothing may be changed for it. */
  #wanted(key: string): DeploymentPlan | undefined {
    const plan = this.#isLeading ? this.#plans.get(key) : undefined;
    if (plan === undefined || plan.error !== undefined || plan.addressError !== undefined) return undefined;
    const hasPort = plan.isForeign || servicePorts(plan, this.#settings).length > 0;
    return hasPort ? plan : undefined;
  }

  /** @param sessionKey the key in the Secret; undefined when there is none */
  #planChanges(plan: DeploymentPlan, sessionKey: string | undefined): ChangeSet {
    const ports = servicePorts(plan, this.#settings);
    const bringsKey = bringsSessionKey(plan);
    const wanted = render({ plan, settings: this.#settings, ports, sessionKey: bringsKey ? undefined : sessionKey });
    const changes = planChanges(wanted, this.#children.of(nameKey(plan.gateway)), plan.uid, this.#comparison);
    // A Secret that is no longer needed stays: its key would be lost, and the variable may even read it from there.
    return bringsKey ? { ...changes, remove: changes.remove.filter(({ kind }) => kind !== "Secret") } : changes;
  }

  #secretOf({ gateway }: DeploymentPlan): KubeObject | undefined {
    const { namespace, name } = gateway;
    const id = { group: "", kind: "Secret", namespace, name: sessionSecretName(name) };
    return this.#children.of(nameKey(gateway)).get(objectKey(id));
  }

  #fail(key: string, failure: string | undefined): void {
    if (this.#failures.get(key) === failure) return;
    if (failure === undefined) this.#failures.delete(key);
    else this.#failures.set(key, failure);
    this.#notify(key);
  }

  #notify(key: string): void {
    const plan = this.#plans.get(key);
    if (plan !== undefined) this.#options.onState(plan.gateway);
  }
}
