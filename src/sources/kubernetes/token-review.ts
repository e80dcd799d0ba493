/** Asks the API server who a bearer token belongs to (TokenReview, authentication.k8s.io/v1). */
import type { KubernetesClient } from "./client.ts";

export interface ReviewedToken {
  /** "system:serviceaccount:NAMESPACE:NAME" for a service account. */
  readonly username: string;
}

/**
 * @param audience what the token must have been made for
 * @returns undefined when the token is not valid for the audience
 * @throws ApiError when the review itself could not be done: then nothing is known, and nobody is let in
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
  // A server that knows nothing of audiences leaves the list out; its word is then about another audience than ours.
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
