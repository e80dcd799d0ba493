/**
 * The webhook's certificates: created here, kept in a store that all replicas share, and renewed before they expire.
 * runtime/webhook.ts uses them.
 *
 * A new authority must reach every API server before a leaf of it is used; otherwise handshakes fail and the failure
 * policy refuses all objects. So the rotation has overlapping steps, and every replica runs it on its own (every 10
 * minutes):
 *
 *   authority A, leaf of A          A expires within 180 days
 *   authorities B + A, leaf of A    B is in the caBundle; wait ANNOUNCED_MS (5 minutes)
 *   authorities B + A, leaf of B    A stays trusted until it expires, for replicas that still serve a leaf of A
 *   authority B, leaf of B
 */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { Clock } from "../lib/time/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { type KeyPair, createAuthority, createLeaf } from "../lib/certificates/x509.ts";

/** Everything that is stored, as PEM texts. */
export interface Pem {
  readonly authority: KeyPair;
  /** Leaf that is signed by the authority, or by the previous one while the new authority is being announced. */
  readonly leaf: KeyPair;
  /** Certificate of the previous authority while it is still trusted; "" when there is none. */
  readonly previousAuthority: string;
}

export interface CertificateStore {
  read(): Promise<Pem | undefined>;
  /** @throws when another replica wrote in between; the next turn reads what it wrote */
  write(pem: Pem): Promise<void>;
}

export interface CertificateOptions {
  readonly store: CertificateStore;
  /** Host names and IP addresses of the leaf. */
  readonly names: readonly string[];
  /** Writes the trusted authorities to the API server. Called before a leaf is used. */
  readonly patchCaBundle: (pem: string) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

const DAY_MS = 86_400_000;
const AUTHORITY_MS = 3_650 * DAY_MS;
const LEAF_MS = 90 * DAY_MS;
/** An authority is replaced while it can still sign a leaf for its full lifetime. */
const AUTHORITY_RENEW_BEFORE_MS = 2 * LEAF_MS;
const LEAF_RENEW_BEFORE_MS = 30 * DAY_MS;
/**
 * Interval of the check. It is also the delay until a replica uses what another one wrote, and until a removed caBundle
 * is restored.
 */
const TURN_MS = 600_000;
const RETRY_MS = 5_000;
/** Time until every API server has read the new authority; each of them watches its configuration. */
export const ANNOUNCED_MS: number = TURN_MS / 2;
/** Backdating of new certificates, because the clocks of a cluster differ a little. */
const BACKDATE_MS = 300_000;

export class Certificates {
  readonly #options: CertificateOptions;
  #use: ((leaf: KeyPair) => void) | undefined;
  #leaf: KeyPair | undefined;
  /** The authority in force, and the time since which API servers could read it. */
  #announced: { readonly authority: string; readonly since: number } | undefined;
  #cancel: () => void = () => {};
  #stopped = false;

  constructor(options: CertificateOptions) {
    this.#options = options;
  }

  /**
   * Reads or creates the certificates.
   * @returns the leaf to serve with
   * @throws the error of the store or the patch
   */
  async start(): Promise<KeyPair> {
    const leaf = await this.#turn();
    this.#plan(TURN_MS);
    return leaf;
  }

  /** Calls `use` with each later leaf. */
  onRenewal(use: (leaf: KeyPair) => void): void {
    this.#use = use;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #plan(delayMs: number): void {
    if (this.#stopped) return;
    this.#cancel = this.#options.clock.after(delayMs, () => {
      void this.#turn().then(
        () => this.#plan(TURN_MS),
        (error: unknown) => {
          this.#options.log.warn("certificates could not be renewed; trying again", { reason: messageOf(error) });
          this.#plan(RETRY_MS);
        },
      );
    });
  }

  /**
   * Reads, renews and publishes the certificates. The order matters: first the store, so that replicas agree, then the
   * caBundle, then the leaf, so that no server uses a leaf before its authority is published.
   */
  async #turn(): Promise<KeyPair> {
    const { store, names, patchCaBundle, clock } = this.#options;
    const now = clock.now();
    const stored = await store.read();
    const pem = renew(stored, names, now, this.#isAnnounced(stored, now));
    if (pem !== stored) await store.write(pem);
    await patchCaBundle(pem.authority.certificate + pem.previousAuthority);
    if (this.#announced?.authority !== pem.authority.certificate) {
      this.#announced = { authority: pem.authority.certificate, since: clock.now() };
    }
    const changed = this.#leaf !== undefined && this.#leaf.certificate !== pem.leaf.certificate;
    this.#leaf = pem.leaf;
    if (changed && !this.#stopped) this.#use?.(pem.leaf);
    return pem.leaf;
  }

  #isAnnounced(stored: Pem | undefined, now: number): boolean {
    if (this.#announced === undefined || this.#announced.authority !== stored?.authority.certificate) return false;
    return now - this.#announced.since >= ANNOUNCED_MS;
  }
}

/**
 * Computes what should be stored at `now`: the same value when it is still good, otherwise a copy with new parts.
 * @param isAnnounced whether the API server knows the stored authority; until then a leaf of the previous one serves
 */
export function renew(stored: Pem | undefined, names: readonly string[], now: number, isAnnounced = false): Pem {
  const keepsAuthority = stored !== undefined && isGood(stored.authority, now, AUTHORITY_RENEW_BEFORE_MS);
  const authority = keepsAuthority ? stored.authority : createAuthority("gwproxy webhook", span(now, AUTHORITY_MS));
  const previousAuthority = previousOf(stored, keepsAuthority, now);
  const isKnown = keepsAuthority && isAnnounced;
  const keepsLeaf =
    stored !== undefined &&
    (isIssuedFor(stored.leaf, authority.certificate, names)
      ? isGood(stored.leaf, now, LEAF_RENEW_BEFORE_MS)
      : !isKnown && isGood(stored.leaf, now, 0) && isIssuedFor(stored.leaf, previousAuthority, names));
  const leaf = keepsLeaf ? stored.leaf : createLeaf(authority, names, span(now, LEAF_MS));
  if (keepsAuthority && keepsLeaf && previousAuthority === stored.previousAuthority) return stored;
  return { authority, leaf, previousAuthority };
}

/** Returns the replaced authority until it expires, since a replica may still serve a leaf of it. */
function previousOf(stored: Pem | undefined, keepsAuthority: boolean, now: number): string {
  if (stored === undefined) return "";
  const candidate = keepsAuthority ? stored.previousAuthority : stored.authority.certificate;
  const certificate = candidate === "" ? undefined : parse(candidate);
  return certificate !== undefined && certificate.validToDate.getTime() > now ? candidate : "";
}

function isGood({ certificate, key }: KeyPair, now: number, marginMs: number): boolean {
  const parsed = parse(certificate);
  if (parsed === undefined || key === "") return false;
  return parsed.validFromDate.getTime() <= now && parsed.validToDate.getTime() - marginMs > now;
}

function isIssuedFor(leaf: KeyPair, authority: string, names: readonly string[]): boolean {
  const certificate = parse(leaf.certificate);
  const issuer = parse(authority);
  if (certificate === undefined || issuer === undefined || !certificate.verify(issuer.publicKey)) return false;
  return names.every(
    (name) => (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined,
  );
}

function parse(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    // The text is not a certificate; a new one is created.
    return undefined;
  }
}

function span(now: number, lifeMs: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(now - BACKDATE_MS), notAfter: new Date(now + lifeMs) };
}
