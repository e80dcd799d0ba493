/** Identities of the SPIFFE workload API towards upstreams, against an agent on a Unix socket and servers that are workloads. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { startSocket } from "../../support/servers/grpc.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import type { Clock } from "../../../src/lib/time/clock.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";
import { testClock } from "../../support/gateway/test-clock.ts";
import {
  createIntermediate,
  createTrustDomain,
  issueSvid,
  type Authority,
  type Svid,
} from "../../support/fixtures/svid.ts";
import { answerOf, presentsIdentity, startAgent, type WorkloadAgent } from "../../support/servers/workload-agent.ts";
import { startWorkload, type Asked } from "../../support/servers/workload.ts";

/** The two places where the same block can stand. */
const PLACES = {
  "GwBackend spec.policies.tls": (port: number, tls: string): string =>
    `${staticBackend("web", port).trimEnd()}\n  policies: {tls: ${tls}}\n`,
  "GwPolicy spec.backend.tls": (port: number, tls: string): string =>
    documents(staticBackend("web", port), routePolicy("tls", "web", `  backend: {tls: ${tls}}`)),
};
const inline = PLACES["GwBackend spec.policies.tls"];
const SPIFFE = "{certificateSource: SPIFFE}";

const OWN = createTrustDomain("example.org");
const GATE = issueSvid(OWN, "/ns/edge/sa/gateway");
const WEB = issueSvid(OWN, "/ns/shop/sa/web");

interface Place {
  readonly port: number;
  readonly agent: WorkloadAgent;
  readonly tls?: string;
  readonly clock?: Clock;
  readonly objects?: (port: number, tls: string) => string;
}

function serve(
  context: ProofContext,
  { port, agent, tls = SPIFFE, objects = inline, clock }: Place,
): Promise<TestGateway> {
  const settings = { spiffeEndpoint: agent.endpoint, log: recordingLog().log, ...(clock && { clock }) };
  return startGateway(context, documents(GATEWAY, objects(port, tls), route("web", "web")), settings);
}

async function asked(gateway: TestGateway): Promise<Asked> {
  const answer = await call(gateway.url());
  assert.equal(answer.status, 200, answer.body);
  return JSON.parse(answer.body) as Asked;
}

/** One request to a server with this certificate. */
async function statusOf(
  context: ProofContext,
  server: Svid,
  options: { tls?: string; foreign?: readonly Authority[] } = {},
): Promise<number> {
  const port = await startWorkload(context, server, [OWN]);
  const agent = await startAgent(context, answerOf(GATE, OWN, options.foreign));
  return (await call((await serve(context, { port, agent, ...options })).url())).status;
}

for (const [prefix, objects] of Object.entries(PLACES)) {
  const on = `(${prefix.split(" ")[0]})`;

  prove(
    `${prefix}.certificateSource`,
    `the identity of the workload API is shown to an upstream that demands one ${on}`,
    async (context) => {
      const port = await startWorkload(context, WEB, [OWN]);
      const agent = await startAgent(context, answerOf(GATE, OWN));
      const { client, serialNumber } = await asked(await serve(context, { port, agent, objects }));
      assert.equal(client, `URI:${GATE.id}`);
      assert.equal(serialNumber, GATE.serialNumber);
    },
  );

  prove(`${prefix}.certificateSource`, `an upstream of another trust domain gets no request ${on}`, async (context) => {
    const foreign = createTrustDomain("elsewhere.org");
    const good = await startWorkload(context, WEB, [OWN]);
    const bad = await startWorkload(context, issueSvid(foreign, "/ns/shop/sa/web"), [OWN]);
    const agent = await startAgent(context, answerOf(GATE, OWN));
    const gateway = await serve(context, { port: good, agent, objects });
    await asked(gateway);
    await gateway.change(documents(GATEWAY, objects(bad, SPIFFE), route("web", "web")));
    assert.equal((await call(gateway.url())).status, 503);
  });

  prove(
    `${prefix}.verifySubjectAltNames[]`,
    `of the identities under a bundle only those listed are accepted ${on}`,
    async (context) => {
      const port = await startWorkload(context, WEB, [OWN]);
      const agent = await startAgent(context, answerOf(GATE, OWN));
      const listing = (names: string): string => `{certificateSource: SPIFFE, verifySubjectAltNames: [${names}]}`;
      const gateway = await serve(context, {
        port,
        agent,
        objects,
        tls: listing(`"spiffe://example.org/x", "${WEB.id}"`),
      });
      await asked(gateway);
      const others = listing(`"spiffe://example.org/x", "${WEB.id}/more", web.test`);
      await gateway.change(documents(GATEWAY, objects(port, others), route("web", "web")));
      assert.equal((await call(gateway.url())).status, 503);
    },
  );
}

prove([], "another identity is shown to new connections, and not one request is lost on the way", async (context) => {
  const port = await startWorkload(context, WEB, [OWN]);
  const agent = await startAgent(context, answerOf(GATE, OWN));
  const gateway = await serve(context, { port, agent });
  const answers: Promise<Answer>[] = [];
  let running = true;
  const load = async (): Promise<void> => {
    while (running) {
      const answer = call(gateway.url(), { method: "POST", body: "x".repeat(10_000) });
      answers.push(answer);
      await answer;
    }
  };
  const workers = [load(), load(), load(), load()];
  for (let turn = 0; turn < 5; turn++) {
    const next = issueSvid(OWN, "/ns/edge/sa/gateway");
    agent.send(answerOf(next, OWN));
    await presentsIdentity(gateway.proxy, next);
    assert.equal((await asked(gateway)).serialNumber, next.serialNumber);
  }
  running = false;
  await Promise.all(workers);
  const statuses = new Set((await Promise.all(answers)).map(({ status }) => status));
  assert.deepEqual([...statuses], [200]);
  const { serialNumber, connection } = await asked(gateway);
  assert.equal((await asked(gateway)).connection, connection, "while the identity stays, so do connections");
  assert.notEqual(serialNumber, GATE.serialNumber);
});

prove(
  [],
  "a connection that is being made while the identity changes serves nobody who comes later",
  async (context) => {
    const port = await startWorkload(context, WEB, [OWN]);
    const agent = await startAgent(context, answerOf(GATE, OWN));
    for (const version of ["HTTP1", ""]) {
      const gate = await startGate(context, port);
      const http = version === "" ? "" : `, http: {version: ${version}}`;
      const web = `${staticBackend("web", gate.port).trimEnd()}\n  policies: {tls: ${SPIFFE}${http}}\n`;
      const settings = { spiffeEndpoint: agent.endpoint, log: recordingLog().log };
      const gateway = await startGateway(context, documents(GATEWAY, web, route("web", "web")), settings);
      const first = asked(gateway);
      await gate.knocked;
      const next = issueSvid(OWN, "/ns/edge/sa/gateway");
      agent.send(answerOf(next, OWN));
      await presentsIdentity(gateway.proxy, next);
      gate.open();
      await first;
      assert.equal((await asked(gateway)).serialNumber, next.serialNumber, version);
    }
  },
);

/** Lets connections through to a port of this machine once it is told to. */
async function startGate(
  context: ProofContext,
  to: number,
): Promise<{ port: number; knocked: Promise<void>; open(): void }> {
  const knocked = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const letThrough = async (socket: Socket): Promise<void> => {
    socket.pause();
    knocked.resolve();
    await opened.promise;
    const through = connect(to, "127.0.0.1");
    through.on("error", () => socket.destroy());
    socket.on("close", () => through.destroy());
    socket.pipe(through).pipe(socket);
  };
  const port = await startSocket(context, (socket) => void letThrough(socket));
  return { port, knocked: knocked.promise, open: opened.resolve };
}

prove([], "authorities that a bundle lost are not believed any more", async (context) => {
  const port = await startWorkload(context, WEB, [OWN]);
  const agent = await startAgent(context, answerOf(GATE, OWN));
  const gateway = await serve(context, { port, agent });
  await asked(gateway);
  const renewed = createTrustDomain("example.org");
  const next = issueSvid(OWN, "/ns/edge/sa/gateway");
  agent.send(answerOf(next, renewed));
  await presentsIdentity(gateway.proxy, next);
  assert.equal((await call(gateway.url())).status, 503);
});

prove(
  [],
  "while the agent is away the last identity serves, and its next one is followed when it is back",
  async (context) => {
    const port = await startWorkload(context, WEB, [OWN]);
    const agent = await startAgent(context, answerOf(GATE, OWN));
    const gateway = await serve(context, { port, agent });
    await asked(gateway);
    agent.stop();
    assert.equal((await asked(gateway)).serialNumber, GATE.serialNumber);
    const next = issueSvid(OWN, "/ns/edge/sa/gateway");
    agent.send(answerOf(next, OWN));
    await agent.start();
    await presentsIdentity(gateway.proxy, next);
    assert.equal((await asked(gateway)).serialNumber, next.serialNumber);
  },
);

prove([], "an identity that has expired is shown to nobody", async (context) => {
  const port = await startWorkload(context, WEB, [OWN]);
  const brief = issueSvid(OWN, "/ns/edge/sa/gateway", { notAfter: new Date(Date.now() + 1_800_000) });
  const agent = await startAgent(context, answerOf(brief, OWN));
  const clock = testClock(Date.now());
  const gateway = await serve(context, { port, agent, clock });
  assert.equal((await asked(gateway)).serialNumber, brief.serialNumber);
  agent.stop();
  await clock.advance(1_900_000);
  await presentsIdentity(gateway.proxy, undefined);
  assert.equal((await call(gateway.url())).status, 503, "also not over a connection that is open");
});

prove([], "an agent that refuses takes the identity away, and gives it back", async (context) => {
  const port = await startWorkload(context, WEB, [OWN]);
  const agent = await startAgent(context, answerOf(GATE, OWN));
  const gateway = await serve(context, { port, agent });
  await asked(gateway);
  agent.refuse();
  await presentsIdentity(gateway.proxy, undefined);
  assert.equal((await call(gateway.url())).status, 503);
  agent.send(answerOf(GATE, OWN));
  await presentsIdentity(gateway.proxy, GATE);
  await asked(gateway);
});

prove([], "without an agent the answer is 503, and the log says why", async (context) => {
  const port = await startWorkload(context, WEB, [OWN]);
  const manifests = documents(GATEWAY, inline(port, SPIFFE), route("web", "web"));
  for (const [spiffeEndpoint, reason] of [
    [undefined, "--spiffe-endpoint-socket"],
    ["unix:///nowhere/agent.sock", "ENOENT /nowhere/agent.sock"],
  ] as const) {
    const { log, lines } = recordingLog();
    const gateway = await startGateway(context, manifests, { log, ...(spiffeEndpoint && { spiffeEndpoint }) });
    assert.equal((await call(gateway.url())).status, 503);
    assert.ok(
      lines.some((line) => line.includes(reason)),
      lines.join(""),
    );
    const { workloadIdentity } = await gateway.proxy.state();
    assert.ok(workloadIdentity?.fault?.includes(reason), workloadIdentity?.fault ?? "no fault");
  }
});

prove([], "an agent that refuses, says nothing or sends nonsense leaves requests with 503", async (context) => {
  const port = await startWorkload(context, WEB, [OWN]);
  const wrongKey = { ...GATE, pkcs8: WEB.pkcs8 };
  for (const answer of [
    undefined,
    { svids: [] },
    answerOf(wrongKey, OWN),
    answerOf({ ...GATE, id: WEB.id }, OWN),
    answerOf(issueSvid(OWN, "/x", { isAuthority: true }), OWN),
    { svids: [{ spiffeId: GATE.id, x509Svid: GATE.chain, x509SvidKey: GATE.pkcs8 }] },
  ]) {
    const agent = await startAgent(context, answer);
    assert.equal((await call((await serve(context, { port, agent })).url())).status, 503);
  }
  const silent = await startAgent(context, undefined);
  silent.silence();
  assert.equal((await call((await serve(context, { port, agent: silent })).url())).status, 503);
});

prove([], "an upstream is a workload only with one URI, as a leaf, under its own trust domain", async (context) => {
  const foreign = createTrustDomain("partner.test");
  const id = "spiffe://example.org/ns/shop/sa/web";
  const statuses = {
    leaf: await statusOf(context, WEB),
    below: await statusOf(context, issueSvid(createIntermediate(OWN), "/web")),
    tooFar: await statusOf(context, issueSvid(createIntermediate(createIntermediate(OWN, 0)), "/web")),
    federated: await statusOf(context, issueSvid(foreign, "/web"), { foreign: [foreign] }),
    federatedBelow: await statusOf(context, issueSvid(createIntermediate(foreign), "/web"), { foreign: [foreign] }),
    forged: await statusOf(context, issueSvid(foreign, "/web", { uris: [id] }), { foreign: [foreign] }),
    forgedBelow: await statusOf(context, issueSvid(createIntermediate(foreign), "/web", { uris: [id] }), {
      foreign: [foreign],
    }),
    none: await statusOf(context, issueSvid(OWN, "/web", { uris: [], dns: ["web.test"] })),
    two: await statusOf(context, issueSvid(OWN, "/web", { uris: [id, `${id}2`] })),
    domain: await statusOf(context, issueSvid(OWN, "/web", { uris: ["spiffe://example.org"] })),
    other: await statusOf(context, issueSvid(OWN, "/web", { uris: ["https://example.org/web"] })),
    signer: await statusOf(context, issueSvid(OWN, "/web", { usage: 0x84 })),
    expired: await statusOf(context, issueSvid(OWN, "/web", { notAfter: new Date(Date.now() - 60_000) })),
  };
  const served = { leaf: 200, below: 200, federated: 200, federatedBelow: 200 };
  const refused = ["tooFar", "forged", "forgedBelow", "none", "two", "domain", "other", "signer", "expired"];
  assert.deepEqual(statuses, { ...served, ...Object.fromEntries(refused.map((name) => [name, 503])) });
});

prove([], "the dump says who we are and holds no key; nothing asks an agent for nothing", async (context) => {
  const port = await startWorkload(context, WEB, [OWN]);
  const foreign = createTrustDomain("partner.test");
  const agent = await startAgent(context, answerOf(GATE, OWN, [foreign]));
  const gateway = await serve(context, { port, agent, tls: "{}" });
  assert.equal((await gateway.proxy.state()).workloadIdentity, null);
  assert.equal(agent.opened, 0);
  await gateway.change(documents(GATEWAY, inline(port, SPIFFE), route("web", "web")));
  await asked(gateway);
  const { workloadIdentity } = await gateway.proxy.state();
  assert.deepEqual(workloadIdentity?.trustDomains, { "partner.test": 1, "example.org": 1 });
  assert.equal(workloadIdentity?.spiffeId, GATE.id);
  assert.doesNotMatch(JSON.stringify(workloadIdentity), /PRIVATE|BEGIN/);
  assert.equal(agent.opened, 1);
  assert.equal(agent.streams, 1);
});
