/** `sessionAffinity` through real sockets: on a Service, and on the group of a model backend. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { replicaService, servicePolicy, startReplicas, type Replica } from "../../support/servers/replicas.ts";

const SESSIONS = 24;

function answerWithName(replicas: readonly Replica[]): void {
  for (const replica of replicas)
    replica.answer = (_request, response) => {
      response.writeHead(200, { "content-type": "application/json", "x-replica": replica.name }).end("{}");
    };
}

async function serve(gateway: TestGateway, headers: Readonly<Record<string, string>>, body?: string): Promise<string> {
  const request = { method: "POST", headers: { "content-type": "application/json", ...headers } };
  const answer = await call(`${gateway.url()}/v1/chat/completions`, {
    ...request,
    body: body ?? JSON.stringify({ model: "m", messages: [] }),
  });
  assert.equal(answer.status, 200, answer.body);
  return String(answer.headers["x-replica"]);
}

/** Every session asks several times and is always served by the same replica; together they use more than one. */
async function keepsSessions(gateway: TestGateway): Promise<void> {
  const used = new Set<string>();
  for (let at = 0; at < SESSIONS; at++) {
    const served = new Set<string>();
    for (let times = 0; times < 5; times++) served.add(await serve(gateway, { "x-session": `session ${at}` }));
    assert.equal(served.size, 1, `session ${at} was at ${[...served].join(", ")}`);
    for (const name of served) used.add(name);
  }
  assert.ok(used.size > 1);
}

const SOURCE = `{source: 'request.headers["x-session"]'}`;

async function service(context: ProofContext, source: string): Promise<TestGateway> {
  const replicas = await startReplicas(context, "a", "b", "c", "d");
  answerWithName(replicas);
  const manifests = [replicaService(replicas), servicePolicy(`{sessionAffinity: ${source}}`)];
  return startGateway(context, documents(GATEWAY, ...manifests));
}

prove("GwPolicy spec.backend.sessionAffinity.source", "a session stays at one endpoint of a Service", async (t) => {
  await keepsSessions(await service(t, SOURCE));
});

prove("GwBackend spec.policies.sessionAffinity.source", "a session stays at one provider of a group", async (t) => {
  const replicas = await startReplicas(t, "a", "b", "c", "d");
  answerWithName(replicas);
  const providers = replicas.map(
    ({ name, port }) =>
      `{name: ${name}, custom: {model: m, formats: [{type: Completions}]}, host: 127.0.0.1, port: ${port}}`,
  );
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {groups: [{providers: [${providers.join(", ")}]}]}
  policies: {sessionAffinity: ${SOURCE}}`;
  await keepsSessions(await startGateway(t, documents(GATEWAY, backend, route("web", "ai"))));
});

test("requests whose key is missing or empty go wherever the load is least", async (t) => {
  const gateway = await service(contextOf(t), SOURCE);
  for (const headers of [{}, { "x-session": "" }]) {
    const used = new Set<string>();
    for (let times = 0; times < 100; times++) used.add(await serve(gateway, headers));
    assert.ok(used.size > 1);
  }
});

test("a key may come from the body, which goes on to the endpoint", async (t) => {
  const context = contextOf(t);
  const replicas = await startReplicas(context, "a", "b", "c", "d");
  for (const replica of replicas)
    replica.answer = (_request, response) => {
      response.writeHead(200, { "x-replica": replica.name }).end();
    };
  const manifests = [replicaService(replicas), servicePolicy(`{sessionAffinity: {source: 'json(request.body).user'}}`)];
  const gateway = await startGateway(context, documents(GATEWAY, ...manifests));
  const used = new Set<string>();
  for (const user of ["ann", "bob", "cy", "di", "ed", "fay", "gus", "hal", "ida"]) {
    const served = new Set<string>();
    for (let times = 0; times < 5; times++) served.add(await serve(gateway, {}, JSON.stringify({ user, times })));
    assert.equal(served.size, 1, user);
    for (const name of served) used.add(name);
  }
  assert.ok(used.size > 1);
});

test("a session leaves an endpoint that failed its request, for the retry alone", async (t) => {
  const context = contextOf(t);
  const replicas = await startReplicas(context, "a", "b", "c");
  answerWithName(replicas);
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      replicaService(replicas),
      servicePolicy(`{sessionAffinity: ${SOURCE}}`),
      routePolicy("again", "web", "  traffic: {retry: {attempts: 1, codes: [503]}}"),
    ),
  );
  const session = { "x-session": "alice" };
  const own = await serve(gateway, session);
  const home = replicas.find(({ name }) => name === own);
  assert.ok(home);
  home.answer = (_request, response) => void response.writeHead(503).end();
  const away = await serve(gateway, session);
  assert.notEqual(away, own);
  answerWithName(replicas);
  assert.equal(await serve(gateway, session), own);
});
