/** A backend compiled for one place in the configuration: the end of every pipeline. */
import type { BackendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import type { CelPhase } from "../../cel/phases.ts";
import type { Logger } from "../../lib/log.ts";
import type { RoutedExchange, Reply } from "../pipeline/exchange.ts";
import type { BackendMeter } from "../../telemetry/metrics.ts";
import type { PickDeps } from "../balancing/pick.ts";
import type { ConnectionSettings } from "../upstream/connection-settings.ts";
import type { EndpointStats } from "../balancing/endpoint-stats.ts";
import type { Upstream, UpstreamTarget } from "../upstream/upstream.ts";

export type BackendHandler = (exchange: RoutedExchange) => Promise<Reply>;

/** What the choice among the members of a set needs of the process. */
export interface EndpointDeps extends PickDeps {
  /** An expression that does not compile comes back as one that always fails. */
  readonly expression: (source: string, place: CelPhase) => Expression;
  /** How well a member of this backend does, wherever it is asked from. @param name unique in the backend */
  readonly record: (name: string) => EndpointStats;
  /** Hears of its calls; undefined: nobody counts. */
  readonly meter?: BackendMeter | undefined;
}

/** Where a call goes, and who hears how it went besides the member that makes it; undefined: nobody. */
export interface ResolvedEndpoint {
  readonly target: UpstreamTarget;
  readonly record: EndpointStats | undefined;
}

/** What a backend may ask of the process and of the place it is compiled for. */
export interface BackendDeps extends EndpointDeps {
  /** Key of the backend. */
  readonly owner: string;
  readonly log: Logger;
  readonly upstream: Upstream;
  /**
   * The settings in force: Gateway < Listener < Route < Rule < Backend < section, then the inline ones of the object.
   * @param section provider name, "" for none @param inline strongest level @param defaults weakest level
   */
  readonly settings: (
    section: string,
    inline: BackendSettings | undefined,
    defaults?: BackendSettings,
  ) => BackendSettings;
  /** How connections are made with such settings; the same object for the same ones. */
  readonly connection: (settings: BackendSettings) => ConnectionSettings;
  /** An endpoint of another backend (custom.backendRef). @throws ProxyError backend_invalid, endpoint_unavailable */
  readonly destination: (backendKey: string) => ResolvedEndpoint;
}
