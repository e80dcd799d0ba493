/**
 * Chooses how the controller authenticates to data planes: with certificate files, with the Secret `gwproxy-xds-cert`,
 * or, in plaintext, not at all. `controller.ts` uses it.
 */
import type { ControllerOptions } from "./options.ts";
import { systemClock } from "../lib/time/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { KubernetesClient } from "../sources/kubernetes/client.ts";
import type { ObjectOwner } from "../sources/kubernetes/owner.ts";
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
  /** PEM of the CA that data planes trust; undefined when they trust the CA certificates of their system. */
  readonly ca: string | undefined;
  /** Passes each later certificate to `use`. */
  onChange(use: (serving: ServingCertificate) => void): void;
  stop(): void;
}

const SECRET_NAME = "gwproxy-xds-cert";

/** Reads the certificate files before anything starts. @throws FatalError for files that cannot be used */
export async function readXdsFiles({ xdsTlsCert, xdsTlsKey }: ControllerOptions): Promise<XdsTls | undefined> {
  if (xdsTlsCert === undefined || xdsTlsKey === undefined) return undefined;
  const certificate = await readServerCertificate(xdsTlsCert, xdsTlsKey);
  return { certificate, ca: undefined, onChange: () => undefined, stop: () => undefined };
}

/** Opens the Secret. @returns undefined when discovery is served in plaintext only */
export async function openXdsSecret(
  options: ControllerOptions,
  client: KubernetesClient,
  owner: ObjectOwner | undefined,
  log: Logger,
): Promise<XdsTls | undefined> {
  if (xdsMode(options) === "plaintext") return undefined;
  const store = authorityStore(client, options.namespace, owner);
  const certificates = new ServingCertificates({ store, names: namesOf(options), clock: systemClock, log });
  const { certificate, ca } = await certificates.start();
  return { certificate, ca, onChange: (use) => certificates.onChange(use), stop: () => certificates.stop() };
}

/**
 * Returns the mode of discovery. Resources hold credentials, so plaintext is chosen only on loopback or on explicit
 * request.
 */
function xdsMode({ xdsMode: asked, xdsAddress }: ControllerOptions): NonNullable<ControllerOptions["xdsMode"]> {
  return asked ?? (isLoopback(xdsAddress.host) ? "plaintext" : "tls");
}

function authorityStore(client: KubernetesClient, namespace: string, owner: ObjectOwner | undefined): AuthorityStore {
  const secrets = createSecretStore(client, { namespace, name: SECRET_NAME, type: "Opaque", owner });
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
