/** A gateway whose requests are traced, and the real OpenTelemetry collector that receives their spans. */
import assert from "node:assert/strict";
import { startCollector, type CollectedSpan, type Collector } from "../../testbed/collector.ts";
import { documents, GATEWAY, gatewayPolicy, route, startGateway, staticBackend, type TestGateway } from "./gateway.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface Traced {
  readonly gateway: TestGateway;
  readonly collector: Collector;
  readonly url: string;
  /** Manifests with which the gateway was started. */
  readonly manifests: string;
  /**
   * Waits for the requests in progress and ends the gateway, which flushes its spans.
   * @returns every span of the test, those of servers first
   */
  spans(): Promise<CollectedSpan[]>;
}

/** Traces every request. */
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
  /** Members of `frontend.tracing` besides its destination, as flow YAML. */
  readonly tracing?: string;
  /** Returns the destination of the spans; by default the GwBackend `collector`. */
  readonly place?: (collector: Collector) => string;
  readonly more?: readonly string[];
  /** Manifests that replace GATEWAY, the route and the backend. */
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
      // The collector prints what it received; after it has stopped, its output is complete.
      await collector.stop();
      return collector.spans.toSorted((a, b) => a.kind - b.kind || Number(a.start - b.start));
    },
  };
}

/** Resolves when no request is in progress, so that all earlier ones have left their spans. */
async function idle({ proxy }: TestGateway): Promise<void> {
  for (;;) {
    const { endpoints } = await proxy.state();
    if (endpoints.every(({ pendingRequests }) => pendingRequests === 0)) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Returns the only item that fits; fails when there is none or more than one. */
export function only<T>(all: readonly T[], fits: (one: T) => boolean = () => true): T {
  const found = all.filter(fits);
  assert.equal(found.length, 1, `${found.length} of ${all.length} fit`);
  return found[0] as T;
}
