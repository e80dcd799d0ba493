/**
 * Translates the TLS settings of a listener: its certificate, and the client certificates it accepts (GEP-91).
 * `gateway.ts` uses it.
 *
 * A reference that cannot be resolved is an error of the listener. The listener then stays open and fails its
 * handshakes: it never falls back to plain text.
 */
import { create } from "@bufbuild/protobuf";
import type {
  Gateway,
  GatewayCaCertificateRef,
  GatewayCertificateRef,
  GatewayListener,
  GatewayValidation,
} from "../../../generated/types/gateway-api/gateway.ts";
import type { ReferenceGrant } from "../../../generated/types/gateway-api/referencegrant.ts";
import {
  ClientValidationSchema,
  ListenerTlsSchema,
  type ClientValidation,
  type ListenerTls,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../api/conditions.ts";
import { objectId, type ObjectId } from "../../api/object.ts";
import { describeRef, GATEWAY_GROUP } from "../../api/refs.ts";
import type { ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ConditionError } from "../shared/views.ts";
import { isGranted } from "../references/grants.ts";
import { CERTIFICATE_SOURCE, certificateSourceOf, tlsChoiceOf } from "./listener-options.ts";
import { certificatesIn, isPrivateKey } from "../references/pem.ts";
import { SecretReader, type Entries, type SecretCollections } from "../references/secrets.ts";

export interface TlsContext {
  readonly secrets: SecretCollections;
  readonly grants: ReadableIndex<ReferenceGrant>;
  readonly read: Read;
}

export interface TranslatedTls {
  readonly message: ListenerTls;
  /** Explains why handshakes fail; undefined when they succeed. */
  readonly error: ConditionError | undefined;
  /** Set when clients need a certificate and no CA certificate can be trusted. */
  readonly trustError: ConditionError | undefined;
}

const CERTIFICATE_ENTRY = "tls.crt";
const KEY_ENTRY = "tls.key";
const AUTHORITY_ENTRY = "ca.crt";

export interface TlsOwner {
  readonly gateway: Gateway;
  /** The object that the listener belongs to: the Gateway or one of its ListenerSets. */
  readonly id: ObjectId;
  /** Annotations of that object. */
  readonly annotations: Readonly<Record<string, string>> | undefined;
}

export function translateListenerTls(
  { gateway, id, annotations }: TlsOwner,
  listener: GatewayListener,
  context: TlsContext,
): TranslatedTls {
  const { mode, options } = listener.tls ?? {};
  const message = create(ListenerTlsSchema);
  // An invalid option must not fall back to other TLS settings than the user chose: without a certificate every
  // handshake fails.
  const invalid = (text: string): TranslatedTls => {
    return { message, error: { reason: Reason.Invalid, message: text }, trustError: undefined };
  };
  const from = certificateSourceOf(options, annotations);
  if (typeof from === "string") return invalid(from);
  if (mode === "Passthrough") {
    if (from.source === "SPIFFE" && !from.isDefault)
      return invalid(`tls.options ${CERTIFICATE_SOURCE}: a listener of mode Passthrough shows no certificate`);
    message.passthrough = true;
    return { message, error: undefined, trustError: undefined };
  }
  const choice = tlsChoiceOf(options);
  if (typeof choice === "string") return invalid(choice);
  if (choice !== undefined) message.choice = choice;
  if (from.source === "SPIFFE") {
    const error = spiffeError(gateway, listener, from.isDefault);
    message.spiffe = error === undefined;
    return { message, error, trustError: undefined };
  }
  const error =
    new CertificateReader(id, context).certificate(listener.tls?.certificateRefs ?? [], message) ??
    new CertificateReader(objectId(gateway), context).clients(validationOf(gateway, listener.port), message);
  return { message, error, trustError: trustErrorOf(message) };
}

/**
 * Rejects certificates and CA certificates next to those of the SPIFFE Workload API, because they would never be used.
 */
function spiffeError(gateway: Gateway, { port, tls }: GatewayListener, isDefault: boolean): ConditionError | undefined {
  if ((tls?.certificateRefs ?? []).length > 0) {
    const way = isDefault ? `, or set tls.options ${CERTIFICATE_SOURCE}: Inline` : "";
    const message = `${CERTIFICATE_SOURCE} SPIFFE takes no certificateRefs; remove them${way}`;
    return { reason: Reason.InvalidCertificateRef, message };
  }
  if (validationOf(gateway, port) === undefined) return undefined;
  const message = `${CERTIFICATE_SOURCE} SPIFFE verifies clients by the workload API; remove spec.tls.frontend validation for port ${port}`;
  return { reason: Reason.InvalidCACertificateRef, message };
}

function trustErrorOf({ clientValidation }: ListenerTls): ConditionError | undefined {
  if (clientValidation === undefined || clientValidation.caPem !== "") return undefined;
  return { reason: Reason.NoValidCACertificate, message: "none of the authorities for clients can be used" };
}

/** Returns the client validation of a port. An entry in `perPort` replaces the default for all ports. */
function validationOf({ spec }: Gateway, port: number): GatewayValidation | undefined {
  const frontend = spec.tls?.frontend;
  const own = frontend?.perPort?.find((entry) => entry.port === port);
  return (own?.tls ?? frontend?.default)?.validation;
}

interface Ref {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/** Reads the certificates and CA certificates that an object references, subject to ReferenceGrants (GEP-709). */
export class CertificateReader {
  readonly #kind: string;
  readonly #namespace: string;
  readonly #context: TlsContext;

  /** @param owner the object whose references are resolved */
  constructor({ kind, namespace }: ObjectId, context: TlsContext) {
    this.#kind = kind;
    this.#namespace = namespace;
    this.#context = context;
  }

  certificate(refs: readonly GatewayCertificateRef[], message: ListenerTls): ConditionError | undefined {
    const error = (text: string): ConditionError => ({ reason: Reason.InvalidCertificateRef, message: text });
    const [ref, ...more] = refs;
    if (ref === undefined || more.length > 0) return error("exactly one certificateRef is needed");
    const kind = ref.kind ?? "Secret";
    if ((ref.group ?? "") !== "" || kind !== "Secret") return error(`certificates come from Secrets, not from ${kind}`);
    const entries = this.#entries({ ...ref, kind }, error);
    if ("reason" in entries) return entries;
    const chain = certificatesIn(entries.get(CERTIFICATE_ENTRY));
    const key = entries.get(KEY_ENTRY) ?? "";
    if (chain === "" || !isPrivateKey(key)) {
      const needed = `a PEM certificate in ${CERTIFICATE_ENTRY} and its PEM private key in ${KEY_ENTRY}`;
      return error(`Secret ${ref.namespace ?? this.#namespace}/${ref.name} needs ${needed}`);
    }
    message.certificatePem = chain;
    message.privateKeyPem = key;
    return undefined;
  }

  /**
   * Adds the CA certificates for clients. Unusable ones are left out; when none is left, no client certificate is
   * trusted.
   */
  clients(validation: GatewayValidation | undefined, message: ListenerTls): ConditionError | undefined {
    if (validation === undefined) return undefined;
    const clients = create(ClientValidationSchema, { optional: validation.mode === "AllowInsecureFallback" });
    message.clientValidation = clients;
    const [error] = validation.caCertificateRefs.flatMap((ref) => this.#authority(ref, clients) ?? []);
    return error;
  }

  #authority({ group, kind, ...name }: GatewayCaCertificateRef, clients: ClientValidation): ConditionError | undefined {
    if (group !== "" || (kind !== "ConfigMap" && kind !== "Secret"))
      return { reason: Reason.InvalidCACertificateKind, message: `authorities come from ConfigMaps, not from ${kind}` };
    const error = (message: string): ConditionError => ({ reason: Reason.InvalidCACertificateRef, message });
    const ref = { ...name, kind };
    const entries = this.#entries(ref, error);
    if ("reason" in entries) return entries;
    const pem = certificatesIn(entries.get(AUTHORITY_ENTRY));
    if (pem === "") return error(`${describeRef(ref)} has no PEM certificate in ${AUTHORITY_ENTRY}`);
    clients.caPem += pem;
    return undefined;
  }

  #entries(ref: Ref, missing: (message: string) => ConditionError): Entries | ConditionError {
    const { secrets, grants, read } = this.#context;
    const { kind, name, namespace = this.#namespace } = ref;
    const from = { group: GATEWAY_GROUP, kind: this.#kind, namespace: this.#namespace };
    if (!isGranted({ from, to: { group: "", kind, namespace, name } }, grants, read)) {
      const object = describeRef({ kind, namespace, name });
      const message = `${object}: not permitted by any ReferenceGrant in namespace ${namespace} for ${this.#kind} from ${this.#namespace}`;
      return { reason: Reason.RefNotPermitted, message };
    }
    const reader = new SecretReader(secrets, read, namespace);
    const found = kind === "Secret" ? reader.secret({ name }) : reader.configMap(name);
    return typeof found === "string" ? missing(found) : found;
  }
}
