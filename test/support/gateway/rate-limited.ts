/** Starts gateways with routes under a global rate limit: one to an echo, one to an LLM provider. */
import assert from "node:assert/strict";
import type { RateLimitRequest } from "../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import { startEcho } from "../servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  startWeb,
  staticBackend,
  type TestGateway,
} from "./gateway.ts";
import { call, type Answer } from "../clients/http.ts";
import { mockBackend, startMockProvider } from "./mock-provider.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { startRateServer, type RateServer } from "../servers/rate-server.ts";

export interface Setup extends RateServer {
  readonly gateway: TestGateway;
  readonly url: string;
}

/**
 * Starts a gateway with a route `web` to an echo, whose limits the GwBackend `limits` counts.
 * @param rateLimit flow YAML
 */
export async function limited(
  context: ProofContext,
  rateLimit: string,
  decide?: Parameters<typeof startRateServer>[1],
  more: readonly string[] = [],
): Promise<Setup> {
  const server = await startRateServer(context, decide);
  const echo = await startEcho(context);
  const gateway = await startWeb(
    context,
    echo.port,
    staticBackend("limits", server.port),
    routePolicy("limit", "web", `  traffic: {rateLimit: ${rateLimit}}`),
    ...more,
  );
  assert.deepEqual(
    gateway.problems().filter(({ severity }) => severity === "error"),
    [],
  );
  return { ...server, gateway, url: gateway.url() };
}

export const LIMITS: string = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: limits}";
export const BY_PATH: string = "{entries: [{name: path, expression: request.path}]}";

/** Formats each descriptor as "name=value,… (hits)". */
export function asked({ descriptors }: RateLimitRequest): string[] {
  return descriptors.map(({ entries, hitsAddend }) => {
    const names = entries.map(({ key, value }) => `${key}=${value}`).join(",");
    return hitsAddend === undefined ? names : `${names} (${hitsAddend})`;
  });
}

export interface Model {
  readonly ask: (more?: object) => Promise<Answer>;
  readonly served: () => number;
}

/** Starts a gateway with a limited route to an LLM provider whose answers cost six tokens. */
export async function limitedModel(
  context: ProofContext,
  rateLimit: string,
  more: readonly string[] = [],
): Promise<Model> {
  const provider = await startMockProvider(context);
  const backend = mockBackend(provider.port);
  const policy = routePolicy("limit", "ai", `  traffic: {rateLimit: ${rateLimit}}`);
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("ai", "ai"), policy, ...more));
  assert.deepEqual(
    gateway.problems().filter(({ severity }) => severity === "error"),
    [],
  );
  const chat = { model: "mock", messages: [{ role: "user", content: "hello there" }] };
  return {
    served: () => provider.served(),
    ask: (extra = {}) =>
      call(`${gateway.url()}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...chat, ...extra }),
      }),
  };
}
