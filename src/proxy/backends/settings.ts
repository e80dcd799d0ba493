/**
 * Merges the settings for calls to a backend: for each block (tls, tcp, http, …) the most specific level that sets it
 * supplies all of it. The registry calls it for each backend and each place where one is used.
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendSettingsSchema,
  type BackendSettings,
  type BackendTls,
  type ClientCertificate,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { CompiledPolicy } from "../policies/policy-set.ts";
import type { IdentitySource } from "../spiffe/workload-api.ts";
import { checkTls } from "../upstream/dial/tls.ts";

// Each field of the message is a block with that name.
const BLOCKS = BackendSettingsSchema.fields.map(
  ({ localName }) => localName as Exclude<keyof BackendSettings, `$${string}`>,
);

/** @param levels from the least to the most specific; the last one that sets a block supplies all of it */
export function mergeSettings(levels: Iterable<BackendSettings | undefined>): BackendSettings {
  const merged = create(BackendSettingsSchema);
  for (const level of levels) {
    if (level === undefined) continue;
    for (const name of BLOCKS) if (level[name] !== undefined) Object.assign(merged, { [name]: level[name] });
  }
  return merged;
}

const certified = new WeakMap<BackendTls, WeakMap<ClientCertificate, BackendTls>>();

/**
 * Adds the client certificate to the TLS settings that lack one. Equal inputs give the same object, which pools rely
 * on.
 */
export function withClientCertificate(settings: BackendSettings): BackendSettings {
  const { clientCertificate, tls } = settings;
  if (clientCertificate === undefined || tls === undefined || tls.certificatePem !== "" || tls.spiffe) return settings;
  let made = certified.get(tls);
  if (made === undefined) certified.set(tls, (made = new WeakMap()));
  let complete = made.get(clientCertificate);
  if (complete === undefined) {
    const { certificatePem, privateKeyPem } = clientCertificate;
    made.set(clientCertificate, (complete = { ...tls, certificatePem, privateKeyPem }));
  }
  return { ...settings, tls: complete };
}

/** Merges the policies of one level: the oldest policy that sets a block wins. @param policies oldest first */
export function settingsOfLevel(policies: readonly CompiledPolicy[]): BackendSettings {
  return mergeSettings(policies.map(({ backend }) => backend).toReversed());
}

/**
 * Checks the TLS settings of a backend. It leaves out the client certificate of a Gateway: a bad one must fail only the
 * connections that show it, and not the backend.
 * @throws ConfigError when certificates or groups cannot be used
 */
export function checkSettings(settings: BackendSettings | undefined, identities: IdentitySource): void {
  if (settings?.tls === undefined) return;
  checkTls(settings.tls);
  // Start watching the Workload API now, long before a connection needs the identity.
  if (settings.tls.spiffe) identities.current();
}
