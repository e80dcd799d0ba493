/**
 * Reads `tls.options` of a listener: TLS versions and cipher suites, which override those of a policy, and the source
 * of the certificate. `listener-tls.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type { FrontendTls as ApiTls } from "../../../generated/types/frontend.ts";
import { TlsChoiceSchema, type TlsChoice } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

type Suite = NonNullable<ApiTls["cipherSuites"]>[number];

/** A record instead of a list, so that a suite added to the schema does not compile without an entry here. */
const SUITES: Readonly<Record<Suite, true>> = {
  TLS13_AES_256_GCM_SHA384: true,
  TLS13_AES_128_GCM_SHA256: true,
  TLS13_CHACHA20_POLY1305_SHA256: true,
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: true,
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: true,
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: true,
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: true,
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: true,
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: true,
};
const VERSIONS = ["1.2", "1.3"];
const PLAIN_SUITES = "cipherSuites";
const OWN_SUITES = "gwproxy.dev/cipher-suites";
const MIN_VERSION = "gwproxy.dev/min-protocol-version";
const MAX_VERSION = "gwproxy.dev/max-protocol-version";

export const CERTIFICATE_SOURCE = "gwproxy.dev/tls-certificate-source";

export interface CertificateSource {
  readonly source: "Inline" | "SPIFFE";
  /** The source comes from an annotation for all listeners of the object, and not from this listener. */
  readonly isDefault: boolean;
}

/**
 * @param annotations those of the object that the listener belongs to
 * @returns the source, or a text that explains the invalid value
 */
export function certificateSourceOf(
  options: Readonly<Record<string, string>> | undefined,
  annotations: Readonly<Record<string, string>> | undefined,
): CertificateSource | string {
  const own = options?.[CERTIFICATE_SOURCE];
  const source = own ?? annotations?.[CERTIFICATE_SOURCE] ?? "Inline";
  const isDefault = own === undefined;
  if (source === "Inline" || source === "SPIFFE") return { source, isDefault };
  const place = isDefault ? "annotation" : "tls.options";
  return `${place} ${CERTIFICATE_SOURCE}: "${source}" is not one of Inline, SPIFFE`;
}

/**
 * @returns the chosen versions and suites, undefined when the options choose none, or a text that names the invalid
 * option
 */
export function tlsChoiceOf(options: Readonly<Record<string, string>> | undefined): TlsChoice | string | undefined {
  const plain = options?.[PLAIN_SUITES];
  const own = options?.[OWN_SUITES];
  if (plain !== undefined && own !== undefined)
    return `tls.options has both ${PLAIN_SUITES} and ${OWN_SUITES}; keep one of them`;
  const text = plain ?? own;
  const cipherSuites = text?.split(",").map((suite) => suite.trim()) ?? [];
  const unknown = cipherSuites.find((suite) => !Object.hasOwn(SUITES, suite));
  if (unknown !== undefined)
    return `"${unknown}" in tls.options ${plain === undefined ? OWN_SUITES : PLAIN_SUITES} is not one of ${Object.keys(SUITES).join(", ")}`;
  const minVersion = options?.[MIN_VERSION] ?? "";
  const maxVersion = options?.[MAX_VERSION] ?? "";
  for (const [name, value] of [
    [MIN_VERSION, minVersion],
    [MAX_VERSION, maxVersion],
  ]) {
    if (value !== "" && !VERSIONS.includes(value as string)) return `tls.options ${name} must be 1.2 or 1.3`;
  }
  if (minVersion === "1.3" && maxVersion === "1.2")
    return `tls.options ${MIN_VERSION} may not be newer than ${MAX_VERSION}`;
  if (text === undefined && minVersion === "" && maxVersion === "") return undefined;
  return create(TlsChoiceSchema, { minVersion, maxVersion, cipherSuites });
}
