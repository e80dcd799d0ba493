/**
 * Who may follow the configuration of a Gateway: its own data plane, known by its service account, which bears the
 * Gateway's name (spec controller, xDS resource model). Configuration holds credentials, so nobody else gets it.
 */
import type { AuthorizeStream } from "../xds/server/discovery.ts";
import { dataPlaneName, TOKEN_AUDIENCE } from "../api/data-plane.ts";

/**
 * @param review who a token made for the audience belongs to; undefined when it is not valid
 */
export function authorizeByToken(
  review: (token: string, audience: string) => Promise<{ readonly username: string } | undefined>,
): AuthorizeStream {
  return async ({ gateway, token }) => {
    const account = serviceAccountOf(gateway);
    if (token === undefined)
      return { allowed: false, reason: `a token of ${account} for the audience ${TOKEN_AUDIENCE} is needed` };
    const reviewed = await review(token, TOKEN_AUDIENCE);
    if (reviewed === undefined) return { allowed: false, reason: `the token is not valid for ${TOKEN_AUDIENCE}` };
    if (reviewed.username === account) return { allowed: true };
    return { allowed: false, reason: `${reviewed.username} may not follow Gateway ${gateway}, ${account} may` };
  };
}

/** @param gateway "namespace/name" */
function serviceAccountOf(gateway: string): string {
  const [namespace = "", name = ""] = gateway.split("/");
  return `system:serviceaccount:${namespace}:${dataPlaneName(name)}`;
}
