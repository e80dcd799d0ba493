/** Translates `auth.cloudB`: which identity the token is for. */
import { create } from "@bufbuild/protobuf";
import { CloudBCredentialSchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { unresolved, type TranslateKind } from "./auth-kind.ts";

export const translateCloudB: TranslateKind<"cloudB"> = (spec, _block, { secrets, report }) => {
  const { secretRef, managedIdentity, workloadIdentity } = spec;
  if (managedIdentity !== undefined) {
    const { clientId, objectId, resourceId } = managedIdentity;
    const value = { clientId: clientId ?? "", objectId: objectId ?? "", resourceId: resourceId ?? "" };
    const source = { case: "managedIdentity" as const, value };
    return { case: "cloudB", value: create(CloudBCredentialSchema, { source }) };
  }
  if (workloadIdentity !== undefined)
    return {
      case: "cloudB",
      value: create(CloudBCredentialSchema, { source: { case: "workloadIdentity", value: true } }),
    };
  if (secretRef === undefined) return { case: "cloudB", value: create(CloudBCredentialSchema) };
  const found = secrets.texts(secretRef, ["tenantId", "clientId", "clientSecret"]);
  if ("error" in found) return unresolved(report, "secretRef", found.error);
  const source = { case: "secret" as const, value: found.texts };
  return { case: "cloudB", value: create(CloudBCredentialSchema, { source }) };
};
