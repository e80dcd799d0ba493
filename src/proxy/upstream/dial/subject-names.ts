/**
 * Checks a certificate against configured subject names, which replace the check of the host name (`subjectAltNames` of
 * BackendTLSPolicy, GEP-1897). One match is enough. Both kinds of TLS options use it.
 */
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { BackendTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

/** @returns the error; undefined when the certificate holds one of the names */
export function checkNames(
  { subjectAltNames }: Pick<BackendTls, "subjectAltNames">,
  certificate: PeerCertificate,
): Error | undefined {
  const listed = certificate.subjectaltname ?? "";
  // A quoted entry can contain separators and pass for several names. No certificate that we trust needs one.
  const names = new Set(listed.includes('"') ? [] : listed.split(", "));
  for (const wanted of subjectAltNames) {
    if (wanted.includes("://") ? names.has(`URI:${wanted}`) : checkServerIdentity(wanted, certificate) === undefined)
      return undefined;
  }
  return new Error("the certificate holds none of the required subject names");
}
