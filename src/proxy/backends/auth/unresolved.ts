/** What stands in for a block that could not be resolved: no request may leave with another credential, or with none. */
import { ProxyError } from "../../exchange/errors.ts";
import type { AuthKind, CompiledKind } from "./auth-kind.ts";

export const unresolved: AuthKind<"unresolved"> = { compile: ({ reason }) => refuseAll(reason) };

/** @param reason for the log */
export function refuseAll(reason: string): CompiledKind {
  return {
    place() {
      throw new ProxyError("credential_unavailable", { detail: reason });
    },
  };
}
