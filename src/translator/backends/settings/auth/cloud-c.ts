/** Translates `auth.cloudC`: the type of the token, and the credential file that it is fetched with. */
import { create } from "@bufbuild/protobuf";
import { CloudCCredentialSchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseJsonObject } from "../../../../lib/parse-json-object.ts";
import { unresolved, type TranslateKind } from "./auth-kind.ts";

const ACCESS_TYPES = ["service_account", "authorized_user", "impersonated_service_account", "external_account"];
const ID_TYPES = ["service_account", "authorized_user", "impersonated_service_account", "gdch_service_account"];

export const translateCloudC: TranslateKind<"cloudC"> = ({ type, audience = "", secretRef }, _block, context) => {
  const { secrets, report } = context;
  const value = create(CloudCCredentialSchema, { idToken: type === "IdToken", audience });
  if (secretRef === undefined) return { case: "cloudC", value };
  const { key = "credentials.json", ...ref } = secretRef;
  const found = secrets.entry(ref, key);
  if ("error" in found) return unresolved(report, "secretRef", found.error);
  const error = findFileError(found.value, value.idToken);
  if (error !== undefined) return unresolved(report, "secretRef", `entry ${key} of Secret ${ref.name} ${error}`);
  value.credentialsJson = found.value;
  return { case: "cloudC", value };
};

/** @returns what is wrong, without quoting the text */
function findFileError(text: string, idToken: boolean): string | undefined {
  const file = parseJsonObject(text);
  if (file === undefined) return "is not a JSON object";
  const { type } = file;
  const types = idToken ? ID_TYPES : ACCESS_TYPES;
  if (typeof type !== "string" || !types.includes(type)) return `has none of the types ${types.join(", ")}`;
  const source = file["credential_source"];
  if (typeof source === "object" && source !== null && "executable" in source) return "names a program";
  return undefined;
}
