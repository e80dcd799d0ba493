/** Translates `auth.cloudA`: the keys that requests are signed with. */
import { create } from "@bufbuild/protobuf";
import { CloudACredentialSchema, CloudAKeysSchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { unresolved, type Kind, type TranslateKind } from "./auth-kind.ts";

export const translateCloudA: TranslateKind<"cloudA"> = (auth, _block, { secrets, report }): Kind => {
  const { serviceName = "", region = "", secretRef, assumeRole } = auth;
  if (assumeRole !== undefined)
    return unresolved(report, "assumeRole", "this version of gwproxy does not serve it; requests are refused");
  const credential = create(CloudACredentialSchema, { service: serviceName, region });
  if (secretRef === undefined) return { case: "cloudA", value: credential };
  const found = secrets.texts(secretRef, ["accessKey", "secretKey"], ["sessionToken"]);
  if ("error" in found) return unresolved(report, "secretRef", found.error);
  const { accessKey, secretKey, sessionToken } = found.texts;
  credential.keys = create(CloudAKeysSchema, {
    accessKeyId: accessKey,
    secretAccessKey: secretKey,
    sessionToken,
  });
  return { case: "cloudA", value: credential };
};
