/**
 * Shares the parts that all kinds of authentication have: whether a credential is required, and where it is looked up.
 */
import type { CredentialLocation as ApiLocation, CredentialPlace } from "../../../../generated/types/common.ts";
import {
  AuthenticationMode,
  CredentialLocationSchema,
  type CredentialLocation,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { checkExpression, type UnitContext } from "./unit.ts";
import { create } from "@bufbuild/protobuf";

export const AUTHENTICATION_MODES: Readonly<Record<"Strict" | "Optional" | "Permissive", AuthenticationMode>> = {
  Strict: AuthenticationMode.STRICT,
  Optional: AuthenticationMode.OPTIONAL,
  Permissive: AuthenticationMode.PERMISSIVE,
};

/**
 * Returns where the credential is looked up.
 * @param path field path of the location
 * @param scheme the scheme in the Authorization header, which is used when the policy names no location
 */
export function credentialLocation(
  location: ApiLocation | undefined,
  path: string,
  scheme: "Basic" | "Bearer",
  context: UnitContext,
): CredentialLocation {
  const place = location ?? { header: { name: "Authorization", prefix: `${scheme} ` } };
  checkExpression(place.expression, `${path}.expression`, context);
  return translateLocation(place);
}

/**
 * Translates the place of a credential in a request. Admission guarantees that exactly one member is set; with none
 * set, the result is an empty expression, which writes nothing and matches nothing.
 */
export function translateLocation(location: ApiLocation | CredentialPlace): CredentialLocation {
  const { header, queryParameter, cookie } = location;
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
  const expression = "expression" in location ? (location.expression ?? "") : "";
  return create(CredentialLocationSchema, { location: { case: "expression", value: expression } });
}
