/**
 * Asks the API server whom a bearer token belongs to (TokenReview, authentication.k8s.io/v1). The controller
 * authenticates its xDS clients with it.
 */
import type { KubernetesClient } from "./client.ts";

export interface ReviewedToken {
  /** Name of the form "system:serviceaccount:NAMESPACE:NAME" for a service account. */
  readonly username: string;
}

/**
 * @param audience the audience for which the token must have been issued
 * @returns undefined when the token is not valid for the audience
 * @throws ApiError when the review failed; the caller must then refuse the client
 */
export async function reviewToken(
  client: KubernetesClient,
  token: string,
  audience: string,
): Promise<ReviewedToken | undefined> {
  const review = (await client.request({
    method: "POST",
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token, audiences: [audience] } },
  })) as Review; // every member is checked below
  const { authenticated, audiences, user } = review.status ?? {};
  // A server without support for audiences leaves the list out; its answer may then be about another audience.
  const isForUs = Array.isArray(audiences) && audiences.includes(audience);
  if (authenticated !== true || !isForUs || typeof user?.username !== "string") return undefined;
  return { username: user.username };
}

interface Review {
  readonly status?: {
    readonly authenticated?: unknown;
    readonly audiences?: unknown;
    readonly user?: { readonly username?: unknown };
  };
}
