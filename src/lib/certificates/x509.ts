/**
 * Makes and reads X.509 v3 certificates (RFC 5280) with P-256 keys: a certificate authority and leaves for TLS servers.
 * The xDS server, the admission webhook and SPIFFE use it.
 */
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
import { ipBytes } from "../network/ip-bytes.ts";

/** A certificate and its PKCS #8 key, both as PEM. */
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

/** Bit strings (RFC 5280 §4.2.1.3), led by the count of unused bits: digitalSignature; keyCertSign and cRLSign. */
const USAGE_LEAF = Buffer.from([7, 0x80]);
const USAGE_CA = Buffer.from([1, 0x06]);

/** Creates a self-signed authority that can sign leaves and no further authorities. */
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
 * Creates a server certificate for host names and IP addresses, signed by `authority`, which another program may have
 * made.
 *
 * @throws TypeError when the authority's key is neither an EC nor an RSA key
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
  // Leave the subject empty: a common name holds at most 64 characters, a host name 253. The names are in the SAN.
  return issue({ name: sequence(), publicKey, validity, extensions }, signer, privateKey);
}

interface Subject {
  readonly name: Buffer;
  readonly publicKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly Buffer[];
}

/**
 * Builds the TBSCertificate (RFC 5280 §4.1.2), signs it with SHA-256 and the key of the signer, and prints it as PEM.
 */
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

/** Returns a positive serial number of 127 random bits, within the 20 octets of RFC 5280 §4.1.2.2. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40;
  return bytes;
}

/** Computes the key identifier of RFC 5280 §4.2.1.2, method 1. SHA-1 only names the key here and protects nothing. */
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

/** Returns the subject byte for byte: a leaf whose issuer is encoded differently does not chain to this authority. */
function subjectOf(certificate: X509Certificate): Buffer {
  const subject = signedMembers(certificate)[SUBJECT];
  if (subject === undefined) throw new TypeError("a certificate without a subject");
  return subject;
}

/** Returns the subject key identifier (RFC 5280 §4.2.1.2); undefined when the certificate has none. */
function subjectKeyIdOf(certificate: X509Certificate): Buffer | undefined {
  const value = extensionOf(certificate, "subjectKeyId");
  return value === undefined ? undefined : contentOf(value);
}

/**
 * Returns the DER value of an extension (RFC 5280 §4.2); undefined when the certificate does not have it.
 *
 * @throws RangeError when the certificate is truncated
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
/** Index of the subject after the version: serial number, algorithm, issuer, validity, subject. */
const SUBJECT = 4;

/** Returns the members of the TBSCertificate (RFC 5280 §4.1) without the version, which may be missing. */
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
