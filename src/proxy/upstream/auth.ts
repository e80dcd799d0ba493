/**
 * The interface of what authenticates requests to a backend. `backends/auth` compiles it from the `auth` block in
 * force; HTTP backends, LLM providers, callouts and tunnels apply it to each request that they send.
 */
import type { BackendAuth } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { MaybePromise, RoutedExchange } from "../exchange/exchange.ts";
import type { ConnectionSettings } from "./dial/connection-settings.ts";

/** A call that the gateway makes on its own has no request of a client; what only a request has is unset then. */
export type AuthCaller = Pick<RoutedExchange, "onAbort"> & Partial<RoutedExchange>;

/** What a signature is made for; an empty member is left to the configuration. */
export interface SigningScope {
  readonly region: string;
  /** Name of the service in signatures, such as `bedrock`. */
  readonly service: string;
}

/** The call that leaves. */
export interface AuthCall {
  readonly caller: AuthCaller;
  /** Name or address of the destination, without the port. */
  readonly host: string;
  /** How the destination is reached: a proxy in between may be able to read a credential. */
  readonly connection: Pick<ConnectionSettings, "tls" | "proxy">;
  /** What a signature is made for, where the configuration does not say; unset where the backend does not either. */
  readonly signingScope?: SigningScope | undefined;
}

export interface UnsignedRequest {
  readonly method: string;
  /** Path and query as they leave. */
  readonly path: string;
  /** Holds `host`. */
  readonly headers: HeaderList;
  readonly body: Buffer;
}

/**
 * Edits the headers. A credential replaces anything that the client sent in the same place, so that both never travel
 * together.
 * @param path path and query
 * @returns the path, which differs when a credential is a query parameter
 * @throws ProxyError credential_unavailable when there is no credential; the request then must not be sent
 */
export type PlaceCredential = (call: AuthCall, headers: HeaderList, path: string) => MaybePromise<string>;

/**
 * Signs a request, which nothing may change afterwards.
 * @throws ProxyError credential_unavailable
 */
export type SignRequest = (call: AuthCall, request: UnsignedRequest) => MaybePromise<void>;

export interface RequestAuth {
  readonly message: BackendAuth;
  readonly place: PlaceCredential;
  /** Signs the finished request last; undefined when requests are not signed, so that bodies may stream. */
  readonly sign: SignRequest | undefined;
  /**
   * Checks whether a credential that was placed for another destination may go to this one; unset where it may go
   * anywhere.
   * @throws ProxyError credential_unavailable
   */
  readonly checkDestination: ((call: AuthCall) => void) | undefined;
  /**
   * Learns the time of a service that refused a signature; unset where nothing is signed.
   * @param date its `Date` field
   * @returns whether the request may be signed and sent once more, because the clocks are minutes apart
   */
  readonly correctClock: ((host: string, date: string | undefined) => boolean) | undefined;
  /** Whether a credential is written into the query. */
  readonly writesQuery: boolean;
  /**
   * Lower-case name of the header that the configuration chose for the credential; "" for another place that it chose;
   * undefined when it chose none.
   */
  readonly chosenHeader: string | undefined;
}
