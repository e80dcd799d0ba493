/**
 * Translates `auth.cloudA` of a backend block; `auth.ts` uses it. Keys that cannot be resolved become empty ones, with
 * which every request fails before it is sent.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { CloudAAuth } from "../../../../generated/types/backend-auth.ts";
import {
  CloudACredentialSchema,
  CloudAKeysSchema,
  type CloudACredential,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { SecretReader } from "../../references/secrets.ts";
import type { Report } from "../../shared/report.ts";

export function translateCloudA(auth: CloudAAuth, secrets: SecretReader, report: Report): CloudACredential {
  const { serviceName = "", region = "", secretRef, assumeRole } = auth;
  const credential = create(CloudACredentialSchema, { service: serviceName, region });
  if (secretRef !== undefined) credential.keys = create(CloudAKeysSchema, readKeys(secretRef, secrets, report));
  if (assumeRole === undefined) return credential;
  // The identity of the machine must not take the place of the role.
  report("assumeRole", "this version of gwproxy does not serve it; requests are refused");
  credential.keys = create(CloudAKeysSchema);
  return credential;
}

function readKeys(
  ref: NonNullable<CloudAAuth["secretRef"]>,
  secrets: SecretReader,
  report: Report,
): MessageInitShape<typeof CloudAKeysSchema> {
  const entries = secrets.secret(ref);
  if (typeof entries === "string") {
    report("secretRef", entries);
    return {};
  }
  const textOf = (entry: string): string => entries.get(entry) ?? "";
  const keys = { accessKeyId: textOf("accessKey"), secretAccessKey: textOf("secretKey") };
  for (const entry of ["accessKey", "secretKey"])
    if (textOf(entry) === "") report("secretRef", `Secret ${ref.name} has no text in entry ${entry}`);
  return { ...keys, sessionToken: textOf("sessionToken") };
}
