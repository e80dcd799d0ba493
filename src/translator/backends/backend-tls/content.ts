/**
 * Translates the content of one BackendTLSPolicy (GEP-1897): the CA certificates to trust, the SNI, and the accepted
 * subject alternative names. `declare.ts` uses it.
 *
 * CA certificates that cannot be used are left out. When no usable one remains, the backend trusts nothing and every
 * handshake fails, so that no connection is less safe than the policy intended.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendTLSPolicy } from "../../../../generated/types/gateway-api/backendtlspolicy.ts";
import { BackendTlsSchema, type BackendTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../../api/conditions.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import type { ConditionError } from "../../shared/views.ts";
import { certificatesIn } from "../../references/pem.ts";
import { SecretReader, type SecretCollections } from "../../references/secrets.ts";

export interface TlsPolicyContent {
  readonly tls: BackendTls;
  /** Explains why no connection can be made; undefined when connections are possible. */
  readonly error: ConditionError | undefined;
  /** Reports the first CA reference that cannot be resolved, with its field path; the others may still work. */
  readonly refError: (ConditionError & { readonly path: string }) | undefined;
}

const AUTHORITY_ENTRY = "ca.crt";

type Validation = BackendTLSPolicy["spec"]["validation"];

export function translateTlsPolicy(
  { metadata, spec: { validation } }: BackendTLSPolicy,
  collections: SecretCollections,
  read: Read,
): TlsPolicyContent {
  const secrets = new SecretReader(collections, read, metadata.namespace ?? "");
  const tls = create(BackendTlsSchema, { sni: validation.hostname, subjectAltNames: namesOf(validation) });
  const refs = validation.caCertificateRefs ?? [];
  if (refs.length === 0) {
    const known = validation.wellKnownCACertificates;
    if (known === "System") return { tls, error: undefined, refError: undefined };
    tls.trustNothing = true;
    const message = `wellKnownCACertificates: only System is known, not ${known ?? "nothing"}`;
    return { tls, error: { reason: Reason.Invalid, message }, refError: undefined };
  }
  const authorities = refs.map((ref, at) => authority(ref, `spec.validation.caCertificateRefs[${at}]`, secrets));
  tls.caPem = authorities.map((found) => (typeof found === "string" ? found : "")).join("");
  const refError = authorities.find((found) => typeof found !== "string");
  if (tls.caPem !== "") return { tls, error: undefined, refError };
  tls.trustNothing = true;
  const error = { reason: Reason.NoValidCACertificate, message: "none of the authorities can be used" };
  return { tls, error, refError };
}

/** Returns an empty list when the policy lists no names; the certificate must then match the host name itself. */
function namesOf({ subjectAltNames = [] }: Validation): string[] {
  return subjectAltNames.map(({ type, hostname = "", uri = "" }) => (type === "URI" ? uri : hostname));
}

/** @returns the PEM certificates of one referenced ConfigMap, or the error of the reference */
function authority(
  { group, kind, name }: NonNullable<Validation["caCertificateRefs"]>[number],
  path: string,
  secrets: SecretReader,
): string | (ConditionError & { readonly path: string }) {
  if (group !== "" || kind !== "ConfigMap")
    return { path, reason: Reason.InvalidKind, message: `authorities come from ConfigMaps, not from ${kind}` };
  const entries = secrets.configMap(name);
  const error = (message: string) => ({ path, reason: Reason.InvalidCACertificateRef, message });
  if (typeof entries === "string") return error(entries);
  const pem = certificatesIn(entries.get(AUTHORITY_ENTRY));
  return pem === "" ? error(`ConfigMap ${name} has no PEM certificate in ${AUTHORITY_ENTRY}`) : pem;
}
