/** X.509 v3 certificates (RFC 5280) with P-256 keys: a certificate authority and leaves for TLS servers. */
import {
  type KeyObject,
  X509Certificate,
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from "node:crypto";
import { isIP } from "node:net";
import {
  bitString,
  boolean,
  contentOf,
  contextTag,
  explicit,
  integer,
  membersOf,
  nothing,
  octetString,
  oid,
  sequence,
  set,
  time,
  utf8,
} from "./der.ts";
import { ipBytes } from "../ip-bytes.ts";

/** PEM texts of a certificate and its PKCS #8 key. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

const OID = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  rsaWithSha256: "1.2.840.113549.1.1.11",
  basicConstraints: "2.5.29.19",
  keyUsage: "2.5.29.15",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  subjectAltName: "2.5.29.17",
  subjectKeyId: "2.5.29.14",
  authorityKeyId: "2.5.29.35",
} as const;

type Extension = "basicConstraints" | "keyUsage" | "subjectAltName" | "subjectKeyId";

/** Bit strings with the count of unused bits in front: digitalSignature; keyCertSign + cRLSign. */
const USAGE_LEAF = Buffer.from([7, 0x80]);
const USAGE_CA = Buffer.from([1, 0x06]);

/** A self-signed authority that can sign leaves and nothing below them. */
export function createAuthority(commonName: string, validity: Validity): KeyPair {
  const { privateKey, publicKey } = newKey();
  const id = keyId(publicKey);
  const name = distinguishedName(commonName);
  const extensions = [
    extension(OID.basicConstraints, true, sequence(boolean(true), integer(0))),
    extension(OID.keyUsage, true, bitString(USAGE_CA)),
    extension(OID.subjectKeyId, false, octetString(id)),
  ];
  return issue({ name, publicKey, validity, extensions }, { name, key: privateKey }, privateKey);
}

/**
 * A server certificate for the given host names and IP addresses, signed by `authority`, which may be of another maker.
 * @throws TypeError when the authority's key can neither sign by ECDSA nor by RSA
 */
export function createLeaf(authority: KeyPair, names: readonly string[], validity: Validity): KeyPair {
  const { privateKey, publicKey } = newKey();
  const issuer = new X509Certificate(authority.certificate);
  const issuerKeyId = subjectKeyIdOf(issuer);
  const extensions = [
    extension(OID.basicConstraints, true, sequence()),
    extension(OID.keyUsage, true, bitString(USAGE_LEAF)),
    extension(OID.extendedKeyUsage, false, sequence(oid(OID.serverAuth))),
    extension(OID.subjectAltName, true, sequence(...names.map(generalName))),
    extension(OID.subjectKeyId, false, octetString(keyId(publicKey))),
    ...(issuerKeyId === undefined ? [] : [extension(OID.authorityKeyId, false, sequence(contextTag(0, issuerKeyId)))]),
  ];
  const signer = { name: subjectOf(issuer), key: createPrivateKey(authority.key) };
  // The name stands in the alternative names alone: a common name holds 64 characters at most, a host name 253.
  return issue({ name: sequence(), publicKey, validity, extensions }, signer, privateKey);
}

interface Subject {
  readonly name: Buffer;
  readonly publicKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly Buffer[];
}

function issue(subject: Subject, signer: { name: Buffer; key: KeyObject }, privateKey: KeyObject): KeyPair {
  const algorithm = signatureAlgorithm(signer.key);
  const body = sequence(
    explicit(0, integer(2)),
    integer(serialNumber()),
    algorithm,
    signer.name,
    sequence(time(subject.validity.notBefore), time(subject.validity.notAfter)),
    subject.name,
    subject.publicKey.export({ type: "spki", format: "der" }),
    explicit(3, sequence(...subject.extensions)),
  );
  const signature = sign("sha256", body, signer.key);
  const certificate = sequence(body, algorithm, bitString(Buffer.concat([Buffer.from([0]), signature])));
  return { certificate: pem(certificate), key: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

function newKey(): { privateKey: KeyObject; publicKey: KeyObject } {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** 127 random bits: positive, and never short of what RFC 5280 §4.1.2.2 allows. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40;
  return bytes;
}

/** RFC 5280 §4.2.1.2, method 1: SHA-1 of the public key's bits, as a name and not as a protection. */
function keyId(key: KeyObject): Buffer {
  const spki = key.export({ type: "spki", format: "der" });
  // An uncompressed P-256 point is the last 65 bytes of its SubjectPublicKeyInfo.
  return createHash("sha1").update(spki.subarray(-65)).digest();
}

function distinguishedName(commonName: string): Buffer {
  return sequence(set(sequence(oid(OID.commonName), utf8(commonName))));
}

function signatureAlgorithm({ asymmetricKeyType }: KeyObject): Buffer {
  if (asymmetricKeyType === "ec") return sequence(oid(OID.ecdsaWithSha256));
  if (asymmetricKeyType === "rsa") return sequence(oid(OID.rsaWithSha256), nothing());
  throw new TypeError(`a key of the type ${asymmetricKeyType} cannot sign certificates here; use EC or RSA`);
}

/** The name exactly as it stands in the certificate: a leaf whose issuer is spelled otherwise has none. */
function subjectOf(certificate: X509Certificate): Buffer {
  const subject = signedMembers(certificate)[SUBJECT];
  if (subject === undefined) throw new TypeError("a certificate without a subject");
  return subject;
}

/** RFC 5280 §4.2.1.2; undefined when the certificate has none. */
function subjectKeyIdOf(certificate: X509Certificate): Buffer | undefined {
  const value = extensionOf(certificate, "subjectKeyId");
  return value === undefined ? undefined : contentOf(value);
}

/**
 * The value of an extension (RFC 5280 §4.2), DER; undefined when the certificate has none.
 * @throws RangeError when the certificate is not whole
 */
export function extensionOf(certificate: X509Certificate, name: Extension): Buffer | undefined {
  const wrapped = signedMembers(certificate).find((member) => member[0] === EXTENSIONS_TAG);
  const [list] = wrapped === undefined ? [] : membersOf(wrapped);
  const wanted = oid(OID[name]);
  for (const parts of (list === undefined ? [] : membersOf(list)).map(membersOf)) {
    const value = parts.at(-1);
    if (parts[0]?.equals(wanted) === true && value !== undefined) return contentOf(value);
  }
  return undefined;
}

const VERSION_TAG = 0xa0;
const EXTENSIONS_TAG = 0xa3;
/** Place behind the version: serial number, algorithm, issuer, validity, subject. */
const SUBJECT = 4;

/** The members of what is signed (RFC 5280 §4.1), without the version, which may be missing. */
function signedMembers({ raw }: X509Certificate): Buffer[] {
  const [body] = membersOf(raw);
  const members = body === undefined ? [] : membersOf(body);
  return members[0]?.[0] === VERSION_TAG ? members.slice(1) : members;
}

function generalName(name: string): Buffer {
  return isIP(name) === 0 ? contextTag(2, Buffer.from(name, "ascii")) : contextTag(7, ipBytes(name));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octetString(value));
}

function pem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
