/**
 * Every kind of `auth` on every service that the gateway calls of its own: servers of policies, guards, collectors and
 * token endpoints. One gateway for each kind has all of them.
 */
import assert from "node:assert/strict";
import { createMetrics } from "../../../../src/telemetry/metrics.ts";
import { call } from "../../../support/clients/http.ts";
import { createIssuer, keySet } from "../../../support/fixtures/tokens.ts";
import { startAuthKinds } from "../../../support/gateway/auth-kinds.ts";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  route,
  routePolicy,
  startGateway,
} from "../../../support/gateway/gateway.ts";
import { eventually } from "../../../support/gateway/process.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { startCalledServices } from "../../../support/servers/called-services.ts";
import { startMcpServer } from "../../../support/servers/mcp-server.ts";
import { startScripted } from "../../../support/servers/scripted-server.ts";

const reference = (name: string): string => `backendRef: {group: gwproxy.dev, kind: GwBackend, name: ${name}}`;
const HTTP = reference("over-http");
const GRPC = reference("over-grpc");

/** What a call shows in place of the credential. */
type Instead = "refused" | "nothing";

interface Called {
  /** Name of the service, of the route and of its backend. */
  readonly service: string;
  /** Members of the policy on the route, or of `policies` of its backend. */
  readonly traffic?: string;
  readonly policies?: string;
  /** The variant of the backend; a plain upstream by default. @param ports of the upstreams */
  readonly variant?: (ports: { readonly web: number; readonly mcp: number }) => string;
  readonly request?: { readonly path: string; readonly body: object };
  /** Kinds whose credential does not reach this service. */
  readonly instead: Readonly<Record<string, Instead | undefined>>;
}

/** A signature covers a body, which a stream of messages has not. */
const UNSIGNED: Called["instead"] = { cloudA: "refused" };
/** What calls that serve no single request have: no token that a client brought. */
const NO_CLIENT: Called["instead"] = {
  passthrough: "nothing",
  oauthTokenExchange: "refused",
  crossAppAccess: "refused",
};

const CALLED: readonly Called[] = [
  { service: "ext-auth-over-http", traffic: `extAuth: {${HTTP}, http: {path: '"/ext-auth-over-http"'}}`, instead: {} },
  { service: "ext-auth-over-grpc", traffic: `extAuth: {${GRPC}, grpc: {}}`, instead: UNSIGNED },
  { service: "ext-proc", traffic: `extProc: {${GRPC}}`, instead: UNSIGNED },
  {
    service: "rate-limit",
    traffic: `rateLimit: {global: {${GRPC}, domain: d, descriptors: [{entries: [{name: one, expression: '"1"'}]}]}}`,
    instead: UNSIGNED,
  },
  {
    service: "ext-auth-of-backend",
    policies: `extAuth: {${HTTP}, http: {path: '"/ext-auth-of-backend"'}}`,
    instead: {},
  },
  {
    service: "token-endpoint",
    policies: `auth: {oauthTokenExchange: {${HTTP}, path: /token-endpoint}}`,
    // Exchanges do not chain, and the call for a token serves all that wait for it.
    instead: NO_CLIENT,
  },
  {
    service: "guard-over-http",
    policies: `ai: {promptGuard: {request: [{webhook: {${HTTP}}}]}}`,
    variant: ({ web }) => `ai: {provider: {llma: {}, host: 127.0.0.1, port: ${web}}}`,
    request: { path: "/v1/chat/completions", body: { model: "m", messages: [{ role: "user", content: "hi" }] } },
    instead: {},
  },
  {
    service: "mcp-guard",
    policies: `mcp: {guardrails: {processors: [{methods: {"*": Request}, remote: {${GRPC}}}]}}`,
    variant: ({ mcp }) => `mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${mcp}}}]}`,
    request: { path: "", body: { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} } },
    instead: UNSIGNED,
  },
];
/** What they are sent comes from many requests, in batches. */
const COLLECTORS = [
  { service: "collector-over-grpc", signal: "logs", instead: { ...NO_CLIENT, ...UNSIGNED } },
  { service: "collector-over-http", signal: "traces", instead: NO_CLIENT },
] satisfies readonly (Pick<Called, "service" | "instead"> & { readonly signal: string })[];
const FRONTEND = `{accessLog: {otlp: {${GRPC}, protocol: GRPC}}, tracing: {${HTTP}, protocol: HTTP, path: /collector-over-http, randomSampling: "true"}}`;

function backend(name: string, variant: string, policies: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {${variant}${policies === "" ? "" : `, policies: {${policies}}`}}
`;
}

prove([], "every service that the gateway calls gets the credential of each kind, or no call", async (context) => {
  const kinds = await startAuthKinds(context);
  const issuer = await createIssuer("https://issuer.test");
  const { port: web } = await startScripted(context, (_request, response) => response.end("{}"));
  const { port: mcp } = await startMcpServer(context, { hasNoSessions: true, answersJson: true });
  const headers = {
    authorization: `Bearer ${await issuer.token()}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const run = async (kind: string, auth: string, shows: RegExp): Promise<void> => {
    const { httpPort, grpcPort, shown } = await startCalledServices(context);
    const verifies = `jwtAuthentication: {providers: [{issuer: "${issuer.name}", jwks: {inline: '${keySet(issuer.jwk)}'}}]}`;
    const manifests = documents(
      GATEWAY,
      gatewayPolicy("all", `  traffic: {${verifies}}\n  frontend: ${FRONTEND}`),
      kinds.object,
      backend("over-http", `static: {host: 127.0.0.1, port: ${httpPort}}`, `auth: ${auth}`),
      backend("over-grpc", `static: {host: 127.0.0.1, port: ${grpcPort}}`, `auth: ${auth}`),
      ...CALLED.flatMap(({ service, traffic, policies = "", variant }) => [
        backend(service, variant?.({ web, mcp }) ?? `static: {host: 127.0.0.1, port: ${web}}`, policies),
        route(service, service, `/${service}`),
        ...(traffic === undefined ? [] : [routePolicy(service, service, `  traffic: {${traffic}}`)]),
      ]),
    );
    const metrics = createMetrics("test");
    const gateway = await startGateway(context, manifests, { telemetry: { metrics } });
    const check = (
      authorization: string | undefined,
      expected: Instead | undefined,
      isRefused: boolean,
      where: string,
    ) => {
      if (expected === "refused") assert.ok(authorization === undefined && isRefused, where);
      else if (expected === "nothing") assert.equal(authorization, "", where);
      else assert.match(authorization ?? "no call", shows, where);
    };
    for (const { service, request, instead } of CALLED) {
      const url = `${gateway.url()}/${service}${request?.path ?? ""}`;
      const { status, body } = await call(url, { method: "POST", headers, body: JSON.stringify(request?.body ?? {}) });
      const isRefused = status >= 400 || body.includes('"error"');
      check(shown.get(service)?.[0], instead[kind], isRefused, `${kind} at ${service}: ${status} ${body}`);
    }
    for (const { service, signal, instead } of COLLECTORS) {
      await eventually(async () => {
        const lost = new RegExp(`gwproxy_otlp_dropped_total\\{signal="${signal}"\\} [1-9]`);
        assert.ok(shown.has(service) || lost.test(metrics.print("prometheus")), `${kind} at ${service}`);
      });
      check(shown.get(service)?.[0], instead[kind], true, `${kind} at ${service}`);
    }
  };
  // All at once, because collectors are sent what gathered in some seconds.
  await Promise.all(Object.entries(kinds.blocks).map(([kind, [auth, shows]]) => run(kind, auth, shows)));
});
