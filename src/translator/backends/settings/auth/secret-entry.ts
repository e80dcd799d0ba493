/** Reads credentials from the entry `Authorization` of a Secret, or from the one that a reference names. */
import type { CredentialLocation, LocalSecretKeyRef } from "../../../../../generated/types/common.ts";
import type { SecretReader } from "../../../references/secrets.ts";
import { findValueFault } from "./writable.ts";

const DEFAULT_ENTRY = "Authorization";

/** @param location that the credential is written to */
export function readCredential(
  { key, ...ref }: LocalSecretKeyRef,
  location: CredentialLocation | undefined,
  secrets: SecretReader,
): ReturnType<SecretReader["entry"]> {
  const entry = key ?? DEFAULT_ENTRY;
  const found = secrets.entry(ref, entry);
  if ("error" in found) return found;
  const fault = findValueFault(found.value, location);
  if (fault !== undefined) return { error: `entry ${entry} of Secret ${ref.name} ${fault}` };
  // The default location adds "Bearer " itself; the value of an explicit key is used unchanged.
  if (key !== undefined) return found;
  const value = found.value.replace(/^Bearer /, "").trim();
  return value === "" ? { error: `Secret ${ref.name} has no credential in entry ${DEFAULT_ENTRY}` } : { value };
}
