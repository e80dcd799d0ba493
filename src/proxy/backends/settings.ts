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
  }
  return merged;
}

/** The policies of one level as settings: the older policy wins a field. @param policies oldest first */
export function settingsOfLevel(policies: readonly CompiledPolicy[]): BackendSettings {
  return mergeSettings(policies.map(({ backend }) => backend).toReversed());
}

/** @throws ConfigError when certificates or groups cannot be used */
export function checkSettings(settings: BackendSettings | undefined): void {
  if (settings?.tls !== undefined) tlsOptions(settings.tls, "");
}
