/** The block of a GwBackend counts for the calls of policies too: limits, and the proxy on the way. */
import assert from "node:assert/strict";
import { ServerCredentials } from "@grpc/grpc-js";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { ALLOW, startAuthServer } from "../../support/servers/auth-server.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { startForwardProxy } from "../../support/servers/forward-proxy.ts";
import {
  documents,
  GATEWAY,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { startSocket } from "../../support/servers/grpc.ts";
import { call } from "../../support/clients/http.ts";
import { gatewayRef, policy } from "../../support/proofs/policy-places.ts";
import { startProcServer } from "../../support/servers/proc-server.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";

const REF = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: called}";

interface Called {
  readonly host?: string;
  readonly port: number;
  /** Flow YAML of its block. */
  readonly block: string;
  /** Flow YAML of `spec.traffic`. */
  readonly traffic: string;
  readonly more?: readonly string[];
}

/** A route whose policy calls the GwBackend `called`; the request itself may take one second. */
async function serve(context: ProofContext, { host = "127.0.0.1", port, block, traffic, more = [] }: Called) {
  const echo = await startEcho(context);
  const called = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: called}
spec: {static: {host: ${host}, port: ${port}}, policies: {${block}}}
`;
  const limit = policy("limit", { refs: gatewayRef(), says: "traffic: {timeouts: {request: 1800ms}}" });
  const own = [
    staticBackend("web", echo.port),
    route("web", "web"),
    routePolicy("p", "web", `  traffic: {${traffic}}`),
  ];
  return startGateway(context, documents(GATEWAY, called, ...own, limit, ...more));
}

const statusOf = async (gateway: TestGateway): Promise<number> => (await call(gateway.url())).status;

prove(
  "GwBackend spec.policies.http.requestTimeout",
  "a call of a policy may take as long as the block of the called object says",
  async (context) => {
    const hanging = await startAuthServer(context, () => undefined);
    const mute = await startProcServer(context, () => undefined);
    const port = await startSocket(context);
    const block = "http: {requestTimeout: 200ms}";
    const grpc = await serve(context, { port: hanging.port, block, traffic: `extAuth: {${REF}, grpc: {}}` });
    const http = await serve(context, { port, block, traffic: `extAuth: {${REF}, http: {}}` });
    const proc = await serve(context, { port: mute.port, block, traffic: `extProc: {${REF}}` });
    // The limits that hold without it are longer than what the request has: 504.
    assert.deepEqual(await Promise.all([grpc, http, proc].map(statusOf)), [403, 403, 500]);
  },
);

prove([], "calls over gRPC and HTTP go through the proxy of the called object, over TLS too", async (context) => {
  const authority = createAuthority("services", validNow());
  const { certificate, key } = createLeaf(authority, ["auth.test"], validNow());
  const pair = { private_key: Buffer.from(key), cert_chain: Buffer.from(certificate) };
  const secure = await startAuthServer(context, () => ALLOW, {
    credentials: ServerCredentials.createSsl(null, [pair]),
  });
  const plain = await startAuthServer(context);
  const http = await startEcho(context);
  const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": authority.certificate });
  const places = Object.fromEntries(
    [secure, plain, http].map(({ port }) => [`auth.test:${port}`, `127.0.0.1:${port}`]),
  );
  const proxy = await startForwardProxy(context, { places });
  const way = `tunnel: {url: "http://127.0.0.1:${proxy.port}"}`;
  const tls = `${way}, tls: {caCertificateRefs: [{name: trusted}]}`;
  const at = { host: "auth.test", more: [trusted] };
  const grpc = `extAuth: {${REF}, grpc: {}}`;
  const gateways = [
    await serve(context, { ...at, port: plain.port, block: way, traffic: grpc }),
    await serve(context, { ...at, port: secure.port, block: tls, traffic: grpc }),
    await serve(context, { ...at, port: http.port, block: way, traffic: `extAuth: {${REF}, http: {}}` }),
  ];
  for (const gateway of gateways) assert.equal(await statusOf(gateway), 200);
  assert.deepEqual(proxy.asked, [
    `CONNECT auth.test:${plain.port}`,
    `CONNECT auth.test:${secure.port}`,
    `GET http://auth.test:${http.port}/`,
  ]);
  assert.deepEqual([plain.seen.length, secure.seen.length, http.seen.length], [1, 1, 1]);
});

prove(
  [],
  "a proxy that takes no tunnel is a failure of the call; one that cannot be used closes whatever fails open",
  async (context) => {
    const server = await startAuthServer(context);
    const proxy = await startForwardProxy(context);
    proxy.refusal = "HTTP/1.1 502 no\r\n\r\n";
    const open = `extAuth: {${REF}, grpc: {}, failureMode: FailOpen}`;
    const through = `tunnel: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: proxy}}`;
    const proxies = [
      staticBackend("proxy", proxy.port),
      `${staticBackend("proxy", proxy.port).trimEnd()}\n  policies: {auth: {key: k, location: {cookie: {name: c}}}}\n`,
    ];
    const statuses: number[] = [];
    for (const object of proxies) {
      const gateway = await serve(context, { port: server.port, block: through, traffic: open, more: [object] });
      statuses.push(await statusOf(gateway));
    }
    assert.deepEqual(statuses, [200, 403]);
    assert.equal(server.seen.length, 0);
  },
);
