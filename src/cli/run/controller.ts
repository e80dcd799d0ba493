/**
 * `gwproxy controller`: a cluster to data planes. Watches feed the translator; its steps go out over discovery, are
 * deployed, and come back as status, where `Attached` turns True once a data plane has acknowledged what a policy became, and a refusal
 * becomes a condition.
 */
import { createServer } from "node:http";
import type { ObjectId } from "../../api/object.ts";
import { createDeployer, type DeploymentState } from "../../deployer/deployer.ts";
import type { Resource, ResourceUpdate } from "../../ir/resource.ts";
import { FatalError } from "../../lib/errors.ts";
import { createKubernetesClient } from "../../sources/kubernetes/client.ts";
import { createDocumentStore } from "../../sources/kubernetes/document-store.ts";
import { createKubernetesSource } from "../../sources/kubernetes/kubernetes-source.ts";
import { DEPLOYED_KINDS, OWN_KINDS, STANDARD_KINDS } from "../../sources/kubernetes/kinds.ts";
import { createKubernetesObjectClient } from "../../sources/kubernetes/object-client.ts";
import { createKubernetesStatusClient } from "../../sources/kubernetes/status-client.ts";
import { reviewToken } from "../../sources/kubernetes/token-review.ts";
import type { DesiredStatus } from "../../status/desired.ts";
import { createStatusWriter } from "../../status/writer.ts";
import { createTranslator } from "../../translator/translate.ts";
import type { TranslationStep, TranslatorEvent } from "../../translator/translator.ts";
import { createXdsServer } from "../../xds/server/discovery.ts";
import type { Address } from "../commands/options.ts";
import type { ControllerOptions } from "../commands/controller.ts";
import { createProcessLog, stopSignal } from "./process.ts";
import { deployerSettings } from "./deployment.ts";
import { createOwnClass } from "./gateway-class.ts";
import { createKeySets } from "./key-sets.ts";
import { createLeadership } from "./leadership.ts";
import { createStatusFeed } from "./status-feed.ts";
import { authorizeByToken } from "./stream-authorization.ts";
import { readServerCertificate } from "./tls-files.ts";

export async function runController(options: ControllerOptions): Promise<void> {
  const { log } = createProcessLog(options.logLevel);
  const { controllerName, xdsTlsCert, xdsTlsKey } = options;
  const tls =
    xdsTlsCert === undefined || xdsTlsKey === undefined
      ? undefined
      : await readServerCertificate(xdsTlsCert, xdsTlsKey);
  const kinds = [...STANDARD_KINDS, ...OWN_KINDS, ...DEPLOYED_KINDS];
  const client = await createKubernetesClient(options.kubeconfig);
  const source = createKubernetesSource({ client, kinds, log: log.child("source") });
  const current = (id: ObjectId) => source.current(id);
  const statusClient = createKubernetesStatusClient({ client, kinds, fieldManager: controllerName, current });
  const status = createStatusWriter({ client: statusClient, log: log.child("status") });
  status.pause();
  const translator = createTranslator({ controllerName, implicitClass: undefined });
  const deployer = createDeployer({
    client: createKubernetesObjectClient({ client, kinds, fieldManager: controllerName }),
    log: log.child("deployer"),
    settings: deployerSettings(options, tls === undefined ? undefined : { ca: undefined }),
    onState: (gateway) => statuses.refresh(gateway),
  });
  const put = (desired: DesiredStatus): void => status.put(desired);
  const deployment = (gateway: string): DeploymentState => deployer.state(gateway);
  const statuses = createStatusFeed({ translator, controllerName, put, deployment, log });
  const feed = createFeed((gateway) => translator.resourcesOf(gateway));

  const keysLog = log.child("keys");
  const { namespace } = options;
  const store = createDocumentStore(client, { namespace, fieldManager: controllerName, log: keysLog });
  const keySets = createKeySets({ log: keysLog, apply, stored: await store.load(), store });
  const ownClass = createOwnClass(client, { name: options.className, controllerName, log });
  const leadership = createLeadership({
    client,
    namespace,
    isDisabled: options.disableLeaderElection,
    log: log.child("leader"),
    onChange(isLeader) {
      ownClass.lead(isLeader);
      if (isLeader) {
        status.resume();
        deployer.lead();
      } else {
        status.pause();
        deployer.follow();
      }
    },
  });

  function apply(events: readonly TranslatorEvent[]): void {
    for (const event of events) if (event.type === "delete") status.forget(event.id);
    const step = translator.apply(events);
    feed.publish(step);
    deployer.place(step.placements);
    deployer.observe(events);
    statuses.follow(step);
    for (const event of events) if (event.type === "set") status.observe(event.object);
    for (const event of events) if (event.type === "delete") ownClass.deleted(event.id);
    // Last: what is there already comes back as a step of its own, which must follow this one.
    if (step.documents !== undefined) keySets.want(step.documents);
  }

  const mustAuthorize = options.xdsAuth ?? !isLoopback(options.xdsAddress.host);
  const xds = createXdsServer({
    log: log.child("xds"),
    feed,
    ...statuses.answers,
    ...(mustAuthorize
      ? { authorize: authorizeByToken((token, audience) => reviewToken(client, token, audience)) }
      : {}),
    ...(tls === undefined ? {} : { tls }),
  });

  const stopped = stopSignal();
  leadership.start();
  let synced = false;
  const health = await startHealthServer(options.healthAddress, () => synced);
  const started = source.start({ apply, report: (problems) => problems.forEach(({ message }) => log.warn(message)) });
  await Promise.race([started, stopped]);
  synced = true;
  const port = await xds.listen(options.xdsAddress);
  log.info("serving data planes", { address: `${options.xdsAddress.host}:${port}`, server: client.server });
  await stopped;
  keySets.stop();
  await source.stop();
  await xds.stop();
  await Promise.all([status.stop(), deployer.stop()]);
  await leadership.stop();
  health.close();
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Hands each Gateway's share of a step to the streams that follow it. */
function createFeed(snapshot: (gateway: string) => readonly Resource[]): {
  snapshot(gateway: string): readonly Resource[];
  subscribe(gateway: string, listener: (update: ResourceUpdate) => void): () => void;
  publish(step: TranslationStep): void;
} {
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

async function startHealthServer({ host, port }: Address, ready: () => boolean): Promise<{ close(): void }> {
  const server = createServer((request, response) => {
    const ok = request.url === "/healthz" || (request.url === "/readyz" && ready());
    response.statusCode = ok ? 200 : request.url === "/readyz" ? 503 : 404;
    response.end(ok ? "ok\n" : "not ready\n");
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => reject(new FatalError(`cannot listen on ${host}:${port}`, 1, cause)));
    server.listen(port, host, resolve);
  });
  return { close: () => void server.close() };
}
