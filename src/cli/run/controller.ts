/**
 * `gwproxy controller`: a cluster to data planes. Watches feed the translator; its steps go out over discovery, are
 * deployed, and come back as status, where `Attached` turns True once a data plane has acknowledged what a policy became,
 * and a refusal becomes a condition.
 */
import { createServer } from "node:http";
import { FatalError } from "../../lib/errors.ts";
import { createKubernetesClient } from "../../sources/kubernetes/client.ts";
import { createKubernetesSource } from "../../sources/kubernetes/kubernetes-source.ts";
import { DEPLOYED_KINDS, OWN_KINDS, STANDARD_KINDS } from "../../sources/kubernetes/kinds.ts";
import { reviewToken } from "../../sources/kubernetes/token-review.ts";
import { createXdsServer } from "../../xds/server/discovery.ts";
import type { Address } from "../commands/options.ts";
import type { ControllerOptions } from "../commands/controller.ts";
import { createControllerCore } from "./controller-core.ts";
import { createLeadership } from "./leadership.ts";
import { createProcessLog, stopSignal } from "./process.ts";
import { authorizeByToken } from "./stream-authorization.ts";
import { openXdsSecret, readXdsFiles } from "./xds-tls.ts";

const KINDS = [...STANDARD_KINDS, ...OWN_KINDS, ...DEPLOYED_KINDS];

export async function runController(options: ControllerOptions): Promise<void> {
  const { log } = createProcessLog(options.logLevel);
  const files = await readXdsFiles(options);
  const client = await createKubernetesClient(options.kubeconfig);
  const tls = files ?? (await openXdsSecret(options, client, log.child("xds")));
  const source = createKubernetesSource({ client, kinds: KINDS, log: log.child("source") });
  const current: typeof source.current = (id) => source.current(id);
  const core = await createControllerCore({ options, client, kinds: KINDS, current, tls, log });
  const leadership = createLeadership({
    client,
    namespace: options.namespace,
    isDisabled: options.disableLeaderElection,
    log: log.child("leader"),
    onChange: (isLeader) => core.lead(isLeader),
  });
  const mustAuthorize = options.xdsAuth ?? !isLoopback(options.xdsAddress.host);
  const authorize = authorizeByToken((token, audience) => reviewToken(client, token, audience));
  const xds = createXdsServer({
    log: log.child("xds"),
    feed: core.feed,
    ...core.answers,
    ...(mustAuthorize ? { authorize } : {}),
    ...(tls === undefined ? {} : { tls: tls.certificate, alsoPlaintext: options.xdsMode === "either" }),
  });
  tls?.onChange(({ certificate, ca }) => {
    xds.replaceCertificate(certificate);
    core.trust(ca);
  });

  const stopped = stopSignal();
  leadership.start();
  let synced = false;
  const health = await startHealthServer(options.healthAddress, () => synced);
  const started = source.start({
    apply: (events) => core.apply(events),
    report: (problems) => problems.forEach(({ message }) => log.warn(message)),
  });
  await Promise.race([started, stopped]);
  synced = true;
  const port = await xds.listen(options.xdsAddress);
  log.info("serving data planes", { address: `${options.xdsAddress.host}:${port}`, server: client.server });
  await stopped;
  tls?.stop();
  core.stopFetching();
  await source.stop();
  await xds.stop();
  await core.stop();
  await leadership.stop();
  health.close();
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
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
