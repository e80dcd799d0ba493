/**
 * Provides the certificate of the discovery server from a Secret that all replicas share.
 * `src/controller/xds-certificates.ts` uses it.
 *
 * The Secret holds one of three things: a CA that a replica generated because there was no Secret, a CA of the
 * operator, or a serving certificate of the operator. With a CA, each replica signs its own leaf certificate, which
 * lives for a day and is kept in memory only. The Secret is read again every minute, so that all replicas follow a
 * change; a creation that another replica won is answered by reading its result.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Clock } from "../../lib/time/clock.ts";
import { messageOf, SourceError } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { createAuthority, createLeaf, type KeyPair } from "../../lib/certificates/x509.ts";
import type { ServerCertificate } from "./credentials.ts";

/** The entries of the Secret as PEM. */
export type StoredEntries = Readonly<Record<string, string>>;

export interface AuthorityStore {
  /** Names the Secret in messages: "Secret namespace/name". */
  readonly name: string;
  /** @returns undefined when there is no Secret */
  read(): Promise<StoredEntries | undefined>;
  /** @returns false when another writer has created it in the meantime */
  create(entries: StoredEntries): Promise<boolean>;
}

export interface ServingCertificate {
  readonly certificate: ServerCertificate;
  /** PEM of the CA that data planes have to trust. */
  readonly ca: string;
}

export interface ServingCertificateOptions {
  readonly store: AuthorityStore;
  /** Host names and IP addresses that data planes use for the server. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

const HOUR_MS = 3_600_000;
const AUTHORITY_MS = 3_650 * 24 * HOUR_MS;
const LEAF_MS = 24 * HOUR_MS;
const RENEW_BEFORE_MS = 12 * HOUR_MS;
/** Interval after which a replica takes up a change by an operator or another replica. */
const TURN_MS = 60_000;
/** Tolerance for clocks in the cluster that differ a little. */
const BACKDATE_MS = 300_000;

interface Authority {
  readonly kind: "authority";
  readonly pair: KeyPair;
  readonly ca: string;
}

interface Served {
  readonly kind: "served";
  readonly serving: ServingCertificate;
}

export class ServingCertificates {
  readonly #options: ServingCertificateOptions;
  #use: ((serving: ServingCertificate) => void) | undefined;
  #current: { readonly from: string; readonly serving: ServingCertificate; readonly renewAtMs: number } | undefined;
  #cancel: () => void = () => {};
  #isStopped = false;

  constructor(options: ServingCertificateOptions) {
    this.#options = options;
  }

  /**
   * Reads the Secret, or creates it. @throws every error of the store, and SourceError for a Secret that cannot be used
   */
  async start(): Promise<ServingCertificate> {
    const serving = await this.#turn();
    this.#plan();
    return serving;
  }

  /** Passes each later certificate to `use`. */
  onChange(use: (serving: ServingCertificate) => void): void {
    this.#use = use;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #plan(): void {
    if (this.#isStopped) return;
    this.#cancel = this.#options.clock.after(TURN_MS, () => {
      void this.#turn()
        .catch((error: unknown) => {
          // The current certificate stays in use, and the next turn tries again.
          this.#options.log.warn("the certificate for data planes could not be renewed", { error: messageOf(error) });
        })
        .then(() => this.#plan());
    });
  }

  async #turn(): Promise<ServingCertificate> {
    const { store, names, clock } = this.#options;
    const entries = await this.#read();
    const now = clock.now();
    const from = JSON.stringify(entries);
    const before = this.#current;
    if (before !== undefined && before.from === from && now < before.renewAtMs) return before.serving;
    const material = interpret(entries, store.name);
    const serving = material.kind === "served" ? material.serving : sign(material, names, now, store.name);
    const renewAtMs = material.kind === "served" ? Number.POSITIVE_INFINITY : now + LEAF_MS - RENEW_BEFORE_MS;
    this.#current = { from, serving, renewAtMs };
    if (before !== undefined && !this.#isStopped) this.#use?.(serving);
    return serving;
  }

  async #read(): Promise<StoredEntries> {
    const { store, clock, log } = this.#options;
    const stored = await store.read();
    if (stored !== undefined) return stored;
    const made = createAuthority("gwproxy discovery", span(clock.now(), AUTHORITY_MS));
    const entries = { "ca.crt": made.certificate, "ca.key": made.key };
    if (await store.create(entries)) {
      log.info("an authority for discovery was made", { in: store.name });
      return entries;
    }
    const others = await store.read();
    if (others === undefined) throw new SourceError(`${store.name} was made and deleted at the same time`);
    return others;
  }
}

/** @throws SourceError that names the entries and never their content */
function interpret(entries: StoredEntries, name: string): Authority | Served {
  const { "ca.crt": ca = "", "ca.key": caKey = "", "tls.crt": certificate = "", "tls.key": key = "" } = entries;
  if (ca !== "" && caKey !== "") return { kind: "authority", pair: checked(ca, caKey, "ca", name), ca };
  if (certificate === "" || key === "")
    throw new SourceError(`${name} needs ca.crt and ca.key, or tls.crt and tls.key; delete it to have one made`);
  const pair = checked(certificate, key, "tls", name);
  if (new X509Certificate(certificate).ca) return { kind: "authority", pair, ca: certificate };
  if (ca === "") throw new SourceError(`${name} holds a serving pair in tls.crt, so ca.crt must say who signed it`);
  return { kind: "served", serving: { certificate: pair, ca } };
}

function checked(certificate: string, key: string, entry: "ca" | "tls", name: string): KeyPair {
  let belongs: boolean;
  try {
    belongs = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    // The parser's message may quote the text.
    throw new SourceError(`${name}: ${entry}.crt and ${entry}.key are no PEM certificate and key`);
  }
  if (!belongs) throw new SourceError(`${name}: ${entry}.key is not the key of ${entry}.crt`);
  return { certificate, key };
}

function sign({ pair, ca }: Authority, names: readonly string[], now: number, name: string): ServingCertificate {
  const { validToDate } = new X509Certificate(pair.certificate);
  if (validToDate.getTime() <= now)
    throw new SourceError(`${name}: the authority has expired; replace it, or delete the Secret to have one made`);
  return { certificate: createLeaf(pair, names, span(now, LEAF_MS)), ca };
}

function span(now: number, lifeMs: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(now - BACKDATE_MS), notAfter: new Date(now + lifeMs) };
}
