/** Decodes the body of a traced request for reading. */

const MAX_SHOWN = 64 * 1024;

/**
 * Returns the text of a body, shortened; a byte that is not UTF-8 becomes U+FFFD.
 * @param body base64
 */
export function decodeBody(body: unknown): string {
  if (typeof body !== "string") return "";
  let bytes: Uint8Array;
  try {
    bytes = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
  } catch {
    return body.slice(0, MAX_SHOWN);
  }
  const text = new TextDecoder().decode(bytes.subarray(0, MAX_SHOWN));
  return bytes.length > MAX_SHOWN ? `${text}\n… ${bytes.length - MAX_SHOWN} more bytes` : text;
}
