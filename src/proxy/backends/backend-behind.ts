/**
 * The Service or InferencePool behind a provider of language models (`custom.backendRef`), compiled with the settings
 * of the provider. What the backend and the policies on it say wins over all other settings, because it is closest to
 * the wire. The registry creates it, and a provider picks its endpoints from it.
 */
import { HttpVersion, type Backend, type BackendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { SessionKey } from "../balancing/affinity.ts";
import type { EndpointState } from "../balancing/endpoints.ts";
import { HealthRule } from "../balancing/health.ts";
import { ProxyError, type ProxyErrorCode } from "../exchange/errors.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";
import type { CompiledPolicy } from "../policies/policy-set.ts";
import type { BackendBehind, EndpointDeps, PickedEndpoint, PickedPool, ProviderDestination } from "./handler.ts";
import type { Destination } from "./http-handler.ts";
import { mergeSettings, settingsOfLevel } from "./settings.ts";

type CompileDeps = Pick<EndpointDeps, "expression" | "nowMs" | "meter"> & {
  readonly compile: (settings: BackendSettings) => Destination;
};

interface FoundBackend {
  readonly key: string;
  /** undefined when it does not exist. */
  readonly message: Backend | undefined;
  /** The policies on it, oldest first. */
  readonly attached: readonly CompiledPolicy[];
}

/**
 * @param depsOf called with the backend and with the settings of it and its policies
 * @returns a backend that refuses all calls when it does not exist or a policy on it is invalid
 */
export function openBackendBehind(
  { key, message, attached }: FoundBackend,
  depsOf: (message: Backend, own: BackendSettings) => CompileDeps,
): BackendBehind {
  if (message === undefined) return refusing("backend_invalid", `${key} does not exist`);
  const closed = attached.find(({ failsClosed }) => failsClosed);
  if (closed !== undefined) return refusing("policy_refused", closed.key);
  const own = mergeSettings([settingsOfLevel(attached), message.settings]);
  const deps = depsOf(message, own);
  return { settings: own, destination: (settings) => compileProviderDestination(settings, own, deps) };
}

function refusing(code: ProxyErrorCode, detail: string): BackendBehind {
  const destination: ProviderDestination = {
    host: "",
    version: HttpVersion.UNSPECIFIED,
    pick() {
      throw new ProxyError(code, { detail });
    },
  };
  return { settings: undefined, destination: () => destination };
}

/**
 * @param settings those in force
 * @param own settings of the backend and of the policies on it
 */
function compileProviderDestination(
  settings: BackendSettings,
  own: BackendSettings,
  deps: CompileDeps,
): ProviderDestination {
  const destination = deps.compile(settings);
  const { picker, version, hostname = "" } = destination;
  // A rule of the provider says when the provider is out of rotation, and nothing about the endpoints behind it.
  const rule = own.health === undefined ? undefined : new HealthRule(own.health, deps);
  if (picker !== undefined) {
    // The picker knows best which endpoints serve, so an ejected one does not stand for the others.
    const ejects = rule === undefined ? undefined : { rule, hasOthers: () => false };
    const picked: PickedPool = {
      pool: picker,
      target: (endpoint) => destination.target(endpoint),
      ruled: ({ record }) => ({ record, rule: ejects }),
    };
    return { host: hostname, version, pick: () => picked };
  }
  const { sessionAffinity } = settings;
  const session = sessionAffinity === undefined ? undefined : new SessionKey(sessionAffinity, deps.expression);
  const ejects = rule === undefined ? undefined : { rule, hasOthers: () => isInRotation(destination, deps.nowMs()) };
  const pickFor = (exchange: RoutedExchange, affinity: ReturnType<SessionKey["ofConnection"]>): PickedEndpoint => {
    const tried = exchange.tried === undefined ? undefined : triedBehind(exchange);
    const options = affinity === undefined && tried === undefined ? undefined : { affinity, tried };
    const endpoint = destination.pick(options, exchange);
    tried?.push(endpoint);
    return { target: destination.target(endpoint), state: { record: endpoint.record, rule: ejects } };
  };
  return {
    host: hostname,
    version,
    pick(exchange) {
      const key = session?.of(exchange);
      return key instanceof Promise ? key.then((affinity) => pickFor(exchange, affinity)) : pickFor(exchange, key);
    },
  };
}

function isInRotation({ candidates }: Destination, nowMs: number): boolean {
  for (const { record } of candidates?.() ?? []) if (!record.isEvicted(nowMs)) return true;
  return false;
}

/**
 * Endpoints behind providers that a request has tried. They are kept apart from `tried`, which counts the attempts and
 * holds the provider of each.
 */
const TRIED = new WeakMap<RoutedExchange, EndpointState[]>();

function triedBehind(exchange: RoutedExchange): EndpointState[] {
  let tried = TRIED.get(exchange);
  if (tried === undefined) TRIED.set(exchange, (tried = []));
  return tried;
}
