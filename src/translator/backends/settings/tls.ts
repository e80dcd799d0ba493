/**
 * Translates `tls` of a backend block; `settings.ts` uses it. A reference that cannot be resolved makes the backend
 * trust nothing: no handshake falls back to the system's root certificates.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendTLS } from "../../../../generated/types/backend-policies.ts";
import { BackendTlsSchema, VerifyMode, type BackendTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { certificatesIn, isPrivateKey } from "../../references/pem.ts";
import type { SecretReader } from "../../references/secrets.ts";
import type { Report } from "../../shared/report.ts";

export function translateTls(tls: BackendTLS, secrets: SecretReader, report: Report): BackendTls {
  const client = clientCertificate(tls, secrets, report);
  const ca = authorities(tls, secrets, report);
  return create(BackendTlsSchema, {
    sni: tls.sni ?? "",
    caPem: ca.pem ?? client.ca,
    // Without its client certificate the proxy would connect unauthenticated, so the handshake must fail instead.
    trustNothing: ca.broken || client.broken,
    certificatePem: client.certificate,
    privateKeyPem: client.key,
    verify: verifyMode(tls.insecureSkipVerify),
    subjectAltNames: [...(tls.verifySubjectAltNames ?? [])],
    alpn: [...(tls.alpnProtocols ?? [])],
    keyExchangeGroups: [...(tls.keyExchangeGroups ?? [])],
    spiffe: tls.certificateSource === "SPIFFE",
  });
}

function verifyMode(skip: BackendTLS["insecureSkipVerify"]): VerifyMode {
  if (skip === "All") return VerifyMode.NONE;
  return skip === "Hostname" ? VerifyMode.CHAIN_ONLY : VerifyMode.UNSPECIFIED;
}

interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
  readonly ca: string;
  readonly broken: boolean;
}

function clientCertificate(
  { mtlsCertificateRef }: BackendTLS,
  secrets: SecretReader,
  report: Report,
): ClientCertificate {
  const none = { certificate: "", key: "", ca: "", broken: false };
  const ref = mtlsCertificateRef?.[0];
  if (ref === undefined) return none;
  const path = "mtlsCertificateRef[0]";
  const entries = secrets.secret(ref);
  if (typeof entries === "string") {
    report(path, entries);
    return { ...none, broken: true };
  }
  const certificate = certificatesIn(entries.get("tls.crt"));
  const key = entries.get("tls.key") ?? "";
  if (certificate === "" || !isPrivateKey(key)) {
    report(path, `Secret ${ref.name} needs a PEM certificate in tls.crt and its PEM private key in tls.key`);
    return { ...none, broken: true };
  }
  return { certificate, key, ca: certificatesIn(entries.get("ca.cert")), broken: false };
}

function authorities(
  { caCertificateRefs }: BackendTLS,
  secrets: SecretReader,
  report: Report,
): { readonly pem: string | undefined; readonly broken: boolean } {
  const ref = caCertificateRefs?.[0];
  if (ref === undefined) return { pem: undefined, broken: false };
  const key = ref.key ?? "ca.crt";
  const entries = ref.kind === "Secret" ? secrets.secret({ name: ref.name }) : secrets.configMap(ref.name);
  const pem = typeof entries === "string" ? "" : certificatesIn(entries.get(key));
  if (pem !== "") return { pem, broken: false };
  const message = `${ref.kind ?? "ConfigMap"} ${ref.name} has no PEM certificate in entry ${key}`;
  report("caCertificateRefs[0]", typeof entries === "string" ? entries : message);
  return { pem: "", broken: true };
}
