/**
 * Whether somebody is who the certificate says (X509-SVID 5): a leaf with exactly one URI, which is a SPIFFE ID, signed by
 * an authority of that trust domain. The library has checked the chain already, against the authorities of all trust
 * domains at once; here no domain can speak for another one. Where a chain cannot be seen, which is so for clients whose
 * leaf another certificate has signed (nodejs/node#65579), it is believed only where there is one trust domain.
 */
import { X509Certificate } from "node:crypto";
import type { DetailedPeerCertificate } from "node:tls";
import { contentOf, membersOf } from "../../lib/certificates/der.ts";
import { messageOf } from "../../lib/errors.ts";
import { extensionOf } from "../../lib/certificates/x509.ts";
import { parseSpiffeId, type SpiffeId } from "./spiffe-id.ts";

/** Whom to believe. */
export interface Trust {
  /** Authorities by trust domain. */
  readonly bundles: ReadonlyMap<string, readonly X509Certificate[]>;
  /** Signed certificates that peers may be below, and which prove nothing themselves. */
  readonly intermediates: readonly X509Certificate[];
}

/** Longer ones are not followed. */
const MAX_CHAIN = 10;
const URI_TAG = 0x86;
const BOOLEAN_TAG = 0x01;
const INTEGER_TAG = 0x02;
/** keyCertSign and cRLSign (RFC 5280 4.2.1.3), in the first byte of the bits. */
const SIGNING_BITS = 0x06;

/** What a peer showed, the leaf first, as far as one certificate names the next. */
export function chainOf(shown: DetailedPeerCertificate): X509Certificate[] {
  const chain: X509Certificate[] = [];
  const seen = new Set<DetailedPeerCertificate>();
  for (let next: DetailedPeerCertificate | undefined = shown; next !== undefined && chain.length < MAX_CHAIN;) {
    // A peer that showed nothing has an object without members.
    if (seen.has(next) || next.raw === undefined) break;
    seen.add(next);
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate;
  }
  return chain;
}

/**
 * @param chain as far as it can be seen, the leaf first; the library believes it under some authority of `trust`
 * @returns who it is, or why that is not believed
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
  if (bundles.size === 1 || isVouchedFor(leaf, [...others, ...intermediates], authorities, nowMs)) return id;
  return `no authority of the trust domain ${id.trustDomain} can be seen to vouch for ${id.text}`;
}

/** Who a leaf says that it is, or why it may not be one. */
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

/** By what it says itself: the library also looks at what its key may be used for. */
function isAuthority(certificate: X509Certificate): boolean {
  const constraints = extensionOf(certificate, "basicConstraints");
  if (constraints === undefined) return false;
  const [first] = membersOf(constraints);
  return first?.[0] === BOOLEAN_TAG && contentOf(first)[0] !== 0;
}

function isForSigning(certificate: X509Certificate): boolean {
  const usage = extensionOf(certificate, "keyUsage");
  if (usage === undefined) return false;
  // A bit string: how many bits of the last byte are unused, then the bits.
  const [, bits = 0] = contentOf(usage);
  return (bits & SIGNING_BITS) !== 0;
}

/** Follows the chain from the leaf to one of the authorities. */
function isVouchedFor(
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

/** @param below how many authorities stand between the issuer and the leaf */
function isIssuer(issuer: X509Certificate, child: X509Certificate, below: number, nowMs: number): boolean {
  if (!issuer.ca || !child.checkIssued(issuer)) return false;
  if (Date.parse(issuer.validFrom) > nowMs || Date.parse(issuer.validTo) < nowMs) return false;
  return below <= pathLimit(issuer) && child.verify(issuer.publicKey);
}

/** pathLenConstraint (RFC 5280 4.2.1.9). */
function pathLimit(authority: X509Certificate): number {
  const constraints = extensionOf(authority, "basicConstraints");
  const length = constraints && membersOf(constraints).find(([tag]) => tag === INTEGER_TAG);
  return length === undefined ? Infinity : Number(`0x${contentOf(length).toString("hex")}`);
}
