/**
 * The core of the controller, without sockets. `controller.ts` uses it. In: events. Out: resources for data planes,
 * statuses, and deployed objects. All replicas translate and serve resources; only the leader writes to the API server.
 */
import type { ControllerOptions } from "./options.ts";
import { DestinationScope } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ObjectId } from "../api/object.ts";
import { Deployer, type DeploymentState } from "../deployer/deployer.ts";
import type { Logger } from "../lib/log.ts";
import type { KubernetesClient } from "../sources/kubernetes/client.ts";
import { createDocumentStore } from "../sources/kubernetes/document-store.ts";
import { createKubernetesObjectClient } from "../sources/kubernetes/object-client.ts";
import type { WatchedKind } from "../sources/kubernetes/kinds.ts";
import type { KubernetesSource } from "../sources/kubernetes/kubernetes-source.ts";
import type { ObjectOwner } from "../sources/kubernetes/owner.ts";
import { createKubernetesStatusClient } from "../sources/kubernetes/status-client.ts";
import { createStatusWriter } from "../status/writer.ts";
import { createTranslator } from "../translator/translate.ts";
import type { TranslationStep, Translator, TranslatorEvent } from "../translator/translator.ts";
import type { ResourceUpdate } from "../ir/resource.ts";
import type { ResourceFeed } from "../xds/server/discovery.ts";
import { systemClock } from "../lib/time/clock.ts";
import type { ObjectEvent } from "../sources/source.ts";
import { ReplicaAcknowledgements } from "./replicas/replica-acknowledgements.ts";
import { ReportStore } from "./replicas/report-store.ts";
import { createOwnClass } from "./gateway-class.ts";
import { createRemoteJwks } from "../runtime/remote-jwks.ts";
import { createStatusFeed, type StatusFeed } from "./status-feed.ts";
import { deployerSettings } from "./deployer-settings.ts";

export interface ControllerCore {
  apply(events: readonly TranslatorEvent[]): void;
  /** Sets whether this replica writes; it does not at first. */
  lead(isLeader: boolean): void;
  /** Changes the CA certificates that data planes trust. */
  trust(ca: string | undefined): void;
  readonly feed: ResourceFeed;
  readonly answers: StatusFeed["answers"];
  /** Takes what other replicas report out of the events of the source, before namespaces are left out. */
  takeReports(events: readonly ObjectEvent[]): readonly ObjectEvent[];
  readonly isLeader: () => boolean;
  /** What the dump shows of the translation. */
  readonly translator: Pick<Translator, "gateways" | "resourcesOf" | "diagnostics">;
  /** Stops fetching documents; call it before the source is stopped. */
  stopFetching(): void;
  stop(): Promise<void>;
}

export interface ReplicaIdentity {
  /** Name that tells replicas apart. */
  readonly name: string;
  /** Object with which what this replica alone has made is removed: its Pod, or else the Deployment. */
  readonly owner: ObjectOwner | undefined;
}

export interface ControllerCoreOptions {
  readonly options: ControllerOptions;
  readonly client: KubernetesClient;
  readonly kinds: readonly WatchedKind[];
  /** Deployment of the controller; undefined when it has none. */
  readonly owner: ObjectOwner | undefined;
  readonly replica: ReplicaIdentity;
  readonly current: KubernetesSource["current"];
  /** Set when discovery is served over TLS. */
  readonly tls: { readonly ca: string | undefined } | undefined;
  readonly log: Logger;
  /** Receives the duration of each batch of events. */
  readonly translated: (seconds: number) => void;
}

export async function createControllerCore(parts: ControllerCoreOptions): Promise<ControllerCore> {
  const { options, client, kinds, owner, current, log } = parts;
  const { controllerName, className, namespace } = options;
  const rim = { client, kinds, fieldManager: controllerName };
  const statusClient = createKubernetesStatusClient({ ...rim, current });
  const status = createStatusWriter({ client: statusClient, log: log.child("status") });
  status.pause();
  const translator = createTranslator({
    controllerName,
    implicitClass: undefined,
    grantMode: options.backendRefGrantMode,
    ...(options.enableInference ? { inferencePools: "pods" } : {}),
    destinationScope: options.allowLocalBackends ? DestinationScope.LOCAL : DestinationScope.REMOTE,
  });
  const deployer = new Deployer({
    client: createKubernetesObjectClient(rim),
    log: log.child("deployer"),
    settings: deployerSettings(options, parts.tls),
    onState: (gateway: ObjectId) => statuses.refresh(gateway),
  });
  const statuses = createStatusFeed({
    translator,
    controllerName,
    put: (desired) => status.put(desired),
    deployment: (gateway): DeploymentState => deployer.state(gateway),
    log,
  });
  const { name: identity, owner: replicaOwner } = parts.replica;
  const reportsLog = log.child("replicas");
  const replicas = new ReplicaAcknowledgements({
    namespace,
    identity,
    store: new ReportStore({
      client,
      namespace,
      identity,
      fieldManager: controllerName,
      owner: replicaOwner,
      clock: systemClock,
      log: reportsLog,
    }),
    answers: statuses.answers,
    clock: systemClock,
    log: reportsLog,
  });
  const feed = createFeed((gateway) => translator.resourcesOf(gateway));
  const keysLog = log.child("keys");
  const store = createDocumentStore(client, { namespace, fieldManager: controllerName, owner, log: keysLog });
  const remoteJwks = createRemoteJwks({ log: keysLog, apply, stored: await store.load(), store });
  const ownClass = createOwnClass(client, {
    name: className,
    controllerName,
    mayCreate: options.createGatewayClass,
    parametersRef: options.gatewayClassParametersRefs[className],
    log,
  });

  function apply(events: readonly TranslatorEvent[]): void {
    const began = performance.now();
    for (const event of events) if (event.type === "delete") status.forget(event.id);
    const step = translator.apply(events);
    parts.translated((performance.now() - began) / 1_000);
    feed.publish(step);
    deployer.deploy(step.deploymentPlans);
    deployer.observe(events);
    statuses.follow(step);
    replicas.follow(step);
    for (const event of events) {
      if (event.type === "set") status.observe(event.object);
      if (event.type === "delete") ownClass.deleted(event.id);
    }
    // Comes last: documents that are already available come back at once as a step of their own, which must follow this
    // one.
    if (step.documents !== undefined) remoteJwks.want(step.documents);
  }

  let leads = false;
  return {
    apply,
    isLeader: () => leads,
    translator,
    lead(isLeader) {
      leads = isLeader;
      ownClass.lead(isLeader);
      replicas.lead(isLeader);
      if (isLeader) {
        status.resume();
        deployer.lead();
      } else {
        status.pause();
        deployer.follow();
      }
    },
    trust: (ca) => deployer.configure(deployerSettings(options, { ca })),
    feed,
    answers: replicas.answers,
    takeReports: (events) => replicas.take(events),
    stopFetching: () => remoteJwks.stop(),
    async stop() {
      await Promise.all([status.stop(), deployer.stop(), replicas.stop()]);
    },
  };
}

/** Passes the part of each Gateway in a step to the streams that follow this Gateway. */
function createFeed(snapshot: ResourceFeed["snapshot"]): ResourceFeed & { publish(step: TranslationStep): void } {
  const listeners = new Map<string, Set<(update: ResourceUpdate) => void>>();
  return {
    snapshot,
    subscribe(gateway, listener) {
      const set = listeners.get(gateway) ?? new Set();
      listeners.set(gateway, set.add(listener));
      return () => void set.delete(listener);
    },
    publish(step) {
      for (const [gateway, update] of step.byGateway)
        for (const listener of listeners.get(gateway) ?? []) listener(update);
    },
  };
}
