/** Reads credentials from the entry `Authorization` of a Secret, or from the one that a reference names. */
import type { LocalSecretKeyRef } from "../../../../../generated/types/common.ts";
import type { SecretReader } from "../../../references/secrets.ts";

const DEFAULT_ENTRY = "Authorization";

export function readCredential(
  { key, ...ref }: LocalSecretKeyRef,
  secrets: SecretReader,
): ReturnType<SecretReader["entry"]> {
  const found = secrets.entry(ref, key ?? DEFAULT_ENTRY);
  // The default location adds "Bearer " itself; the value of an explicit key is used unchanged.
  if ("error" in found || key !== undefined) return found;
  const value = found.value.replace(/^Bearer /, "").trim();
  return value === "" ? { error: `Secret ${ref.name} has no credential in entry ${DEFAULT_ENTRY}` } : { value };
}
