/** Translates `auth.credentials`: what is written beside the credential of the kind, or instead of one. */
import { create } from "@bufbuild/protobuf";
import type { BackendAuth as ApiAuth } from "../../../../../generated/types/backend-auth.ts";
import { CredentialSchema, type Credential } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { translateLocation } from "../../../policies/shared/authentication.ts";
import { unresolved, type AuthContext, type Kind } from "./auth-kind.ts";
import { readCredential } from "./secret-entry.ts";

/** @returns the credentials, or the kind that replaces the whole block when one of them cannot be resolved */
export function translateCredentials(
  list: NonNullable<ApiAuth["credentials"]>,
  { secrets, report }: Pick<AuthContext, "secrets" | "report">,
): readonly Credential[] | Kind {
  let failed: Kind | undefined;
  const credentials = list.map(({ location, secretRef }, at) => {
    const found = readCredential(secretRef, location, secrets);
    if ("error" in found) failed = unresolved(report, `[${at}].secretRef`, found.error);
    const value = "error" in found ? "" : found.value;
    return create(CredentialSchema, { value, location: translateLocation(location) });
  });
  return failed ?? credentials;
}
