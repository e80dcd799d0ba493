/** How the controller proves itself to data planes: by files, by the Secret `gwproxy-xds-cert`, or not at all. */
import type { ControllerOptions } from "./options.ts";
import { systemClock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { KubernetesClient } from "../sources/kubernetes/client.ts";
import { createSecretStore } from "../sources/kubernetes/secret-store.ts";
import type { ServerCertificate } from "../xds/server/credentials.ts";
import {
  type AuthorityStore,
  type ServingCertificate,
  ServingCertificates,
} from "../xds/server/serving-certificate.ts";
import { isLoopback } from "../runtime/process.ts";
import { readServerCertificate } from "../runtime/tls-files.ts";

export interface XdsTls {
  readonly certificate: ServerCertificate;
  /** PEM that data planes get to trust; undefined: they trust the authorities of their system. */
  readonly ca: string | undefined;
  /** `use` gets each later certificate. */
  onChange(use: (serving: ServingCertificate) => void): void;
  stop(): void;
}

const SECRET_NAME = "gwproxy-xds-cert";

/** The files that are named, read before anything starts. @throws FatalError for files that cannot be used */
export async function readXdsFiles({ xdsTlsCert, xdsTlsKey }: ControllerOptions): Promise<XdsTls | undefined> {
  if (xdsTlsCert === undefined || xdsTlsKey === undefined) return undefined;
  const certificate = await readServerCertificate(xdsTlsCert, xdsTlsKey);
  return { certificate, ca: undefined, onChange: () => undefined, stop: () => undefined };
}

/** The Secret. @returns undefined when discovery is served in plaintext alone */
export async function openXdsSecret(
  options: ControllerOptions,
  client: KubernetesClient,
  log: Logger,
): Promise<XdsTls | undefined> {
  if (xdsMode(options) === "plaintext") return undefined;
  const store = authorityStore(client, options.namespace);
  const certificates = new ServingCertificates({ store, names: namesOf(options), clock: systemClock, log });
  const { certificate, ca } = await certificates.start();
  return { certificate, ca, onChange: (use) => certificates.onChange(use), stop: () => certificates.stop() };
}

/** What is sent to data planes holds credentials, so it is plaintext only where it stays on this machine, or on demand. */
function xdsMode({ xdsMode: asked, xdsAddress }: ControllerOptions): NonNullable<ControllerOptions["xdsMode"]> {
  return asked ?? (isLoopback(xdsAddress.host) ? "plaintext" : "tls");
}

function authorityStore(client: KubernetesClient, namespace: string): AuthorityStore {
  const secrets = createSecretStore(client, { namespace, name: SECRET_NAME, type: "Opaque" });
  return {
    name: `Secret ${namespace}/${SECRET_NAME}`,
    read: async () => (await secrets.read())?.data,
    create: async (entries) => (await secrets.write(entries, undefined)) === "written",
  };
}

function namesOf({ xdsServiceName, xdsServiceHost, xdsTlsHosts, namespace }: ControllerOptions): string[] {
  const service = `${xdsServiceName}.${namespace}`;
  const given = xdsServiceHost === "" ? [] : [xdsServiceHost];
  return [service, `${service}.svc`, `${service}.svc.cluster.local`, ...given, ...xdsTlsHosts];
}
