/**
 * Percent-encodes all but the unreserved characters (RFC 3986 §2.3), as signatures of requests and SDKs do.
 * `encodeURIComponent` leaves `!'()*`, which RFC 3986 reserves.
 */
const UNRESERVED = /^[A-Za-z0-9._~-]*$/;

/** Encodes a text as UTF-8; a half of a surrogate pair becomes U+FFFD. */
export function percentEncode(text: string): string {
  if (UNRESERVED.test(text)) return text;
  return encodeURIComponent(text.toWellFormed()).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
