/** Says where an `auth` block stands, for reports: the object, and the field as users write it. */
import type { Backend, BackendAuth } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { CompiledPolicy } from "../../policies/policy-set.ts";
import { printPolicy } from "../../policies/policy-name.ts";
import { backendName } from "../backend-name.ts";

/**
 * @param policies those that may hold the block
 * @param section name of a provider, "" for none
 */
export function placeOfAuth(
  auth: BackendAuth | undefined,
  policies: readonly CompiledPolicy[],
  message: Backend,
  section: string,
): string {
  const policy = policies.find(({ backend }) => backend !== undefined && backend.auth === auth);
  if (policy !== undefined) return printPolicy(policy.key, "spec.backend.auth");
  if (message.settings?.auth === auth) return `${printObject(message)} spec.policies.auth`;
  return `${printObject(message)} ${section} policies.auth`;
}

export function printObject({ object, key }: Backend): string {
  return `${object?.kind ?? "Backend"} ${backendName(key)}`;
}
