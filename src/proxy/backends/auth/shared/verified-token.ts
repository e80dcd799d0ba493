/** Finds the token of the client that a JWT policy has verified for the request, also where it was removed from it. */
import { isRecord } from "../../../../lib/is-record.ts";
import { VerifiedToken } from "../../../policies/shared/verified-token.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";

export function verifiedToken(caller: AuthCaller): string | undefined {
  return findVerified(caller)?.token.reveal();
}

/** Returns that token and its claims. */
export function findVerified(
  caller: AuthCaller,
): { readonly token: VerifiedToken; readonly claims: Readonly<Record<string, unknown>> } | undefined {
  const claims = caller.root?.("jwt");
  if (!isRecord(claims)) return undefined;
  const { rawToken: token, ...rest } = claims;
  return token instanceof VerifiedToken ? { token, claims: rest } : undefined;
}
