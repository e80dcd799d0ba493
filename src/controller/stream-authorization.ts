/**
 * Authorizes discovery streams: only the Gateway's own data plane may follow its configuration, because the
 * configuration holds credentials. `controller.ts` uses it. The data plane is identified by its service account, which
 * has the Gateway's name; its token is verified with the TokenReview API of Kubernetes (`authentication.k8s.io/v1`).
 */
import type { AuthorizeStream } from "../xds/server/discovery.ts";
import { dataPlaneName, TOKEN_AUDIENCE } from "../api/data-plane.ts";

/**
 * @param review returns the owner of a token that was issued for the audience, or undefined when the token is invalid
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
