/**
 * Validates the X.509-SVID response of the Workload API (SPIFFE Workload API §5) for WorkloadApi: our certificate and
 * key, and the trust bundles by trust domain.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { X509SVIDResponse } from "../../../generated/proto/spiffe/workload/workload_pb.ts";
import { valuesIn } from "../../lib/certificates/der.ts";
import { ConfigError, messageOf } from "../../lib/errors.ts";
import { leafIdOf, type Trust } from "./peer.ts";
import { parseTrustDomain, type SpiffeId } from "./spiffe-id.ts";

/** `bundles` holds those of the own trust domain and of federated ones. */
export interface WorkloadIdentity extends Trust {
  readonly id: SpiffeId;
  readonly expiresAtMs: number;
  readonly serialNumber: string;
  /** PEM, the leaf first. */
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  /** PEM of the CAs of all trust domains together: OpenSSL has no notion of trust domains. */
  readonly authoritiesPem: readonly string[];
  /** Errors with parts of the response that were left out as unusable. */
  readonly errors: readonly string[];
}

/** Uses the first of several identities, the default one (§5.3). @throws ConfigError when it cannot be used */
export function readIdentity({ svids, federatedBundles, crl }: X509SVIDResponse): WorkloadIdentity {
  const [svid] = svids;
  if (svid === undefined) throw new ConfigError("the answer holds no identity");
  const chain = certificatesIn("x509_svid", svid.x509Svid);
  const [leaf] = chain;
  if (leaf === undefined) throw new ConfigError("x509_svid is empty");
  const id = leafIdOf(leaf);
  if (typeof id === "string") throw new ConfigError(`x509_svid: ${id}`);
  if (id.text !== svid.spiffeId) throw new ConfigError(`x509_svid names ${id.text}, and not ${svid.spiffeId}`);
  const own = certificatesIn("bundle", svid.bundle);
  if (own.length === 0) throw new ConfigError("bundle is empty");
  const { bundles, errors } = readFederated(federatedBundles);
  bundles.set(id.trustDomain, own);
  if (crl.length > 0) errors.push("revocation lists are not read");
  const identity = {
    id,
    expiresAtMs: Date.parse(leaf.validTo),
    serialNumber: leaf.serialNumber,
    certificatePem: chain.map(String).join(""),
    privateKeyPem: privateKeyPem(leaf, svid.x509SvidKey),
    bundles,
    intermediates: chain.slice(1),
    authoritiesPem: [...bundles.values()].flat().map(String),
    errors,
  };
  checkUsable(identity);
  return identity;
}

/** Builds a TLS context once, so that an error shows here and not in the first handshake. */
function checkUsable({ certificatePem: cert, privateKeyPem: key, authoritiesPem }: WorkloadIdentity): void {
  try {
    createSecureContext({ cert, key, ca: [...authoritiesPem] });
  } catch (cause) {
    throw new ConfigError(`the TLS library refuses it: ${messageOf(cause)}`, { cause });
  }
}

function readFederated(federated: X509SVIDResponse["federatedBundles"]): {
  bundles: Map<string, readonly X509Certificate[]>;
  errors: string[];
} {
  const bundles = new Map<string, readonly X509Certificate[]>();
  const errors: string[] = [];
  for (const [name, der] of Object.entries(federated)) {
    const trustDomain = parseTrustDomain(name);
    try {
      if (trustDomain === undefined) throw new ConfigError("no trust domain");
      bundles.set(trustDomain, certificatesIn("its bundle", der));
    } catch (error) {
      // Skip an unusable federated bundle: that trust domain is not trusted, and the own one keeps working.
      errors.push(`federated_bundles ${name}: ${messageOf(error)}`);
    }
  }
  return { bundles, errors };
}

function certificatesIn(field: string, der: Uint8Array): X509Certificate[] {
  try {
    return valuesIn(Buffer.from(der)).map((each) => new X509Certificate(each));
  } catch (cause) {
    throw new ConfigError(`${field} holds no DER certificates: ${messageOf(cause)}`, { cause });
  }
}

/** Omits OpenSSL's reasons from the errors, because they may quote bytes of the key. */
function privateKeyPem(leaf: X509Certificate, der: Uint8Array): string {
  let fits = false;
  try {
    const key = createPrivateKey({ key: Buffer.from(der), format: "der", type: "pkcs8" });
    fits = leaf.checkPrivateKey(key);
    if (fits) return key.export({ type: "pkcs8", format: "pem" }).toString();
  } catch {
    throw new ConfigError("x509_svid_key is no private key in PKCS #8");
  }
  throw new ConfigError("x509_svid_key does not belong to the certificate");
}
