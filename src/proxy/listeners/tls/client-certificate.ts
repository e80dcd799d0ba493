/**
 * The client certificate as CEL reads it under `source` (docs/reference/expressions.md). Each Peer holds one; names are
 * parsed on first use, once per connection. Names are exposed only when a CA of the listener has verified the
 * certificate. The PEM text is exposed in any case: the handshake proved that the client holds the key, so comparing
 * the whole certificate is safe.
 */
import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { type Reader, readers } from "../../exchange/attributes.ts";

interface Names {
  /** DNS names, URIs, IP and mail addresses, as the certificate writes them. */
  readonly all: readonly string[];
  readonly spiffeId: string | undefined;
}

export class ClientCertificate {
  readonly pem: () => string;
  /** undefined when no CA of the listener verified the certificate. */
  readonly #verified: X509Certificate | undefined;
  #names: Names | undefined;

  constructor(certificate: X509Certificate, verified: boolean) {
    this.pem = certificate.toString.bind(certificate);
    this.#verified = verified ? certificate : undefined;
  }

  get names(): Names | undefined {
    if (this.#verified === undefined) return undefined;
    return (this.#names ??= readNames(this.#verified.subjectAltName ?? ""));
  }

  get issuer(): string | undefined {
    return oneLine(this.#verified?.issuer);
  }

  get subject(): string | undefined {
    return oneLine(this.#verified?.subject);
  }

  get commonName(): string | undefined {
    const names = this.#verified?.toLegacyObject().subject.CN;
    return Array.isArray(names) ? String(names[0]) : names;
  }
}

/** @returns undefined when the client presented none */
export function clientCertificateOf(socket: TLSSocket): ClientCertificate | undefined {
  // node reports a resumed session as authorized even without a certificate, so check the certificate first.
  const certificate = socket.getPeerX509Certificate();
  return certificate === undefined ? undefined : new ClientCertificate(certificate, socket.authorized);
}

/**
 * CEL fields of the certificate. `identity` exists only for SPIFFE IDs of the form
 * spiffe://domain/ns/namespace/sa/account.
 */
export const CERTIFICATE_READERS: ReadonlyMap<string, Reader<ClientCertificate>> = readers<ClientCertificate>({
  certificate: ({ pem }) => pem(),
  subjectAltNames: ({ names }) => names?.all,
  spiffeId: ({ names }) => names?.spiffeId,
  identity: ({ names }) => identityOf(names?.spiffeId),
  issuer: ({ issuer }) => issuer,
  subject: ({ subject }) => subject,
  subjectCn: ({ commonName }) => commonName,
});

function identityOf(spiffeId: string | undefined): Readonly<Record<string, string>> | undefined {
  const match = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(spiffeId ?? "");
  if (match === null) return undefined;
  const [, trustDomain = "", namespace = "", serviceAccount = ""] = match;
  return { trustDomain, namespace, serviceAccount };
}

/** Joins node's form of a distinguished name, one "CN=value" per line, with commas. */
function oneLine(name: string | undefined): string | undefined {
  return name === undefined || name === "" ? undefined : name.split("\n").join(", ");
}

/** An item of node's form `DNS:a, URI:"b\u002c c"`, which quotes ambiguous values as JSON (CVE-2021-44532). */
const ITEM = /(?:"(?:[^"\\]|\\.)*"|[^",]|,(?! ))+/g;
const KINDS = /^(DNS|URI|IP Address|email):/;

function readNames(text: string): Names {
  const all: string[] = [];
  let spiffeId: string | undefined;
  for (const [item] of text.matchAll(ITEM)) {
    const kind = KINDS.exec(item.trimStart());
    if (kind === null) continue;
    const value = unquoted(item.trimStart().slice(kind[0].length));
    if (kind[1] === "URI" && value.startsWith("spiffe://")) spiffeId ??= value;
    all.push(value);
  }
  return { all, spiffeId };
}

function unquoted(value: string): string {
  // node writes a quoted value as a JSON string.
  return value.startsWith('"') ? (JSON.parse(value) as string) : value;
}
