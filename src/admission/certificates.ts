/**
 * The webhook's certificates: made here, kept in a store that replicas share, renewed before they expire. A new authority
 * is announced beside the old one first; a leaf of it is made only when the API server has had time to read of it.
 */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { type KeyPair, createAuthority, createLeaf } from "../lib/certificates/x509.ts";

/** All that is stored, as PEM texts. */
export interface Pem {
  readonly authority: KeyPair;
  /** Of the authority, or of the one before it while the new one is being announced. */
  readonly leaf: KeyPair;
  /** The authority before this one while it is still trusted; "" when there is none. */
  readonly previousAuthority: string;
}

export interface CertificateStore {
  read(): Promise<Pem | undefined>;
  /** @throws when someone else wrote in between: the next turn reads theirs */
  write(pem: Pem): Promise<void>;
}

export interface CertificateOptions {
  readonly store: CertificateStore;
  /** Host names and IP addresses of the leaf. */
  readonly names: readonly string[];
  /** Tells the API server which authorities to trust. Called before a leaf is used. */
  readonly patchCaBundle: (pem: string) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

const DAY_MS = 86_400_000;
const AUTHORITY_MS = 3_650 * DAY_MS;
const LEAF_MS = 90 * DAY_MS;
/** An authority is replaced while it can still sign a whole life of a leaf. */
const AUTHORITY_RENEW_BEFORE_MS = 2 * LEAF_MS;
const LEAF_RENEW_BEFORE_MS = 30 * DAY_MS;
/** Also how soon a replica takes up what another one wrote, and a removed bundle is put back. */
const TURN_MS = 600_000;
const RETRY_MS = 5_000;
/** Every API server of the cluster watches its configuration: after this long each of them has the new authority. */
export const ANNOUNCED_MS: number = TURN_MS / 2;
/** Clocks of a cluster differ a little. */
const BACKDATE_MS = 300_000;

export class Certificates {
  readonly #options: CertificateOptions;
  #use: ((leaf: KeyPair) => void) | undefined;
  #leaf: KeyPair | undefined;
  /** The authority that is in force, and since when the API server could read of it. */
  #announced: { readonly authority: string; readonly since: number } | undefined;
  #cancel: () => void = () => {};
  #stopped = false;

  constructor(options: CertificateOptions) {
    this.#options = options;
  }

  /** Reads or makes the certificates. @returns the leaf to serve with. @throws what the store or the patch throws */
  async start(): Promise<KeyPair> {
    const leaf = await this.#turn();
    this.#plan(TURN_MS);
    return leaf;
  }

  /** `use` gets each later leaf. */
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
 * What should be stored at `now`: the same value when it is still good, otherwise with what had to be made anew.
 * @param isAnnounced whether the API server knows the stored authority; until then a leaf of the one before it serves
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

/** The replaced authority stays trusted as long as a replica may still serve with a leaf of it. */
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
    // Whatever stands there is no certificate: it is made anew.
    return undefined;
  }
}

function span(now: number, lifeMs: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(now - BACKDATE_MS), notAfter: new Date(now + lifeMs) };
}
