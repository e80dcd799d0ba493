/** Identities of the SPIFFE workload API in each place where a connection is made: HTTP/2, providers, calls of policies, threads. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { test } from "node:test";
import { ServerCredentials } from "@grpc/grpc-js";
import { startAuthServer } from "../../support/servers/auth-server.ts";
import {
  staticBackend as staticResource,
  listener,
  route as routeResource,
  to,
} from "../../support/gateway/data-plane.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { freePorts } from "../../support/fixtures/free-ports.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { startGwproxy } from "../../support/gateway/process.ts";
import { model, modelRoute, service } from "../../support/gateway/models.ts";
import { MEMBER_PLACES } from "../../support/proofs/member-places.ts";
import { contextOf, prove } from "../../support/proofs/prove.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";
import { createTrustDomain, issueSvid } from "../../support/fixtures/svid.ts";
import { answerOf, presentsIdentity, startAgent, type WorkloadAgent } from "../../support/servers/workload-agent.ts";
import { startWorkers } from "../../support/gateway/workers.ts";
import { startWorkload, type Asked } from "../../support/servers/workload.ts";

const OWN = createTrustDomain("example.org");
const GATE = issueSvid(OWN, "/ns/edge/sa/gateway");
const WEB = issueSvid(OWN, "/ns/shop/sa/web");
const SPIFFE = "tls: {certificateSource: SPIFFE}";

const settings = (agent: WorkloadAgent) => ({ spiffeEndpoint: agent.endpoint, log: recordingLog().log });

function backend(name: string, members: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {${members}}
`;
}

const CHAT = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });

for (const { place, objects, ask } of [
  ...MEMBER_PLACES.map((member) => ({
    place: member.field("tls.certificateSource"),
    objects: (port: number) => [member.backend("own", { port, block: SPIFFE }), route("own", "own")],
    ask: (url: string) => member.ask(url),
  })),
  {
    place: "GwModel spec.policies.tls.certificateSource",
    objects: (port: number) => [
      modelRoute("llm", "", "/"),
      service("workload", port),
      model("m", { parents: "{kind: HTTPRoute, name: llm}", to: "workload", more: `policies: {${SPIFFE}}` }),
    ],
    ask: (url: string) =>
      call(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: CHAT,
      }),
  },
])
  prove(place, `a server that demands a workload sees the identity (${place})`, async (context) => {
    const port = await startWorkload(context, WEB, [OWN]);
    const agent = await startAgent(context, answerOf(GATE, OWN));
    const gateway = await startGateway(context, documents(GATEWAY, ...objects(port)), settings(agent));
    assert.ok((await gateway.proxy.state()).workloadIdentity, "no request has to wait for an identity");
    await presentsIdentity(gateway.proxy, GATE);
    const answer = await ask(gateway.url());
    assert.equal(answer.status, 200, answer.body);
    assert.equal((JSON.parse(answer.body) as Asked).client, `URI:${GATE.id}`);
  });

prove([], "streams on a connection of HTTP/2 end as they should when the identity changes", async (context) => {
  const serials: string[] = [];
  const waiting: (() => void)[] = [];
  const upstream = await startHttp2Upstream(
    context,
    (stream, headers) => {
      const socket = stream.session?.socket as TLSSocket | undefined; // the server speaks TLS alone
      serials.push(socket?.getPeerCertificate().serialNumber ?? "");
      stream.respond({ ":status": 200 });
      if (headers[":path"] === "/now") stream.end("done");
      else waiting.push(() => stream.end("done"));
    },
    { pair: { certificate: WEB.certificate, key: WEB.privateKey }, requestCert: true, ca: OWN.certificate },
  );
  const agent = await startAgent(context, answerOf(GATE, OWN));
  const web = backend(
    "web",
    `static: {host: 127.0.0.1, port: ${upstream.port}}, policies: {${SPIFFE}, http: {version: HTTP2}}`,
  );
  const gateway = await startGateway(context, documents(GATEWAY, web, route("web", "web")), settings(agent));
  const slow: Promise<Answer>[] = [];
  const serialsWanted: string[] = [];
  for (const svid of [GATE, ...Array.from({ length: 3 }, () => issueSvid(OWN, "/ns/edge/sa/gateway"))]) {
    agent.send(answerOf(svid, OWN));
    await presentsIdentity(gateway.proxy, svid);
    assert.equal((await call(`${gateway.url()}/now`)).status, 200);
    const before = waiting.length;
    slow.push(call(`${gateway.url()}/slow`));
    while (waiting.length === before) await new Promise(setImmediate);
    serialsWanted.push(svid.serialNumber, svid.serialNumber);
  }
  for (const finish of waiting) finish();
  assert.deepEqual(
    new Set((await Promise.all(slow)).map(({ status, body }) => `${status} ${body}`)),
    new Set(["200 done"]),
  );
  assert.deepEqual(serials, serialsWanted);
  assert.equal(upstream.sessions.length, 4, "one connection for each identity");
});

prove([], "calls of policies show the identity, and the next one after a change", async (context) => {
  const key = { cert_chain: Buffer.from(WEB.certificate), private_key: Buffer.from(WEB.privateKey) };
  const credentials = ServerCredentials.createSsl(Buffer.from(OWN.certificate), [key], true);
  const auth = await startAuthServer(context, undefined, { credentials });
  const echo = await startEcho(context);
  const agent = await startAgent(context, answerOf(GATE, OWN));
  const called = backend("called", `static: {host: 127.0.0.1, port: ${auth.port}}, policies: {${SPIFFE}}`);
  const check = "extAuth: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: called}, grpc: {}}";
  const own = [staticBackend("web", echo.port), route("web", "web"), routePolicy("p", "web", `  traffic: {${check}}`)];
  const gateway = await startGateway(context, documents(GATEWAY, called, ...own), settings(agent));
  let running = true;
  const statuses = new Set<number>();
  const load = async (): Promise<void> => {
    while (running) statuses.add((await call(gateway.url())).status);
  };
  const loads = [load(), load()];
  while (auth.peers.size === 0) await new Promise(setImmediate);
  for (let turn = 1; turn <= 3; turn++) {
    const next = issueSvid(OWN, "/ns/edge/sa/gateway");
    agent.send(answerOf(next, OWN));
    await presentsIdentity(gateway.proxy, next);
    while (auth.peers.size <= turn) await new Promise(setImmediate);
  }
  running = false;
  await Promise.all(loads);
  assert.deepEqual([...statuses], [200]);
  agent.refuse();
  await presentsIdentity(gateway.proxy, undefined);
  assert.equal((await call(gateway.url())).status, 403, "nobody is asked without an identity");
});

test("each thread has a stream of its own to the agent, and the main thread knows what they know", async (t) => {
  const context = contextOf(t);
  const port = await startWorkload(context, WEB, [OWN]);
  const agent = await startAgent(context, answerOf(GATE, OWN));
  const web = staticResource("web", port, { tls: { spiffe: true } });
  const resources = [listener(), web, routeResource("web", [to("web")])];
  const plane = await startWorkers(context, resources, { count: 2, spiffeEndpoint: agent.endpoint });
  assert.equal(agent.opened, 2);
  for (let turn = 0; turn < 20; turn++) {
    const { status, body } = await call(plane.url);
    assert.equal(status, 200, body);
    assert.equal((JSON.parse(body) as Asked).client, `URI:${GATE.id}`);
  }
  assert.equal((await plane.workers.state()).workloadIdentity?.spiffeId, GATE.id);
});

test("a process takes the endpoint from an option or the environment, and its dump tells who it is", async (t) => {
  const context = contextOf(t);
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-spiffe-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const upstream = await startWorkload(context, WEB, [OWN]);
  const agent = await startAgent(context, answerOf(GATE, OWN));
  const [port = 0, admin = 0] = await freePorts(2);
  const gateway = GATEWAY.replace("port: 8080", `port: ${port}`);
  const web = backend("web", `static: {host: 127.0.0.1, port: ${upstream}}, policies: {${SPIFFE}}`);
  writeFileSync(join(folder, "all.yaml"), documents(gateway, web, route("web", "web")));
  const any = ["--metrics-address", "127.0.0.1:0", "--readiness-address", "127.0.0.1:0", "--workers", "2"];
  const args = ["up", "-f", folder, "--bind-address", "127.0.0.1", "--admin-address", `127.0.0.1:${admin}`, ...any];
  const process = startGwproxy(context, args, { SPIFFE_ENDPOINT_SOCKET: agent.endpoint });
  await process.printed(`listening on 127.0.0.1:${port}`);
  assert.equal((await call(`http://127.0.0.1:${port}/`)).status, 200);
  const dump = (await call(`http://127.0.0.1:${admin}/config_dump`)).body;
  const { workloadIdentity } = JSON.parse(dump) as { workloadIdentity: { spiffeId: string } };
  assert.equal(workloadIdentity.spiffeId, GATE.id);
  assert.doesNotMatch(dump, /PRIVATE KEY|BEGIN CERTIFICATE/);
  await process.kill();
  const refused = startGwproxy(context, [...args, "--spiffe-endpoint-socket", "/run/agent.sock"]);
  await refused.printed(/"\/run\/agent\.sock" is no workload API; give unix:\/\/\//);
});
