/** The names that a certificate must hold one of, in place of the name of the host (backend-policies.md 4). */
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { BackendTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

/** @returns what is wrong */
export function checkNames(
  { subjectAltNames }: Pick<BackendTls, "subjectAltNames">,
  certificate: PeerCertificate,
): Error | undefined {
  const listed = certificate.subjectaltname ?? "";
  // Quoted entries hold separators of their own and could pass for several; no certificate we trust needs them.
  const names = new Set(listed.includes('"') ? [] : listed.split(", "));
  for (const wanted of subjectAltNames) {
    if (wanted.includes("://") ? names.has(`URI:${wanted}`) : checkServerIdentity(wanted, certificate) === undefined)
      return undefined;
  }
  return new Error("the certificate holds none of the required subject names");
}
