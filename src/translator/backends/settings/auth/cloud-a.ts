/** Translates `auth.cloudA`: the keys that requests are signed with, or the role that supplies them. */
import { create } from "@bufbuild/protobuf";
import type { AssumeRole } from "../../../../../generated/types/backend-auth.ts";
import {
  AssumedRoleSchema,
  CloudACredentialSchema,
  CloudAKeysSchema,
  type AssumedRole,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { phaseOfBackend } from "../../../policies/shared/expression-phase.ts";
import { checkExpression } from "../../../policies/shared/unit.ts";
import { within, type Report } from "../../../shared/report.ts";
import { unresolved, type Kind, type TranslateKind } from "./auth-kind.ts";
import { findKeyFault } from "./writable.ts";

export const translateCloudA: TranslateKind<"cloudA"> = (auth, _block, { secrets, report }): Kind => {
  const { serviceName = "", region = "", secretRef, assumeRole } = auth;
  for (const [name, text] of [
    ["serviceName", serviceName],
    ["region", region],
  ] as const)
    if (!/^[A-Za-z0-9._-]*$/.test(text)) return unresolved(report, name, `"${text}" is not a name of the cloud`);
  const credential = create(CloudACredentialSchema, { service: serviceName, region });
  if (assumeRole !== undefined) credential.role = translateRole(assumeRole, within(report, "assumeRole"));
  if (secretRef === undefined) return { case: "cloudA", value: credential };
  const found = secrets.texts(secretRef, ["accessKey", "secretKey"], ["sessionToken"]);
  if ("error" in found) return unresolved(report, "secretRef", found.error);
  const { accessKey, secretKey, sessionToken } = found.texts;
  for (const [entry, text] of Object.entries(found.texts)) {
    const fault = findKeyFault(text);
    if (fault !== undefined)
      return unresolved(report, "secretRef", `entry ${entry} of Secret ${secretRef.name} ${fault}`);
  }
  credential.keys = create(CloudAKeysSchema, {
    accessKeyId: accessKey,
    secretAccessKey: secretKey,
    sessionToken,
  });
  return { case: "cloudA", value: credential };
};

function translateRole(
  { roleArn, sessionName = "", sessionNameExpression, tags = [] }: AssumeRole,
  report: Report,
): AssumedRole {
  const checked = (text: string | undefined, path: string, name: string): string =>
    checkExpression(text, path, { report }, phaseOfBackend(`auth.cloudA.assumeRole.${name}`));
  return create(AssumedRoleSchema, {
    roleArn,
    sessionName,
    sessionNameExpression: checked(sessionNameExpression, "sessionNameExpression", "sessionNameExpression"),
    tags: tags.map(({ key, value = "", expression }, at) => ({
      key,
      value,
      expression: checked(expression, `tags[${at}].expression`, `tags[${at}].expression`),
    })),
  });
}
