/** What is in force for one call to a backend: per field the most specific level that says anything (policy.md 4.4). */
import { create } from "@bufbuild/protobuf";
import { BackendSettingsSchema, type BackendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { CompiledPolicy } from "../pipeline/policy-set.ts";
import { tlsOptions } from "./tls.ts";

/** @param levels from the least specific to the most; per field the last that sets it wins */
export function mergeSettings(levels: Iterable<BackendSettings | undefined>): BackendSettings {
  const merged = create(BackendSettingsSchema);
  for (const level of levels) {
    if (level?.tls !== undefined) merged.tls = level.tls;
    if (level?.auth !== undefined) merged.auth = level.auth;
    if (level?.clientCertificate !== undefined) merged.clientCertificate = level.clientCertificate;
  }
  return merged;
}

/** With the client certificate in the TLS settings that it completes. */
export function withClientCertificate(settings: BackendSettings): BackendSettings {
  const { clientCertificate, tls } = settings;
  if (clientCertificate === undefined || tls === undefined || tls.certificatePem !== "") return settings;
  const { certificatePem, privateKeyPem } = clientCertificate;
  return { ...settings, tls: { ...tls, certificatePem, privateKeyPem } };
}

/** The policies of one level as settings: the older policy wins a field. @param policies oldest first */
export function settingsOfLevel(policies: readonly CompiledPolicy[]): BackendSettings {
  return mergeSettings(policies.map(({ backend }) => backend).toReversed());
}

/**
 * A client certificate of a Gateway is left to the connections that show it: it must not close those that do not.
 * @throws ConfigError when certificates or groups cannot be used
 */
export function checkSettings(settings: BackendSettings | undefined): void {
  if (settings?.tls !== undefined) tlsOptions(settings.tls, "");
}
