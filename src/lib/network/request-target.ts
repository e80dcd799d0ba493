/** Parts of the authority and the target of a request (RFC 9110 §7.1), for routing, expressions and reports. */

/** Returns the path of a request target, without the query. */
export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

/**
 * Decodes a name or value of a query (application/x-www-form-urlencoded). Text whose percent-encoding is not valid
 * UTF-8 is returned as it is, because clients may send any bytes.
 */
export function decodeQueryText(text: string): string {
  if (!text.includes("%") && !text.includes("+")) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** Normalises an authority to lower case without port and trailing dot; brackets of IPv6 stay. */
export function hostOf(authority: string): string {
  const colon = authority.startsWith("[") ? authority.indexOf(":", authority.indexOf("]")) : authority.indexOf(":");
  const host = colon < 0 ? authority : authority.slice(0, colon);
  const plain = host.endsWith(".") ? host.slice(0, -1) : host;
  return plain.toLowerCase();
}
