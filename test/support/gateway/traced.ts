/** A gateway whose requests are traced, and the real collector that gets their spans. */
import assert from "node:assert/strict";
import { startCollector, type CollectedSpan, type Collector } from "../../testbed/collector.ts";
import { documents, GATEWAY, gatewayPolicy, route, startGateway, staticBackend, type TestGateway } from "./gateway.ts";
import type { ProofContext } from "./prove.ts";

export interface Traced {
  readonly gateway: TestGateway;
  readonly collector: Collector;
  readonly url: string;
  /** What the gateway was started with. */
  readonly manifests: string;
  /** Waits for the calls under way and ends the gateway, which sends what it holds. @returns every span of the test, those of servers first */
  spans(): Promise<CollectedSpan[]>;
}

/** Traces every request, over gRPC. */
export const ALWAYS = 'randomSampling: "true"';
export const SERVER = 2;
export const CLIENT = 3;
export const ERROR = 2;
export const PARENT: { readonly traceId: string; readonly spanId: string } = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
};
export const TRACEPARENT: string = `00-${PARENT.traceId}-${PARENT.spanId}-01`;

export interface TracedParts {
  /** Port of the backend `web`, to which the route `web` leads. */
  readonly port: number;
  /** Members of `frontend.tracing` beside its place, as YAML flow. */
  readonly tracing?: string;
  /** Where the collector is; by default the GwBackend `collector`. */
  readonly place?: (collector: Collector) => string;
  readonly more?: readonly string[];
  /** In place of GATEWAY, the route and the backend. */
  readonly base?: readonly string[];
  readonly random?: () => number;
}

const AT_BACKEND = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: collector}";

export async function startTraced(context: ProofContext, parts: TracedParts): Promise<Traced> {
  const { port, tracing = ALWAYS, place = () => AT_BACKEND, more = [], random = Math.random } = parts;
  const collector = await startCollector(context);
  const { base = [GATEWAY, staticBackend("web", port), route("web", "web")] } = parts;
  const policy = gatewayPolicy("tracing", `  frontend: {tracing: {${place(collector)}, ${tracing}}}`);
  const backend = staticBackend("collector", collector.grpcPort);
  const manifests = documents(...base, backend, policy, ...more);
  const gateway = await startGateway(context, manifests, { random });
  assert.deepEqual(gateway.problems(), []);
  return {
    manifests,
    gateway,
    collector,
    url: gateway.url(),
    async spans() {
      await idle(gateway);
      await gateway.proxy.end();
      // What the collector has taken it also prints; the end of its output is behind all of it.
      await collector.stop();
      return collector.spans.toSorted((a, b) => a.kind - b.kind || Number(a.start - b.start));
    },
  };
}

/** Resolves when no call is under way any more: what began before has left its spans. */
async function idle({ proxy }: TestGateway): Promise<void> {
  for (;;) {
    const { endpoints } = await proxy.state();
    if (endpoints.every(({ pendingRequests }) => pendingRequests === 0)) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The one that fits. */
export function only<T>(all: readonly T[], fits: (one: T) => boolean = () => true): T {
  const found = all.filter(fits);
  assert.equal(found.length, 1, `${found.length} of ${all.length} fit`);
  return found[0] as T;
}
