/**
 * Shares the parts that all kinds of authentication have: whether a credential is required, and where it is looked up.
 */
import type { CredentialLocation as ApiLocation } from "../../../../generated/types/common.ts";
import { AuthenticationMode, type CredentialLocation } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { translateLocation } from "../../backends/settings/auth.ts";
import { checkExpression, type UnitContext } from "./unit.ts";

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
