/**
 * TLS options for upstreams that are called with the workload identity (SPIFFE, X.509-SVID): the certificate comes from
 * the Workload API for each new connection. The server has to be a workload that its own trust domain vouches for; its
 * host name is not checked. `tlsOptions` uses it.
 */
import {
  createSecureContext,
  type ConnectionOptions,
  type DetailedPeerCertificate,
  type PeerCertificate,
  type SecureContext,
} from "node:tls";
import type { BackendTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { WorkloadIdentity } from "../../spiffe/identity.ts";
import { chainOf, verifyPeer } from "../../spiffe/peer.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import { checkNames } from "./subject-names.ts";

const contexts = new WeakMap<WorkloadIdentity, SecureContext>();

/** @throws ProxyError upstream_unreachable when there is no identity */
export function identityOptions(tls: BackendTls, identities: IdentitySource | undefined): ConnectionOptions {
  const identity = identities?.current() ?? "no workload API is asked here";
  if (typeof identity === "string")
    throw new ProxyError("upstream_unreachable", { detail: `no identity to show: ${identity}` });
  return {
    secureContext: contextOf(identity),
    rejectUnauthorized: true,
    checkServerIdentity: (_host, certificate) => checkWorkload(tls, identity, certificate),
  };
}

function contextOf(identity: WorkloadIdentity): SecureContext {
  let context = contexts.get(identity);
  if (context !== undefined) return context;
  context = createSecureContext({
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.3",
    cert: identity.certificatePem,
    key: identity.privateKeyPem,
    ca: [...identity.authoritiesPem],
    // Each certificate of a bundle is a trust anchor, even one that another certificate has signed.
    allowPartialTrustChain: true,
  });
  contexts.set(identity, context);
  return context;
}

function checkWorkload(tls: BackendTls, identity: WorkloadIdentity, shown: PeerCertificate): Error | undefined {
  // Node passes the certificate with its whole chain here, which its type does not show.
  const peer = verifyPeer(chainOf(shown as DetailedPeerCertificate), identity, Date.now());
  if (typeof peer === "string") return new Error(peer);
  if (tls.subjectAltNames.length === 0 || checkNames(tls, shown) === undefined) return undefined;
  return new Error(`the server is ${peer.text}, which has none of the required subject names`);
}
