/**
 * Runs `gwproxy controller`, which configures data planes from the objects of a cluster. `src/cli/commands` starts it.
 *
 *     watches ─▶ translator ─┬─▶ discovery ─▶ data planes ─▶ ACK, NACK ─┐
 *                            ├─▶ deployer ─▶ objects                    ▼
 *                            └─────────────────────────────────▶ status of objects
 *
 * `Attached` of a GwPolicy becomes True once a data plane has acknowledged the resource of the policy, and a NACK
 * becomes a condition.
 */
import type { ControllerOptions } from "./options.ts";
import { startHealthServer, startMetricsServer } from "../admin/probe-servers.ts";
import { startControllerAdminServer } from "../admin/server.ts";
import { collectWhenIdle } from "../lib/collect-when-idle.ts";
import { type Logger, printLogFilter } from "../lib/log.ts";
import { captureProfile } from "../lib/profiling/capture.ts";
import { createKubernetesClient, type KubernetesClient } from "../sources/kubernetes/client.ts";
import { createEventRecorder, type EventRecorder } from "../sources/kubernetes/events.ts";
import { createKubernetesSource, type KubernetesSource } from "../sources/kubernetes/kubernetes-source.ts";
import { filterNamespaces } from "../sources/kubernetes/namespace-filter.ts";
import type { SourceSink } from "../sources/source.ts";
import { reviewToken } from "../sources/kubernetes/token-review.ts";
import { type ControllerMetrics, createControllerMetrics } from "../telemetry/controller-metrics.ts";
import { createXdsServer, type XdsServer } from "../xds/server/discovery.ts";
import { VERSION } from "../lib/version.ts";
import { type ControllerCore, createControllerCore, type ReplicaIdentity } from "./controller-core.ts";
import { readAdminToken } from "../runtime/admin-token.ts";
import { checkOwnPorts } from "../runtime/own-ports.ts";
import { createProcessLog, hostAndPort, isLoopback, stopSignal } from "../runtime/process.ts";
import { controllerDump, controllerTasks } from "./dump.ts";
import { authorizeByToken } from "./stream-authorization.ts";
import { watchedKinds } from "./watched-kinds.ts";
import { openXdsSecret, readXdsFiles, type XdsTls } from "./xds-certificates.ts";
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { systemClock } from "../lib/time/clock.ts";
import { createLeader, type Leader } from "../sources/kubernetes/leader.ts";
import { findOwner, type ObjectOwner } from "../sources/kubernetes/owner.ts";
import type { KubeObject, ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP } from "../api/refs.ts";
import type { RejectedResource } from "../xds/nack.ts";

export async function runController(options: ControllerOptions): Promise<void> {
  const { log, filter } = createProcessLog(options.logLevel);
  const files = await readXdsFiles(options);
  const adminToken = await readAdminToken(options.adminTokenFile);
  await checkOwnPorts({
    "--xds-address": options.xdsAddress,
    "--health-address": options.healthAddress,
    "--metrics-address": options.metricsAddress,
    "--admin-address": options.adminAddress,
  });
  const client = await createKubernetesClient(options.kubeconfig);
  const owner = await findOwner(client, options.namespace, options.deploymentName);
  const tls = files ?? (await openXdsSecret(options, client, owner, log.child("xds")));
  const kinds = watchedKinds(options);
  const source = createKubernetesSource({ client, kinds, log: log.child("source") });
  const current: typeof source.current = (id) => source.current(id);
  const metrics = createControllerMetrics({
    version: VERSION,
    isLeader: () => core.isLeader(),
    connected: () => xds.connections(),
    memoryBytes: () => process.memoryUsage.rss(),
  });
  const { translated } = metrics;
  const replica = identifyReplica(owner);
  const core = await createControllerCore({ options, client, kinds, owner, replica, current, tls, log, translated });
  const leadership = createLeadership({
    client,
    namespace: options.namespace,
    identity: replica.name,
    owner,
    isDisabled: options.disableLeaderElection,
    log: log.child("leader"),
    onChange: (isLeader) => core.lead(isLeader),
  });
  const xds = createDiscovery({ options, client, core, tls, metrics, current, log });
  tls?.onChange(({ certificate, ca }) => {
    xds.replaceCertificate(certificate);
    core.trust(ca);
  });

  const stopped = stopSignal();
  leadership.start();
  let synced = false;
  const health = await startHealthServer({ address: options.healthAddress, isReady: () => synced });
  const measured = await startMetricsServer({
    address: options.metricsAddress,
    render: (format) => Promise.resolve(metrics.print(format)),
  });
  let discoveryAddress: string | undefined;
  const admin = await startControllerAdminServer({
    address: options.adminAddress,
    token: adminToken,
    state: () =>
      Promise.resolve(
        controllerDump({
          translator: core.translator,
          dataPlanes: xds.dataPlanes(),
          objects: source.counts(),
          isReady: synced,
          isLeader: core.isLeader(),
          options,
          logging: printLogFilter(filter),
        }),
      ),
    tasks: () => Promise.resolve(controllerTasks(xds.dataPlanes(), discoveryAddress)),
    profile: async (request, signal) => [await captureProfile(request, signal)],
    filter,
  });
  log.info("admin server", { address: admin.address });
  const sink: SourceSink = {
    apply: (events) => core.apply(events),
    report: (diagnostics) => diagnostics.forEach(({ message }) => log.warn(message)),
  };
  const filtered = filterNamespaces(sink, options.discoveryNamespaceSelectors);
  const started = source.start({ ...filtered, apply: (events) => filtered.apply(core.takeReports(events)) });
  await Promise.race([started, stopped]);
  collectWhenIdle();
  synced = true;
  const port = await xds.listen(options.xdsAddress);
  discoveryAddress = hostAndPort(options.xdsAddress.host, port);
  log.info("serving data planes", { address: discoveryAddress, server: client.server });
  await stopped;
  tls?.stop();
  core.stopFetching();
  await source.stop();
  await xds.stop();
  await core.stop();
  await Promise.all([leadership.stop(), measured.close(), health.close(), admin.close()]);
}

interface DiscoveryParts {
  readonly options: ControllerOptions;
  readonly client: KubernetesClient;
  readonly core: ControllerCore;
  readonly tls: XdsTls | undefined;
  readonly metrics: ControllerMetrics;
  readonly current: KubernetesSource["current"];
  readonly log: Logger;
}

function createDiscovery({ options, client, core, tls, metrics, current, log }: DiscoveryParts): XdsServer {
  const mustAuthorize = options.xdsAuth ?? !isLoopback(options.xdsAddress.host);
  const authorize = authorizeByToken((token, audience) => reviewToken(client, token, audience));
  const events = createEventRecorder({ client, component: "gwproxy-controller", log: log.child("events") });
  return createXdsServer({
    log: log.child("xds"),
    feed: core.feed,
    ...core.answers,
    onNack(gateway, refused, stream) {
      core.answers.onNack(gateway, refused, stream);
      reportNacks({ metrics, events, current }, gateway, refused);
    },
    ...(mustAuthorize ? { authorize } : {}),
    ...(tls === undefined ? {} : { tls: tls.certificate, alsoPlaintext: options.xdsMode === "either" }),
  });
}

const LEASE_NAME = "gwproxy-controller";

interface LeadershipOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly identity: string;
  readonly owner: ObjectOwner | undefined;
  /** Makes every replica write. */
  readonly isDisabled: boolean;
  readonly log: Logger;
  readonly onChange: (isLeader: boolean) => void;
}

/** Decides which replica writes: the holder of the lease, or every replica when leader election is disabled. */
function createLeadership(leadership: LeadershipOptions): Leader {
  const { client, namespace, identity, owner, isDisabled, log, onChange } = leadership;
  if (isDisabled) return { start: () => onChange(true), stop: () => Promise.resolve() };
  return createLeader({ client, namespace, name: LEASE_NAME, identity, owner, clock: systemClock, log, onChange });
}

/**
 * Names this replica by its Pod. A container that restarts in its Pod is the same replica, and continues without
 * waiting for its own lease to expire.
 */
function identifyReplica(deployment: ObjectOwner | undefined): ReplicaIdentity {
  const { POD_NAME: pod = "", POD_UID: uid = "" } = process.env;
  if (pod === "") return { name: `${hostname()}_${randomUUID()}`, owner: deployment };
  return { name: pod, owner: uid === "" ? deployment : { apiVersion: "v1", kind: "Pod", name: pod, uid } };
}

interface NackReportDeps {
  readonly metrics: Pick<ControllerMetrics, "refused">;
  readonly events: Pick<EventRecorder, "warn">;
  readonly current: (id: ObjectId) => KubeObject | undefined;
}

const REASON = "GwProxyNack";

/**
 * Counts the resources that a data plane refused (NACK), and records an Event on the Gateway.
 * @param gateway "namespace/name"
 */
function reportNacks(
  { metrics, events, current }: NackReportDeps,
  gateway: string,
  refused: readonly RejectedResource[],
): void {
  const [namespace = "", name = ""] = gateway.split("/");
  const object = current({ group: GATEWAY_GROUP, kind: "Gateway", namespace, name });
  for (const { type, key, reason } of refused) {
    metrics.refused(gateway, type);
    if (object !== undefined) events.warn(object, REASON, `a data plane refused ${type} ${key}: ${reason}`);
  }
}
