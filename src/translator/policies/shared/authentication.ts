/** What the kinds of authentication have in common: whether a credential must be there, and where it is looked for. */
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
 * @param path of the location
 * @param scheme with which the Authorization header is read when the policy names no place
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
