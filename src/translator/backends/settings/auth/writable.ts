/**
 * Tells what cannot be written into a request as a credential. It is found here, where the Secret and its entry are known,
 * and not only when a request fails; kinds whose credential is known beforehand use it.
 */
import type { CredentialLocation } from "../../../../../generated/types/common.ts";

/** Line breaks would end a header field (RFC 9110 §5.5). */
const CONTROL = /[^\t\x20-\x7e\u0080-\uffff]/;
/** Fields that the proxy writes itself for each connection or body: a credential in them would not arrive. */
const OWN_FIELD =
  /^(?:connection|content-length|expect|host|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/i;

/** @returns what is wrong with the place, and where below it */
export function findPlaceFault({
  header,
}: CredentialLocation): { readonly path: string; readonly reason: string } | undefined {
  if (header === undefined) return undefined;
  if (OWN_FIELD.test(header.name))
    return { path: "header.name", reason: `the proxy writes the header ${header.name} itself; use another one` };
  if (CONTROL.test(header.prefix ?? ""))
    return { path: "header.prefix", reason: "the prefix has a character that a header cannot hold" };
  return undefined;
}

/** @returns what is wrong with a credential for its place; it never quotes the credential */
export function findValueFault(value: string, location: CredentialLocation | undefined): string | undefined {
  if (location?.queryParameter !== undefined) return undefined;
  if (CONTROL.test(value)) return "has a character that a header cannot hold, such as a line break";
  return location?.cookie !== undefined && value.includes(";") ? "has a semicolon, which ends a cookie" : undefined;
}

/** @returns what is wrong with a text that becomes part of a signature or of a header about it */
export function findKeyFault(text: string): string | undefined {
  return /^[\x21-\x7e]*$/.test(text) ? undefined : "has a character that is not visible ASCII";
}
