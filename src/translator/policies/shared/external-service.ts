/**
 * Resolves `backendRef` or `url` of a policy to the external service that it calls. One that cannot be resolved is
 * reported and sent as invalid: the policy that depends on it then fails closed, whatever its failure mode.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendAuth } from "../../../../generated/types/backend-auth.ts";
import type { PolicyEndpoint } from "../../../../generated/types/common.ts";
import {
  ExternalServiceSchema,
  OriginSchema,
  type ExternalService,
  type Origin,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import { resolveBackend, type BackendCollections, type Referrer } from "../../references/backend-refs.ts";
import { ownAuthOf } from "../../references/own-auth.ts";
import { withoutBrackets } from "../../../lib/network/local-address.ts";
import type { Report } from "../../shared/report.ts";

const URL_PARTS = /^(https?):\/\/(\[[0-9A-Fa-f:.]+\]|[^/?#@:[\]]+)(?::([0-9]{1,5}))?(\/[^?#]*)?$/;
const MAX_PORT = 65_535;

/** Resolves the external services of one object, and collects the Backends among them. */
export class ServiceReader {
  readonly #collections: BackendCollections;
  readonly #read: Read;
  readonly #from: Referrer;
  readonly #uses = new Set<string>();

  /** @param from the object with the references; a grant has to name its kind */
  constructor(collections: BackendCollections, read: Read, from: Referrer) {
    this.#collections = collections;
    this.#read = read;
    this.#from = from;
  }

  /** Keys of the Backends resolved so far, sorted. */
  get uses(): string[] {
    return [...this.#uses].sort();
  }

  /** Returns the `auth` with which the service is called; undefined when it has none. */
  authOf({ backendRef }: PolicyEndpoint): BackendAuth | undefined {
    if (backendRef === undefined) return undefined;
    return ownAuthOf(backendRef, this.#from.namespace, this.#collections, this.#read);
  }

  /** @param path path of the block that holds the reference, in the form that `report` expects */
  resolve({ backendRef, url }: PolicyEndpoint, path: string, report: Report): ExternalService {
    if (backendRef === undefined) return this.#origin(url ?? "", member(path, "url"), report);
    const found = resolveBackend(backendRef, this.#from, this.#collections, this.#read);
    if (typeof found !== "string") return unresolved(found.message, member(path, "backendRef"), report);
    this.#uses.add(found);
    return create(ExternalServiceSchema, { place: { case: "backend", value: found } });
  }

  #origin(url: string, path: string, report: Report): ExternalService {
    const value = parseOrigin(url);
    if (value === undefined) return unresolved(`"${url}" is not an http or https URL`, path, report);
    return create(ExternalServiceSchema, { place: { case: "origin", value } });
  }
}

function member(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function unresolved(reason: string, path: string, report: Report): ExternalService {
  report(path, reason);
  return create(ExternalServiceSchema, { invalidReason: reason });
}

/** @returns undefined for a text that is not an http or https URL, or whose port does not exist */
export function parseOrigin(url: string): Origin | undefined {
  const [, scheme, host, digits, path] = URL_PARTS.exec(url) ?? [];
  if (host === undefined) return undefined;
  const tls = scheme === "https";
  const port = digits === undefined ? (tls ? 443 : 80) : Number(digits);
  if (port < 1 || port > MAX_PORT) return undefined;
  return create(OriginSchema, { host: withoutBrackets(host), port, tls, path: path ?? "" });
}
