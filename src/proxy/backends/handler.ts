/** A backend compiled for one place in the configuration: the end of every pipeline. */
import type { BackendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Logger } from "../../lib/log.ts";
import type { Exchange, Reply } from "../pipeline/exchange.ts";
import type { Upstream, UpstreamTarget } from "./upstream.ts";

export type BackendHandler = (exchange: Exchange) => Promise<Reply>;

/** What a backend may ask of the process and of the place it is compiled for. */
export interface BackendDeps {
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
  /** Resolves another backend's destination (custom.backendRef). @throws ProxyError backend_invalid, endpoint_unavailable */
  readonly destination: (backendKey: string) => UpstreamTarget;
}
