/** What is in force for one call to a backend: per block the most specific level that says anything (policy.md 4.4). */
import { create } from "@bufbuild/protobuf";
import {
  BackendSettingsSchema,
  type BackendSettings,
  type BackendTls,
  type ClientCertificate,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { CompiledPolicy } from "../pipeline/policy-set.ts";
import type { IdentitySource } from "../spiffe/workload-api.ts";
import { checkTls } from "../upstream/dial/tls.ts";

// Every field of the message is a block of that name.
const BLOCKS = BackendSettingsSchema.fields.map(
  ({ localName }) => localName as Exclude<keyof BackendSettings, `$${string}`>,
);

/** @param levels from the least specific to the most; the last that has a block supplies all of it */
export function mergeSettings(levels: Iterable<BackendSettings | undefined>): BackendSettings {
  const merged = create(BackendSettingsSchema);
  for (const level of levels) {
    if (level === undefined) continue;
    for (const name of BLOCKS) if (level[name] !== undefined) Object.assign(merged, { [name]: level[name] });
  }
  return merged;
}

const certified = new WeakMap<BackendTls, WeakMap<ClientCertificate, BackendTls>>();

/** With the client certificate in the TLS settings that it completes; the same object for the same two. */
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

/** The policies of one level as settings: the older policy wins a block. @param policies oldest first */
export function settingsOfLevel(policies: readonly CompiledPolicy[]): BackendSettings {
  return mergeSettings(policies.map(({ backend }) => backend).toReversed());
}

/**
 * A client certificate of a Gateway is left to the connections that show it: it must not close those that do not.
 * @throws ConfigError when certificates or groups cannot be used
 */
export function checkSettings(settings: BackendSettings | undefined, identities: IdentitySource): void {
  if (settings?.tls === undefined) return;
  checkTls(settings.tls);
  // Starts the watch, long before a connection needs what it finds.
  if (settings.tls.spiffe) identities.current();
}
