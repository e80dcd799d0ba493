/**
 * The interface of a backend handler, which ends every pipeline, and the dependencies that a handler gets. The registry
 * compiles one handler for each backend and place in the configuration.
 */
import type {
  BackendAuth,
  BackendSettings,
  ExternalService,
  HttpVersion,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import type { CelPhase } from "../../cel/environments/phases.ts";
import type { Logger } from "../../lib/log.ts";
import type { MaybePromise, RoutedExchange, Reply } from "../exchange/exchange.ts";
import type { Callout } from "../callouts/callout.ts";
import type { OutboundSubtype } from "../observability/tracing/outbound.ts";
import type { BackendMeter } from "../../telemetry/metrics.ts";
import type { Catalogs } from "../llm/cost/catalogs.ts";
import type { Sessions } from "../mcp/session/sessions.ts";
import type { PickDeps } from "../balancing/pick.ts";
import type { ConnectionSettings, UpstreamTarget } from "../upstream/dial/connection-settings.ts";
import type { Admit } from "./admission.ts";
import type { EndpointState } from "../balancing/endpoints.ts";
import type { EndpointRule } from "./attempt.ts";
import type { EndpointPicker } from "./inference-pool/picker.ts";
import type { EndpointStats } from "../balancing/endpoint-stats.ts";
import type { RequestAuth, SigningScope } from "../upstream/auth.ts";
import type { CallTarget, Upstream } from "../upstream/upstream.ts";

export type BackendHandler = (exchange: RoutedExchange) => Promise<Reply>;

/** Dependencies of the choice among endpoints. */
export interface EndpointDeps extends PickDeps {
  /** Compiles an expression; one that does not compile becomes one that always fails. */
  readonly expression: (source: string, place: CelPhase) => Expression;
  /**
   * Returns the statistics of an endpoint of this backend, shared by all handlers.
   * @param name unique in the backend
   */
  readonly record: (name: string) => EndpointStats;
  /** Counts the calls; undefined when they are not counted. */
  readonly meter?: BackendMeter | undefined;
}

/** A backend behind a provider, before the settings in force are known. */
export interface BackendBehind {
  /** Settings of the backend and of the policies on it, which win over all others. */
  readonly settings: BackendSettings | undefined;
  /** @param settings those in force, which include the ones above */
  destination(settings: BackendSettings): ProviderDestination;
}

export interface ProviderDestination {
  /** Name of the backend for credentials; "" where it has none. */
  readonly host: string;
  /** HTTP version that the backend declares. */
  readonly version: HttpVersion;
  /** @throws ProxyError backend_invalid, endpoint_unavailable, policy_refused */
  pick(exchange: RoutedExchange): MaybePromise<PickedEndpoint | PickedPool>;
}

/** An endpoint to call. */
export interface PickedEndpoint {
  readonly pool?: undefined;
  readonly target: UpstreamTarget;
  /** The endpoint, with what ejects it; undefined when the provider is the only endpoint. */
  readonly state: RuledEndpoint | undefined;
}

/** An InferencePool, whose picker chooses the endpoint of a request. */
export interface PickedPool {
  readonly pool: EndpointPicker;
  target(endpoint: EndpointState): UpstreamTarget;
  ruled(endpoint: EndpointState): RuledEndpoint;
}

export interface RuledEndpoint extends Pick<EndpointState, "record"> {
  /** What ejects the endpoint; undefined when nothing does. */
  readonly rule: EndpointRule | undefined;
}

/** How calls to a public host are authenticated where its settings do not say. */
interface HostDefaults {
  readonly auth?: BackendAuth;
  readonly signingScope?: SigningScope;
}

/** An endpoint of another backend, with what a call to that backend needs besides. */
export interface ServiceEndpoint extends Pick<CallTarget, "authority" | "auth" | "signingScope" | "http"> {
  readonly target: UpstreamTarget;
  readonly record: EndpointStats;
  /** "address:port". */
  readonly name: string;
}

/** Dependencies of a backend on the process and on the place that it is compiled for. */
export interface BackendDeps extends EndpointDeps {
  /** Key of the backend; connections are retired by it. */
  readonly owner: string;
  /** The backend with the policies of the place: handlers of equal place replace each other. */
  readonly place: string;
  readonly log: Logger;
  /** Prices and tags of models, by Gateway. */
  readonly catalogs: Pick<Catalogs, "of">;
  readonly upstream: Upstream;
  /** The MCP sessions of this thread, which outlive changes of the configuration. */
  readonly sessions: Sessions;
  /**
   * Merges the settings in force: Gateway < listener < route < rule < backend < section, then the inline ones of the
   * object.
   * @param section name of a provider, "" for none
   * @param inline of the section
   * @param more the weakest level, and that of the backend behind a provider, which is the strongest
   */
  readonly settings: (
    section: string,
    inline: BackendSettings | undefined,
    more?: { readonly defaults?: BackendSettings | undefined; readonly behind?: BackendSettings | undefined },
  ) => BackendSettings;
  /** Compiles the `auth` block in force. */
  readonly auth: (message: BackendAuth | undefined) => RequestAuth | undefined;
  /** Returns the connection settings; the same object for the same blocks. */
  readonly connection: (settings: BackendSettings) => ConnectionSettings;
  /** Returns another backend, which a provider leads to (`custom.backendRef`). */
  readonly behind: (backendKey: string) => BackendBehind;
  /**
   * Returns what the traffic policies on another backend do with an attempt that goes there; undefined when none
   * targets it.
   */
  readonly traffic: (backendKey: string) => Admit | undefined;
  /**
   * Picks an endpoint of a Service, or the one of this name, even when it is ejected.
   * @returns undefined when the Service no longer has the endpoint of this name
   * @throws ProxyError backend_invalid, endpoint_unavailable, policy_refused
   */
  readonly serviceEndpoint: (backendKey: string, pinned: string | undefined) => ServiceEndpoint | undefined;
  /**
   * Returns the client of a service.
   * @param subtype a guard by default
   * @param timeoutMs limit of a call, where the settings of the service name none
   */
  readonly callout: (service: ExternalService | undefined, subtype?: OutboundSubtype, timeoutMs?: number) => Callout;
  /**
   * Returns the client of an endpoint picker.
   * @param unverifiedTls uses TLS without verification, where the settings of the service name no TLS
   */
  readonly pickerCallout: (service: ExternalService | undefined, unverifiedTls: boolean) => Callout;
  /** Returns the client of a guard service at a public host, called with settings of its own over TLS. */
  readonly hostCallout: (host: string, settings: BackendSettings | undefined, defaults?: HostDefaults) => Callout;
}
