/**
 * Validates the certificate of a TLS peer as an X.509-SVID (SPIFFE X509-SVID §5); listeners and upstreams with SPIFFE
 * use it. The leaf has exactly one URI SAN, a SPIFFE ID, and a CA of that ID's trust domain signed its chain.
 *
 * OpenSSL has verified the chain already, but against the CAs of all trust domains together. Without the second check
 * here, a CA of one federated domain could issue identities of another. node hides the intermediates of a client whose
 * leaf is signed by one (nodejs/node#65579); such a chain cannot be attributed to a domain, so it is accepted only when
 * there is a single trust domain.
 */
import { X509Certificate } from "node:crypto";
import type { DetailedPeerCertificate } from "node:tls";
import { contentOf, membersOf } from "../../lib/certificates/der.ts";
import { messageOf } from "../../lib/errors.ts";
import { extensionOf } from "../../lib/certificates/x509.ts";
import { parseSpiffeId, type SpiffeId } from "./spiffe-id.ts";

/** The certificates that a peer is verified against. */
export interface Trust {
  /** CA certificates by trust domain. */
  readonly bundles: ReadonlyMap<string, readonly X509Certificate[]>;
  /** Intermediate certificates that may complete a chain; they are no trust anchors. */
  readonly intermediates: readonly X509Certificate[];
}

/** Longest chain that is followed. */
const MAX_CHAIN = 10;
const URI_TAG = 0x86;
const BOOLEAN_TAG = 0x01;
const INTEGER_TAG = 0x02;
/** keyCertSign and cRLSign (RFC 5280 §4.2.1.3), in the first byte of the bits. */
const SIGNING_BITS = 0x06;

/** Returns the chain that the peer presented, leaf first, following `issuerCertificate`. */
export function chainOf(shown: DetailedPeerCertificate): X509Certificate[] {
  const chain: X509Certificate[] = [];
  const seen = new Set<DetailedPeerCertificate>();
  for (let next: DetailedPeerCertificate | undefined = shown; next !== undefined && chain.length < MAX_CHAIN;) {
    // For a peer without a certificate node returns an empty object.
    if (seen.has(next) || next.raw === undefined) break;
    seen.add(next);
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate;
  }
  return chain;
}

/**
 * @param chain the visible part of the chain, leaf first; OpenSSL has verified it under some CA of `trust`
 * @returns the SPIFFE ID, or the reason why the peer is refused
 */
export function verifyPeer(
  chain: readonly X509Certificate[],
  { bundles, intermediates }: Trust,
  nowMs: number,
): SpiffeId | string {
  const [leaf, ...others] = chain;
  if (leaf === undefined) return "the peer showed no certificate";
  const id = leafIdOf(leaf);
  if (typeof id === "string") return id;
  const authorities = bundles.get(id.trustDomain);
  if (authorities === undefined) return `there is no bundle of the trust domain ${id.trustDomain}`;
  if (bundles.size === 1 || hasValidPath(leaf, [...others, ...intermediates], authorities, nowMs)) return id;
  return `no authority of the trust domain ${id.trustDomain} can be seen to vouch for ${id.text}`;
}

/** Returns the SPIFFE ID of a leaf, or the reason why the certificate may not be one (X509-SVID §4, §5.2). */
export function leafIdOf(leaf: X509Certificate): SpiffeId | string {
  try {
    if (isAuthority(leaf)) return "an authority is no identity";
    if (isForSigning(leaf)) return "a certificate that may sign others is no identity";
    const uris = urisOf(leaf);
    if (uris.length !== 1) return `an identity has exactly one URI, and not ${uris.length}`;
    const id = parseSpiffeId(uris[0] as string);
    return id === undefined || id.path === "" ? "its URI is not the SPIFFE ID of a workload" : id;
  } catch (error) {
    return `the certificate is not whole: ${messageOf(error)}`;
  }
}

function urisOf(certificate: X509Certificate): string[] {
  const names = extensionOf(certificate, "subjectAltName");
  if (names === undefined) return [];
  return membersOf(names)
    .filter(([tag]) => tag === URI_TAG)
    .map((name) => contentOf(name).toString("latin1"));
}

/** Reads basicConstraints itself, because node's `ca` also considers the key usage. */
function isAuthority(certificate: X509Certificate): boolean {
  const constraints = extensionOf(certificate, "basicConstraints");
  if (constraints === undefined) return false;
  const [first] = membersOf(constraints);
  return first?.[0] === BOOLEAN_TAG && contentOf(first)[0] !== 0;
}

function isForSigning(certificate: X509Certificate): boolean {
  const usage = extensionOf(certificate, "keyUsage");
  if (usage === undefined) return false;
  // A BIT STRING starts with the number of unused bits in its last byte, then come the bits.
  const [, bits = 0] = contentOf(usage);
  return (bits & SIGNING_BITS) !== 0;
}

/** Builds a path from the leaf over the other certificates to one of the CAs. */
function hasValidPath(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
  nowMs: number,
): boolean {
  const left = new Set(others);
  let child = leaf;
  for (let below = 0; below <= others.length; below++) {
    const isParent = (one: X509Certificate): boolean => isIssuer(one, child, below, nowMs);
    if (authorities.some(isParent)) return true;
    const parent = [...left].find(isParent);
    if (parent === undefined) return false;
    left.delete(parent);
    child = parent;
  }
  return false;
}

/** @param below number of CA certificates between the issuer and the leaf */
function isIssuer(issuer: X509Certificate, child: X509Certificate, below: number, nowMs: number): boolean {
  if (!issuer.ca || !child.checkIssued(issuer)) return false;
  if (Date.parse(issuer.validFrom) > nowMs || Date.parse(issuer.validTo) < nowMs) return false;
  return below <= pathLimit(issuer) && child.verify(issuer.publicKey);
}

/** Reads pathLenConstraint (RFC 5280 §4.2.1.9). */
function pathLimit(authority: X509Certificate): number {
  const constraints = extensionOf(authority, "basicConstraints");
  const length = constraints && membersOf(constraints).find(([tag]) => tag === INTEGER_TAG);
  return length === undefined ? Infinity : Number(`0x${contentOf(length).toString("hex")}`);
}
