/**
 * Translates `auth` of a backend block; `settings.ts` uses it. A credential that cannot be resolved becomes an empty
 * one, so that the upstream rejects the request.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendAuth } from "../../../../generated/types/backend-auth.ts";
import { CredentialSchema, type Credential } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { SecretReader } from "../../references/secrets.ts";
import { within, type Report } from "../../shared/report.ts";
import { translateCloudA } from "./cloud-a.ts";
import { translateLocation } from "../../policies/shared/authentication.ts";

const DEFAULT_ENTRY = "Authorization";

export function translateAuth(auth: BackendAuth, secrets: SecretReader, report: Report): Credential | undefined {
  if (auth.cloudA !== undefined)
    return create(CredentialSchema, { cloudA: translateCloudA(auth.cloudA, secrets, within(report, "cloudA")) });
  const location = auth.location === undefined ? {} : { location: translateLocation(auth.location) };
  if (auth.secretRef === undefined) {
    if (auth.key === undefined || auth.key === "") return undefined; // an empty key counts as absent
    return create(CredentialSchema, { value: auth.key, ...location });
  }
  const { key, ...ref } = auth.secretRef;
  const found = secrets.entry(ref, key ?? DEFAULT_ENTRY);
  if ("error" in found) {
    report("secretRef", found.error);
    return create(CredentialSchema, { value: "", ...location });
  }
  // The default location adds "Bearer " itself; the value of an explicit key is used unchanged.
  const value = key === undefined ? found.value.replace(/^Bearer /, "").trim() : found.value;
  if (value === "") report("secretRef", `Secret ${ref.name} has no credential in entry ${DEFAULT_ENTRY}`);
  return create(CredentialSchema, { value, ...location });
}
