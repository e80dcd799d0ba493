/**
 * Adds the secret of the operator's client to token requests (RFC 6749 §2.3.1). `issuer.ts` uses it.
 *
 * The secret authenticates whoever the gateway adds it for, so it is added only where the request proves a user's
 * consent by itself: with an authorization code or a refresh token. A wider rule, such as one that covers client
 * credentials, would let strangers mint tokens.
 */
import type { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../exchange/errors.ts";

const GRANTS: ReadonlySet<string | undefined> = new Set(["authorization_code", "refresh_token"]);
const CREDENTIALS = ["client_secret", "client_assertion", "client_assertion_type"];

/**
 * @returns the body to send: with the secret, or unchanged where the rule does not apply
 * @throws ProxyError credential_unavailable when the secret could not be resolved
 */
export function withSecret(
  { headers, body }: { readonly headers: HeaderList; readonly body: Buffer },
  { clientId, clientSecret }: { readonly clientId: string; readonly clientSecret: string },
): Buffer {
  const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/x-www-form-urlencoded" || headers.get("authorization") !== undefined) return body;
  const form = new URLSearchParams(body.toString());
  const isOurs = only(form, "client_id") === clientId && clientId !== "" && GRANTS.has(only(form, "grant_type"));
  if (!isOurs || CREDENTIALS.some((name) => form.has(name))) return body;
  if (clientSecret === "") throw new ProxyError("credential_unavailable", { detail: "the client secret is missing" });
  form.set("client_secret", clientSecret);
  // Printed anew: the issuer then reads the same parameters that were checked here, whatever separators it knows.
  return Buffer.from(form.toString());
}

/** Returns the value of a parameter that occurs once; parameters must not be repeated (RFC 6749 §3.2). */
function only(form: URLSearchParams, name: string): string | undefined {
  const values = form.getAll(name);
  return values.length === 1 ? values[0] : undefined;
}
