/** Parses SPIFFE IDs (SPIFFE-ID §2), the URIs that name workloads, for certificates and bundles. */

export interface SpiffeId {
  /** The ID as written; the standard allows one spelling only, so texts can be compared. */
  readonly text: string;
  readonly trustDomain: string;
  /** "" for the trust domain itself. */
  readonly path: string;
}

const MAX_BYTES = 2048;
const SHAPE = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)*)$/;

/** @returns undefined when the text is not a SPIFFE ID */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  const [, trustDomain, path] = (text.length <= MAX_BYTES && SHAPE.exec(text)) || [];
  if (trustDomain === undefined || path === undefined) return undefined;
  const isRelative = path.split("/").some((segment) => segment === "." || segment === "..");
  return isRelative ? undefined : { text, trustDomain, path };
}

/** Parses the name of a trust domain in a map of bundles: its SPIFFE ID, or the bare domain. */
export function parseTrustDomain(text: string): string | undefined {
  const id = parseSpiffeId(text.startsWith("spiffe://") ? text : `spiffe://${text}`);
  return id?.path === "" ? id.trustDomain : undefined;
}
