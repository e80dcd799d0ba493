/**
 * What a client's certificate says about it (runtime/cel.md 3.3), parsed when it is asked for and once per connection.
 * Whoever the certificate names is believed only when an authority of the listener vouches for it; its own text can be
 * compared in any case, because the handshake proved that the client holds the key.
 */
import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { type Reader, readers } from "../../pipeline/attributes.ts";

interface Names {
  /** DNS names, URIs, addresses and mail addresses, as they stand. */
  readonly all: readonly string[];
  readonly spiffeId: string | undefined;
}

export class ClientCertificate {
  readonly pem: () => string;
  /** undefined: nobody vouches for it. */
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

/** @returns undefined when the client showed none */
export function clientCertificateOf(socket: TLSSocket): ClientCertificate | undefined {
  // A resumed connection counts as authorized also without a certificate, so that alone says nothing.
  const certificate = socket.getPeerX509Certificate();
  return certificate === undefined ? undefined : new ClientCertificate(certificate, socket.authorized);
}

/** `identity` exists for the form of a mesh alone: spiffe://trust-domain/ns/namespace/sa/account. */
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

/** One "CN=value" a line in node's form. */
function oneLine(name: string | undefined): string | undefined {
  return name === undefined || name === "" ? undefined : name.split("\n").join(", ");
}

/** Node's form: `DNS:a, URI:"b\u002c c"`. A value that could be taken for several stands in quotes, as JSON. */
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
  // What node put in quotes is a JSON text.
  return value.startsWith('"') ? (JSON.parse(value) as string) : value;
}
