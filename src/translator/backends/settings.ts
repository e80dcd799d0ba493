/**
 * `tls` and `auth` of a backend block. A credential or certificate that cannot be resolved is reported and translated
 * to its failing form, so that nothing falls back to an ambient one; the caller decides whether to send it.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendAuth } from "../../../generated/types/backend-auth.ts";
import type { BackendTLS } from "../../../generated/types/backend-policies.ts";
import type { CredentialLocation as ApiLocation } from "../../../generated/types/common.ts";
import {
  BackendSettingsSchema,
  BackendTlsSchema,
  CredentialLocationSchema,
  CredentialSchema,
  VerifyMode,
  type BackendSettings,
  type BackendTls,
  type Credential,
  type CredentialLocation,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { certificatesIn, isPrivateKey } from "../pem.ts";
import type { SecretReader } from "../secrets.ts";

export type Report = (path: string, message: string) => void;

const DEFAULT_ENTRY = "Authorization";

/** @returns undefined when the block says nothing */
export function translateSettings(
  block: { readonly tls?: BackendTLS; readonly auth?: BackendAuth } | undefined,
  secrets: SecretReader,
  report: Report,
): BackendSettings | undefined {
  const tls = block?.tls === undefined ? undefined : translateTls(block.tls, secrets, within(report, "tls"));
  const auth = block?.auth === undefined ? undefined : translateAuth(block.auth, secrets, within(report, "auth"));
  if (tls === undefined && auth === undefined) return undefined;
  return create(BackendSettingsSchema, {
    ...(tls === undefined ? {} : { tls }),
    ...(auth === undefined ? {} : { auth }),
  });
}

export function within(report: Report, prefix: string): Report {
  return (path, message) => report(path === "" ? prefix : `${prefix}.${path}`, message);
}

function translateTls(tls: BackendTLS, secrets: SecretReader, report: Report): BackendTls {
  const client = clientCertificate(tls, secrets, report);
  const ca = authorities(tls, secrets, report);
  return create(BackendTlsSchema, {
    sni: tls.sni ?? "",
    caPem: ca.pem ?? client.ca,
    // Without its client certificate the proxy would speak to the upstream as nobody: the handshake must fail instead.
    trustNothing: ca.broken || client.broken,
    certificatePem: client.certificate,
    privateKeyPem: client.key,
    verify: verifyMode(tls.insecureSkipVerify),
    subjectAltNames: [...(tls.verifySubjectAltNames ?? [])],
    alpn: [...(tls.alpnProtocols ?? [])],
    keyExchangeGroups: [...(tls.keyExchangeGroups ?? [])],
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
  const problem = `${ref.kind ?? "ConfigMap"} ${ref.name} has no PEM certificate in entry ${key}`;
  report("caCertificateRefs[0]", typeof entries === "string" ? entries : problem);
  return { pem: "", broken: true };
}

function translateAuth(auth: BackendAuth, secrets: SecretReader, report: Report): Credential | undefined {
  const location = auth.location === undefined ? {} : { location: translateLocation(auth.location) };
  if (auth.secretRef === undefined) {
    if (auth.key === undefined || auth.key === "") return undefined; // an empty key is an absent one
    return create(CredentialSchema, { value: auth.key, ...location });
  }
  const { key, ...ref } = auth.secretRef;
  const found = secrets.entry(ref, key ?? DEFAULT_ENTRY);
  if ("problem" in found) {
    report("secretRef", found.problem);
    return create(CredentialSchema, { value: "", ...location });
  }
  // The default placement adds "Bearer " itself; an explicit key is used as it stands.
  const value = key === undefined ? found.value.replace(/^Bearer /, "").trim() : found.value;
  if (value === "") report("secretRef", `Secret ${ref.name} has no credential in entry ${DEFAULT_ENTRY}`);
  return create(CredentialSchema, { value, ...location });
}

/** Exactly one member is set, which admission guarantees; without any the value goes nowhere and nothing matches. */
export function translateLocation(location: ApiLocation): CredentialLocation {
  const { header, queryParameter, cookie, expression } = location;
  if (header !== undefined)
    return create(CredentialLocationSchema, {
      location: {
        case: "header",
        value: { $typeName: "gwproxy.config.v1.HeaderLocation", name: header.name, prefix: header.prefix ?? "" },
      },
    });
  if (queryParameter !== undefined)
    return create(CredentialLocationSchema, { location: { case: "queryParameter", value: queryParameter.name } });
  if (cookie !== undefined)
    return create(CredentialLocationSchema, { location: { case: "cookie", value: cookie.name } });
  return create(CredentialLocationSchema, { location: { case: "expression", value: expression ?? "" } });
}
