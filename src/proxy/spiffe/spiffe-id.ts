/** SPIFFE IDs (standard "SPIFFE ID" 2): who a workload is, as a URI. */

export interface SpiffeId {
  /** As it stands: the standard allows one spelling alone. */
  readonly text: string;
  readonly trustDomain: string;
  /** "" for the trust domain itself. */
  readonly path: string;
}

const MAX_BYTES = 2048;
const SHAPE = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)*)$/;

/** @returns undefined for a text that is none */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  const [, trustDomain, path] = (text.length <= MAX_BYTES && SHAPE.exec(text)) || [];
  if (trustDomain === undefined || path === undefined) return undefined;
  const isRelative = path.split("/").some((segment) => segment === "." || segment === "..");
  return isRelative ? undefined : { text, trustDomain, path };
}

/** A trust domain as maps of bundles name it: by its SPIFFE ID, or bare. */
export function parseTrustDomain(text: string): string | undefined {
  const id = parseSpiffeId(text.startsWith("spiffe://") ? text : `spiffe://${text}`);
  return id?.path === "" ? id.trustDomain : undefined;
}
