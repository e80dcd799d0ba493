/**
 * Calls the issuer of tokens for clients that have none yet: fetches its metadata, and passes on registrations and token
 * requests. `app.ts` uses it.
 *
 * Anyone can cause these calls, so the metadata is fetched at most once at a time and kept for five minutes, and longer
 * while the issuer cannot be reached. A fetch belongs to no request: a client that leaves must not end it for others.
 */
import { create } from "@bufbuild/protobuf";
import {
  ExternalServiceSchema,
  McpIssuerKind,
  OriginSchema,
  type ExternalService,
  type McpResource,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { messageOf } from "../../../lib/errors.ts";
import { HeaderList } from "../../../lib/header-list.ts";
import type { Logger } from "../../../lib/log.ts";
import {
  CalloutError,
  type Callout,
  type CalloutAnswer,
  type CalloutRequest,
  type Caller,
} from "../../callouts/callout.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { skipSpace, skipValue, TOO_DEEP } from "../message/scan.ts";
import { parseMembers, type IssuerMetadata } from "./documents.ts";
import { withSecret } from "./token-request.ts";

export interface IssuerDeps {
  readonly log: Logger;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  /** Key of the object that names the issuer, for log lines. */
  readonly owner: string;
  /** Opens the client of a service. @param timeoutMs limit of a call */
  readonly callout: (service: ExternalService | undefined, subtype: "Oidc", timeoutMs: number) => Callout;
}

/** A request of a client that is passed on. */
export interface PassedRequest {
  readonly headers: HeaderList;
  readonly body: Buffer;
}

const TIMEOUT_MS = 10_000;
const FRESH_MS = 5 * 60_000;
/** Wait before an issuer that fails is asked again while older metadata serves. */
const RETRY_MS = 15_000;
const REGISTRATIONS = "/clients-registrations/openid-connect";
/** Headers of a token request that concern the issuer; cookies and tokens for the resource do not. */
const TOKEN_HEADERS = ["content-type", "accept", "authorization"];

const NO_REQUEST: Caller = { onAbort: () => undefined };

export class Issuer {
  readonly #spec: McpResource;
  readonly #deps: IssuerDeps;
  readonly #service: Callout;
  readonly #path: string;
  #kept: IssuerMetadata | undefined;
  #freshUntilMs = 0;
  #fetching: Promise<IssuerMetadata> | undefined;

  constructor(spec: McpResource, deps: IssuerDeps) {
    this.#spec = spec;
    this.#deps = deps;
    this.#service = deps.callout(spec.issuerService, "Oidc", TIMEOUT_MS);
    this.#path = this.#service.path.replace(/\/$/, "");
  }

  /** @throws ProxyError issuer_unavailable */
  async metadata(): Promise<IssuerMetadata> {
    if (this.#kept !== undefined && this.#deps.nowMs() < this.#freshUntilMs) return this.#kept;
    this.#fetching ??= this.#refresh().finally(() => (this.#fetching = undefined));
    return this.#fetching;
  }

  async #refresh(): Promise<IssuerMetadata> {
    try {
      this.#kept = await this.#fetch();
      this.#freshUntilMs = this.#deps.nowMs() + FRESH_MS;
    } catch (error) {
      if (this.#kept === undefined) throw error;
      const { log, owner, nowMs } = this.#deps;
      log.warn("older metadata of an issuer serves on", { owner, issuer: this.#spec.issuer, reason: messageOf(error) });
      this.#freshUntilMs = nowMs() + RETRY_MS;
    }
    return this.#kept;
  }

  async #fetch(): Promise<IssuerMetadata> {
    const path =
      this.#spec.kind === McpIssuerKind.KEYCLOAK
        ? `${this.#path}/.well-known/openid-configuration`
        : `/.well-known/oauth-authorization-server${this.#path}`;
    const headers = new HeaderList(["accept", "application/json"]);
    const request = { method: "GET", path, authority: undefined, headers, body: null };
    const { status, body } = await call(this.#service, request, NO_REQUEST);
    if (status !== 200) throw unavailable(`${path}: the issuer answered ${status}`);
    const text = body.toString();
    // JSON.stringify runs out of stack where JSON.parse does not.
    const isTooDeep = skipValue(body, skipSpace(body, 0)) === TOO_DEEP;
    const members = isTooDeep ? undefined : parseMembers(text);
    if (members === undefined) throw unavailable(`${path}: the answer is not a JSON object`);
    // Clients compare as well (RFC 8414 §3.3), but where the gateway puts its own name in, only we can.
    if (members["issuer"] !== this.#spec.issuer) throw unavailable(`${path}: the metadata is of another issuer`);
    return { text, members };
  }

  /** Registers a client (RFC 7591). @throws ProxyError issuer_unavailable, or the error that the exchange ended with */
  register({ headers, body }: PassedRequest, caller: Caller): Promise<CalloutAnswer> {
    const passed = pickHeaders(headers, ["content-type"]);
    const path = this.#path + REGISTRATIONS;
    return call(this.#service, { method: "POST", path, authority: undefined, headers: passed, body }, caller);
  }

  /** Asks for a token (RFC 6749 §3.2). @throws ProxyError credential_unavailable, issuer_unavailable */
  async token(request: PassedRequest, caller: Caller): Promise<CalloutAnswer> {
    const { clientId, clientSecret } = this.#spec;
    const body = withSecret(request, { clientId, clientSecret: clientSecret?.value ?? "" });
    const { members } = await this.metadata();
    const endpoint = this.#tokenEndpoint(members["token_endpoint"]);
    const service = this.#deps.callout(endpoint.service, "Oidc", TIMEOUT_MS);
    const headers = pickHeaders(request.headers, TOKEN_HEADERS);
    return call(service, { method: "POST", path: endpoint.path, authority: undefined, headers, body }, caller);
  }

  /** The issuer chooses the endpoint, also on another host, but a secret never goes where it could be read in transit. */
  #tokenEndpoint(text: unknown): { readonly service: ExternalService; readonly path: string } {
    const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !["http:", "https:"].includes(url.protocol))
      throw unavailable("the metadata has no token_endpoint");
    const tls = url.protocol === "https:";
    const { place } = this.#spec.issuerService ?? {};
    if (!tls && place?.case === "origin" && place.value.tls)
      throw unavailable("the issuer names a token_endpoint without TLS");
    const port = url.port === "" ? (tls ? 443 : 80) : Number(url.port);
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const value = create(OriginSchema, { host, port, tls });
    return {
      service: create(ExternalServiceSchema, { place: { case: "origin", value } }),
      path: url.pathname + url.search,
    };
  }
}

function pickHeaders(headers: HeaderList, names: readonly string[]): HeaderList {
  return new HeaderList(
    names.flatMap((name) => {
      const value = headers.get(name);
      return value === undefined ? [] : [name, value];
    }),
  );
}

async function call(service: Callout, request: CalloutRequest, caller: Caller): Promise<CalloutAnswer> {
  if (service.invalidReason !== undefined) throw unavailable(service.invalidReason);
  try {
    return await service.http(request, caller);
  } catch (error) {
    if (!(error instanceof CalloutError)) throw error;
    throw new ProxyError("issuer_unavailable", { detail: error.detail ?? error.message, cause: error });
  }
}

function unavailable(detail: string): ProxyError {
  return new ProxyError("issuer_unavailable", { detail });
}
