/** Trust domains and X.509-SVIDs for tests, also such as no agent would hand out. */
import { createPublicKey, generateKeyPairSync, sign, X509Certificate, type KeyObject } from "node:crypto";
import {
  bitString,
  boolean,
  contextTag,
  explicit,
  integer,
  octetString,
  oid,
  sequence,
  set,
  time,
  utf8,
} from "../../src/lib/certificates/der.ts";
import { validNow } from "./tls-upstream.ts";

export interface Authority {
  readonly trustDomain: string;
  readonly der: Buffer;
  /** PEM. */
  readonly certificate: string;
  readonly subject: Buffer;
  readonly key: KeyObject;
  /** Those between it and a bundle, its own certificate first. */
  readonly above: readonly Buffer[];
}

export interface Svid {
  readonly id: string;
  /** DER, the leaf first, one after the other. */
  readonly chain: Buffer;
  /** PKCS #8. */
  readonly pkcs8: Buffer;
  /** PEM of the whole chain, and of the key. */
  readonly certificate: string;
  readonly privateKey: string;
  readonly serialNumber: string;
}

export interface SvidOptions {
  /** In place of the ID. */
  readonly uris?: readonly string[];
  readonly dns?: readonly string[];
  readonly notAfter?: Date;
  readonly isAuthority?: boolean;
  /** In place of digitalSignature: the first byte of the bits. */
  readonly usage?: number;
}

const ECDSA = sequence(oid("1.2.840.10045.4.3.2"));
const DIGITAL_SIGNATURE = 0x80;
const KEY_CERT_SIGN = 0x04;
let serial = 0x40000000;

export function createTrustDomain(trustDomain: string): Authority {
  return authorityOf(trustDomain, undefined, sequence(boolean(true)));
}

/** An authority below another one. @param pathLength how many may stand between it and a leaf */
export function createIntermediate(parent: Authority, pathLength?: number): Authority {
  const limit = pathLength === undefined ? [] : [integer(pathLength)];
  return authorityOf(parent.trustDomain, parent, sequence(boolean(true), ...limit));
}

/** @param path of the SPIFFE ID, such as "/ns/shop/sa/cart" */
export function issueSvid(authority: Authority, path: string, options: SvidOptions = {}): Svid {
  const id = `spiffe://${authority.trustDomain}${path}`;
  const { uris = [id], dns = [], usage = DIGITAL_SIGNATURE, isAuthority = false } = options;
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const names = [
    ...uris.map((uri) => contextTag(6, Buffer.from(uri, "latin1"))),
    ...dns.map((name) => contextTag(2, Buffer.from(name, "latin1"))),
  ];
  const extensions = [
    extension("2.5.29.19", isAuthority ? sequence(boolean(true)) : sequence()),
    extension("2.5.29.15", bitString(Buffer.from([0, usage]))),
    extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.1"), oid("1.3.6.1.5.5.7.3.2"))),
    extension("2.5.29.17", sequence(...names)),
  ];
  const subject = { key: privateKey, name: sequence(), extensions, notAfter: options.notAfter };
  const leaf = certify(subject, authority);
  const all = [leaf, ...authority.above];
  return {
    id,
    chain: Buffer.concat(all),
    pkcs8: privateKey.export({ type: "pkcs8", format: "der" }),
    certificate: all.map((der) => new X509Certificate(der).toString()).join(""),
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    serialNumber: new X509Certificate(leaf).serialNumber,
  };
}

function authorityOf(trustDomain: string, parent: Authority | undefined, constraints: Buffer): Authority {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const subject = sequence(set(sequence(oid("2.5.4.3"), utf8(`${trustDomain} ${++serial}`))));
  const extensions = [
    extension("2.5.29.19", constraints),
    extension("2.5.29.15", bitString(Buffer.from([0, KEY_CERT_SIGN]))),
    extension("2.5.29.17", sequence(contextTag(6, Buffer.from(`spiffe://${trustDomain}`)))),
  ];
  const der = certify({ key: privateKey, name: subject, extensions }, parent ?? { subject, key: privateKey });
  const certificate = new X509Certificate(der).toString();
  const above = parent === undefined ? [] : [der, ...parent.above];
  return { trustDomain, der, certificate, subject, key: privateKey, above };
}

interface Subject {
  readonly key: KeyObject;
  readonly name: Buffer;
  readonly extensions: readonly Buffer[];
  readonly notAfter?: Date | undefined;
}

function certify({ key, name, extensions, notAfter }: Subject, issuer: Pick<Authority, "subject" | "key">): Buffer {
  const validity = validNow();
  const number = Buffer.alloc(4);
  number.writeUInt32BE(++serial);
  const body = sequence(
    explicit(0, integer(2)),
    integer(number),
    ECDSA,
    issuer.subject,
    sequence(time(validity.notBefore), time(notAfter ?? validity.notAfter)),
    name,
    createPublicKey(key).export({ type: "spki", format: "der" }),
    explicit(3, sequence(...extensions)),
  );
  return sequence(body, ECDSA, bitString(Buffer.concat([Buffer.from([0]), sign("sha256", body, issuer.key)])));
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), boolean(true), octetString(value));
}
