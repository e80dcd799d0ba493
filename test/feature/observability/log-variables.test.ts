/**
 * What expressions see at the two ends that no policy asks at yet: when a backend was chosen, and when all is over. Real
 * sockets, TLS and engines; the stage between them stands in for routes.
 */
import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { test, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import { BackendSettingsSchema, StaticBackendSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { compileExpression } from "../../../src/cel/compile/compile-expression.ts";
import { environmentOf, type CelPhase } from "../../../src/cel/environments/phases.ts";
import type { Scope } from "../../../src/cel/scope.ts";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { createUpstream } from "../../../src/proxy/upstream/client/client.ts";
import { PLAIN } from "../../../src/proxy/upstream/dial/connection-settings.ts";
import { DestinationGuard } from "../../../src/proxy/upstream/dial/destination-guard.ts";
import { createResolver } from "../../../src/proxy/upstream/dial/dns.ts";
import { createHttpHandler, staticDestination } from "../../../src/proxy/backends/http-handler.ts";
import { ConnectionPreambles } from "../../../src/proxy/listeners/preamble/connection-preamble.ts";
import { compileFrontend } from "../../../src/proxy/listeners/frontend.ts";
import { createHttp1Server } from "../../../src/proxy/listeners/http1/server.ts";
import { createHttp2Server } from "../../../src/proxy/listeners/http2/server.ts";
import type { ChainTerminal } from "../../../src/proxy/pipeline/chain-runner.ts";
import { sendHttp2 } from "../../support/clients/http2.ts";
import { systemClock } from "../../../src/lib/time/clock.ts";
import { PLAIN_REPORTS } from "../../../src/proxy/observability/observability.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";
import { createSelfSigned, validNow } from "../../support/servers/tls-upstream.ts";
import { EXPECTED, NOT_YET, askAll, leavesOf, reasonOf } from "../../support/fixtures/variable-table.ts";
import { compileAuth } from "../../support/gateway/key-auth.ts";
import { testMembers } from "../../support/gateway/endpoints.ts";

const SERVER = createLeaf(createAuthority("test", validNow()), ["a.test"], validNow());
const CLIENT = createSelfSigned("cart", "DNS:cart.test,URI:spiffe://mesh.test/ns/shop/sa/cart,IP:10.1.2.3");
/** Set by policies, each of which is asked for in its own phase. */
const BY_POLICIES = ["jwt", "apiKey", "basicAuth", "extauthz", "extproc", "metadata"];
/** At the end nobody has captured bodies for those who look back. */
const NOT_KEPT: Readonly<Record<string, string>> = {
  "response.body": "no log asks for it",
  "response.bodyPrefix": "no log asks for it",
};

/** null reads as "absent"; a text cannot be made of it. */
const ASKED_PLAINLY = Object.fromEntries(Object.keys(NOT_KEPT).map((path) => [path, { is: "absent" }]));

type Values = Readonly<Record<string, unknown>>;

function listen(t: TestContext, server: Server): Promise<number> {
  t.after(() => server.close());
  return new Promise((resolve) => {
    // A TCP server's address is one.
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

function pathsOf(place: CelPhase): string[] {
  return leavesOf(environmentOf(place)).filter(
    (path) => !path.startsWith("llm.") && reasonOf(path, { ...NOT_YET, ...asReasons(BY_POLICIES) }) === undefined,
  );
}

function asReasons(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, "set by a policy"]));
}

function askedIn(place: CelPhase, scope: Scope): Values {
  const asked = place === "log" ? { ...EXPECTED, ...ASKED_PLAINLY } : EXPECTED;
  const value = compileExpression(`toJson(${askAll(pathsOf(place), asked)})`, environmentOf(place)).evaluate(scope);
  return JSON.parse(String(value)) as Values;
}

/** A fault in the middle of an engine would otherwise leave the test waiting. */
function settle({ resolve, reject }: PromiseWithResolvers<Values>, place: CelPhase, scope: Scope): void {
  try {
    resolve(askedIn(place, scope));
  } catch (error) {
    reject(error);
  }
}

interface Harness {
  readonly port: number;
  /** What was asked when the backend was chosen, and when all was over. */
  readonly backend: Promise<Values>;
  readonly log: Promise<Values>;
}

async function serve(t: TestContext): Promise<Harness> {
  const upstreamServer = createHttpServer((incoming, response) => {
    incoming.resume();
    response.writeHead(207, { "x-upstream": "here", trailer: "grpc-status" });
    response.addTrailers({ "grpc-status": "5" });
    response.end("from the upstream");
  });
  const upstreamPort = await listen(t, upstreamServer);
  const resolver = createResolver();
  const upstream = createUpstream({ resolver, guard: new DestinationGuard(), connectTimeoutMs: 5_000 });
  t.after(() => {
    upstreamServer.closeAllConnections();
    upstream.close();
    resolver.close();
  });
  const settings = create(BackendSettingsSchema);
  const callout = (): never => assert.fail("no service is configured");
  const address = create(StaticBackendSchema, { host: "127.0.0.1", port: upstreamPort });
  const members = { ...testMembers(), connection: () => PLAIN, owner: "backend/test", auth: compileAuth, callout };
  const handler = createHttpHandler(staticDestination(address, settings, members), settings, { ...members, upstream });
  const backend = Promise.withResolvers<Values>();
  const log = Promise.withResolvers<Values>();
  const end: ChainTerminal = async (exchange) => {
    exchange.listener = { bind: "8443/default/gw", gateway: "gw", namespace: "default", name: "a" };
    exchange.route = { namespace: "default", name: "web", kind: "HTTPRoute", rule: "rule" };
    exchange.backend = { name: "default/web", type: "static", protocol: "http" };
    await exchange.captureRequestBody(1024);
    settle(backend, "backend", exchange);
    return handler(exchange);
  };
  const frontend = compileFrontend({
    keepalive: undefined,
    tls: undefined,
    http: undefined,
    proxyProtocol: undefined,
    connect: undefined,
    trustedProxies: [],
    denialReason: () => undefined,
    reports: PLAIN_REPORTS,
    closed: false,
  });
  const options = {
    bind: "8443/default/gw",
    env: { podName: String(EXPECTED["env.podName"]?.is), namespace: "default", gateway: "gw" },
    preambles: new ConnectionPreambles(),
    replica: "0",
    log: recordingLog().log,
    clock: systemClock,
    frontend: () => frontend,
    chain: { middlewares: [], terminal: end, captureBytes: 0 },
    debugTraces: { isWaiting: false, begin: () => undefined },
    onEntered: () => undefined,
    onFinished(exchange: Scope) {
      settle(log, "log", exchange);
    },
  };
  const engines = { "http/1.1": createHttp1Server(options), h2: createHttp2Server(options) };
  t.after(() => {
    for (const engine of Object.values(engines)) engine.drain();
  });
  const server = createTlsServer({
    cert: SERVER.certificate,
    key: SERVER.key,
    ca: CLIENT.certificate,
    requestCert: true,
    ALPNProtocols: ["h2", "http/1.1"],
  });
  server.on("secureConnection", (socket) => engines[socket.alpnProtocol === "h2" ? "h2" : "http/1.1"].accept(socket));
  return { port: await listen(t, server), backend: backend.promise, log: log.promise };
}

const TLS = { cert: CLIENT.certificate, key: CLIENT.key, servername: "a.test", rejectUnauthorized: false };

function check(place: CelPhase, values: Values, version: string): void {
  for (const path of pathsOf(place)) {
    const { is } = path === "request.version" ? { is: version } : (EXPECTED[path] ?? { is: undefined });
    if (place === "log" && reasonOf(path, NOT_KEPT) !== undefined) assert.equal(values[path], "absent", path);
    else if (is instanceof RegExp) assert.match(String(values[path]), is, path);
    else assert.deepEqual(values[path], is, path);
  }
}

test("a backend phase and a log line have every variable over HTTP/1.1, a trailer included", async (t) => {
  const { port, backend, log } = await serve(t);
  const headers = { host: "a.test", "x-test": "yes" };
  const outgoing = request(
    { host: "127.0.0.1", port, path: "/things?x=1", method: "POST", headers, ...TLS },
    (answer) => answer.resume(),
  );
  outgoing.end("payload");
  check("backend", await backend, "HTTP/1.1");
  check("log", await log, "HTTP/1.1");
});

test("a backend phase and a log line have every variable over HTTP/2, the certificate included", async (t) => {
  const { port, backend, log } = await serve(t);
  const session = connectHttp2(`https://127.0.0.1:${port}`, TLS);
  t.after(() => session.close());
  const pseudo = { ":method": "POST", ":path": "/things?x=1", ":authority": "a.test" };
  const answer = await sendHttp2(session, { ...pseudo, "x-test": "yes" }, { body: "payload" });
  assert.equal(answer.status, 207);
  check("backend", await backend, "HTTP/2");
  check("log", await log, "HTTP/2");
});
