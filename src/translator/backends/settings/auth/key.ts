/** Translates `key` and `secretRef` of `auth`: a credential that is known beforehand, and where it is written. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { BackendAuth as ApiAuth } from "../../../../../generated/types/backend-auth.ts";
import { CredentialSchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { translateLocation } from "../../../policies/shared/authentication.ts";
import { unresolved, type Kind, type TranslateKind } from "./auth-kind.ts";
import { readCredential } from "./secret-entry.ts";
import { findValueFault } from "./writable.ts";

/** An empty key counts as absent. */
export const translateKey: TranslateKind<"key"> = (value, auth, { report }) => {
  const fault = findValueFault(value, auth.location);
  if (fault !== undefined) return unresolved(report, "", `the key ${fault}`);
  return value === "" ? undefined : keyOf(value, auth);
};

export const translateSecretRef: TranslateKind<"secretRef"> = (ref, auth, { secrets, report }) => {
  const found = readCredential(ref, auth.location, secrets);
  return "error" in found ? unresolved(report, "", found.error) : keyOf(found.value, auth);
};

function keyOf(value: string, { location }: ApiAuth): Kind {
  const credential: MessageInitShape<typeof CredentialSchema> = { value };
  if (location !== undefined) credential.location = translateLocation(location);
  return { case: "key", value: create(CredentialSchema, credential) };
}
