/** Finds the token of the client that a JWT policy has verified for the request, also where it was removed from it. */
import { Secret } from "../../../../cel/values.ts";
import { isRecord } from "../../../../lib/is-record.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";

export function verifiedToken(caller: AuthCaller): string | undefined {
  const claims = verifiedClaims(caller);
  const token = claims?.["rawToken"];
  return token instanceof Secret ? token.reveal() : undefined;
}

/** Returns the claims of that token, with the token itself as `rawToken`. */
function verifiedClaims(caller: AuthCaller): Readonly<Record<string, unknown>> | undefined {
  const claims = caller.root?.("jwt");
  return isRecord(claims) ? claims : undefined;
}
