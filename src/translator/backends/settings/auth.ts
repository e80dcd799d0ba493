/** `auth` of a backend block. A credential that cannot be resolved becomes an empty one, so that the upstream refuses. */
import { create } from "@bufbuild/protobuf";
import type { BackendAuth } from "../../../../generated/types/backend-auth.ts";
import type { CredentialLocation as ApiLocation } from "../../../../generated/types/common.ts";
import {
  CredentialLocationSchema,
  CredentialSchema,
  type Credential,
  type CredentialLocation,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { SecretReader } from "../../references/secrets.ts";
import type { Report } from "./settings.ts";

const DEFAULT_ENTRY = "Authorization";

export function translateAuth(auth: BackendAuth, secrets: SecretReader, report: Report): Credential | undefined {
  const location = auth.location === undefined ? {} : { location: translateLocation(auth.location) };
  if (auth.secretRef === undefined) {
    if (auth.key === undefined || auth.key === "") return undefined; // an empty key is an absent one
    return create(CredentialSchema, { value: auth.key, ...location });
  }
  const { key, ...ref } = auth.secretRef;
  const found = secrets.entry(ref, key ?? DEFAULT_ENTRY);
  if ("problem" in found) {
    report("secretRef", found.problem);
    return create(CredentialSchema, { value: "", ...location });
  }
  // The default placement adds "Bearer " itself; an explicit key is used as it stands.
  const value = key === undefined ? found.value.replace(/^Bearer /, "").trim() : found.value;
  if (value === "") report("secretRef", `Secret ${ref.name} has no credential in entry ${DEFAULT_ENTRY}`);
  return create(CredentialSchema, { value, ...location });
}

/** Exactly one member is set, which admission guarantees; without any the value goes nowhere and nothing matches. */
export function translateLocation(location: ApiLocation): CredentialLocation {
  const { header, queryParameter, cookie, expression } = location;
  if (header !== undefined)
    return create(CredentialLocationSchema, {
      location: {
        case: "header",
        value: { $typeName: "gwproxy.config.v1.HeaderLocation", name: header.name, prefix: header.prefix ?? "" },
      },
    });
  if (queryParameter !== undefined)
    return create(CredentialLocationSchema, { location: { case: "queryParameter", value: queryParameter.name } });
  if (cookie !== undefined)
    return create(CredentialLocationSchema, { location: { case: "cookie", value: cookie.name } });
  return create(CredentialLocationSchema, { location: { case: "expression", value: expression ?? "" } });
}
