/**
 * Calls that the gateway makes on its own to a backend, and connections of raw bytes: their destination, their
 * authority, and their place in statistics. The registry uses it.
 */
import type { Backend, BackendSettings, StaticBackend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { SessionKey } from "../balancing/affinity.ts";
import type { EndpointState } from "../balancing/endpoints.ts";
import type { CallTarget } from "../upstream/upstream.ts";
import { compileAuthorization } from "./authorization.ts";
import type { BackendDeps } from "./handler.ts";
import type { Destination } from "./http-handler.ts";

/** A backend compiled for raw connections and own calls, which have no client request. */
export interface CompiledDestination extends Omit<CallTarget, "target" | "begin"> {
  readonly destination: Destination;
  readonly session: SessionKey | undefined;
  /** Whether connections of raw bytes are refused, because there is no request to authorize. */
  readonly refusesBytes: boolean;
  /**
   * Whether own calls are refused too: a service of `extAuth` may be behind the same backend, and would be asked about
   * its own calls without end.
   */
  readonly refusesCalls: boolean;
}

export function compileOwnDestination(
  message: Backend,
  destination: Destination,
  settings: BackendSettings,
  deps: Pick<BackendDeps, "auth" | "expression">,
): CompiledDestination {
  const { http, sessionAffinity } = settings;
  const auth = deps.auth(settings.auth);
  const authorization = compileAuthorization(settings.authorization, deps);
  const refusesCalls = settings.extAuth !== undefined;
  return {
    destination,
    session: sessionAffinity === undefined ? undefined : new SessionKey(sessionAffinity, deps.expression),
    authority: authorityOf(message),
    auth: authorization === undefined ? auth : authorization.before(auth),
    http,
    refusesBytes: refusesCalls || authorization !== undefined,
    refusesCalls,
  };
}

/** Places of former policies stay in the table until it has this many entries and is emptied. */
const MAX_PLACES = 64;

/** The destinations for raw connections and own calls, by the key of the backend and then by place. */
export class OwnDestinations {
  readonly #compiled = new Map<string, Map<string, CompiledDestination>>();

  /** @param compile is called where the destination is not known; nothing is kept when it throws */
  get(key: string, place: string, compile: () => CompiledDestination): CompiledDestination {
    const known = this.#compiled.get(key)?.get(place);
    if (known !== undefined) return known;
    const compiled = compile();
    let places = this.#compiled.get(key);
    if (places === undefined || places.size > MAX_PLACES) this.#compiled.set(key, (places = new Map()));
    places.set(place, compiled);
    return compiled;
  }

  delete(key: string): void {
    this.#compiled.delete(key);
  }
}

/** Counts a call for the statistics of its endpoint. @returns a callback for its end */
export function beginCall({ record }: EndpointState): (healthy: boolean | undefined) => void {
  const startedMs = performance.now();
  record.begin();
  return (healthy) => {
    if (healthy === true) record.recordHealthy((performance.now() - startedMs) / 1000);
    if (healthy === false) record.recordUnhealthy();
    record.end();
  };
}

/** Returns the authority for requests that the gateway makes on its own. */
function authorityOf({ kind }: Backend): string {
  switch (kind.case) {
    case "service":
      return `${kind.value.hostname}:${kind.value.port}`;
    case "static":
      return authorityOfStatic(kind.value);
    case "a2a":
      return kind.value.static === undefined ? "" : authorityOfStatic(kind.value.static);
    case "dynamic":
    case "ai":
    case "models":
    case "mcp":
    case "agentRuntime":
    case "inferencePool":
    case undefined:
      return "";
  }
}

function authorityOfStatic({ host, port, unixPath }: StaticBackend): string {
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return unixPath === "" ? `${name}:${port}` : "localhost";
}
