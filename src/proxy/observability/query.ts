/**
 * Masks the query of a request for reports. Parameters that are known to carry secrets, and those that a policy of the
 * listener reads credentials from, keep their names only, as the OpenTelemetry semantic conventions require for
 * `url.query`.
 */
import { decodeQueryText } from "../../lib/network/request-target.ts";

const SECRET_PARAMETERS: ReadonlySet<string> = new Set([
  // Signed URLs, as listed by the semantic conventions.
  "awsaccesskeyid",
  "signature",
  "sig",
  "x-goog-signature",
  "x-amz-signature",
  "x-amz-security-token",
  "x-amz-credential",
  // RFC 6750 §2.3, RFC 6749, OpenID Connect, and common names of services.
  "access_token",
  "refresh_token",
  "id_token",
  "token",
  "jwt",
  "code",
  "client_secret",
  "client_assertion",
  "assertion",
  "secret",
  "password",
  "passwd",
  "pwd",
  "auth",
  "authorization",
  "key",
  "api_key",
  "api-key",
  "apikey",
  "subscription-key",
  "x-api-key",
]);

const NONE: ReadonlySet<string> = new Set();

/**
 * @param credentials names in lower case
 * @returns undefined when there is no query
 */
export function queryOf(target: string, credentials: ReadonlySet<string> = NONE): string | undefined {
  const at = target.indexOf("?");
  if (at < 0 || at === target.length - 1) return undefined;
  return target
    .slice(at + 1)
    .split("&")
    .map((parameter) => withoutSecret(parameter, credentials))
    .join("&");
}

function withoutSecret(parameter: string, credentials: ReadonlySet<string>): string {
  const at = parameter.indexOf("=");
  if (at < 0) return parameter;
  const name = parameter.slice(0, at);
  // A policy does not read a name in another case, but its value is as likely a secret.
  const plain = decodeQueryText(name).toLowerCase();
  const isSecret = credentials.has(plain) || SECRET_PARAMETERS.has(plain);
  return isSecret ? `${name}=REDACTED` : parameter;
}
