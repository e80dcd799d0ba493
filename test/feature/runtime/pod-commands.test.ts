/** Commands that ask data planes: over a port-forward of a cluster, on this machine, and from files. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { startControllerAdminServer } from "../../../src/admin/server.ts";
import { collect } from "../../../src/cli/collect/collect.ts";
import { showBackends, showConfig } from "../../../src/cli/pods/config.ts";
import { explainObject } from "../../../src/cli/pods/explain.ts";
import { showLog } from "../../../src/cli/pods/log.ts";
import { runTrace } from "../../../src/cli/trace/trace.ts";
import { recordTerminal, startAdministeredPlane } from "../../support/gateway/administered-plane.ts";
import { LISTENER } from "../../support/gateway/data-plane.ts";
import { startPodServer } from "../../support/kubernetes/pod-server.ts";
import { call } from "../../support/clients/http.ts";

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-pod-commands-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const GATEWAYS = "/apis/gateway.networking.k8s.io/v1/namespaces/team/gateways";
const PODS = "/api/v1/namespaces/team/pods";
const ONE_GATEWAY = { items: [{ metadata: { name: "edge" } }] };
const TWO_PODS = {
  items: ["edge-2", "edge-1"].map((name) => ({ metadata: { namespace: "team", name }, status: { phase: "Running" } })),
};

test("config all, config backends, log and explain ask the pods of a Gateway over a port-forward", async (t) => {
  const { url, adminPort } = await startAdministeredPlane(t);
  await call(url);
  const { kubeconfig, asked } = await startPodServer(t, { [GATEWAYS]: ONE_GATEWAY, [PODS]: TWO_PODS });
  const options = { kubeconfig, proxyAdminPort: adminPort };
  const summary = recordTerminal();
  await showConfig(undefined, { ...options, output: "short" }, summary);
  assert.match(summary.printed(), /^SECTION +COUNT\nbinds +1\nlisteners +1\nroutes +3\npolicies +3\nbackends +2\n/);
  assert.ok(
    asked.some((path) => path.startsWith(`${PODS}?labelSelector=gateway.networking.k8s.io%2Fgateway-name%3Dedge`)),
  );
  assert.ok(asked.includes(`${PODS}/edge-1/portforward?ports=${adminPort}`), "the first pod by name is asked");
  const yaml = recordTerminal();
  await showConfig("gateway/edge.team", { ...options, output: "yaml" }, yaml);
  assert.match(yaml.printed(), /^binds:\n/);
  const backends = recordTerminal();
  await showBackends("po/edge-2", { ...options, output: "short" }, backends);
  assert.match(
    backends.printed(),
    /^TYPE +NAME +NAMESPACE +ENDPOINT +HEALTH +REQUESTS +LATENCY\nService +svc +local +127\.0\.0\.1:\d+ +1\.00 +1 +\d+\.\d\dms\n$/,
  );
  const levels = recordTerminal();
  await showLog("gateway/edge", { ...options, output: "text", level: "warn" }, levels);
  assert.equal(levels.printed(), "POD           LEVEL\nteam/edge-1   warn\nteam/edge-2   warn\n");
  const explained = recordTerminal();
  await explainObject("httproute/shop.default", { ...options, output: "text" }, explained);
  assert.match(
    explained.printed(),
    /1\. headerModifiers of the request\n +from GwPolicy default\/edit spec\.traffic\.headerModifiers \(route\)/,
  );
  // A name without a namespace means the one of the kubeconfig's context, which is "team" here, and -n another one.
  await assert.rejects(explainObject("httproute/shop", { ...options, output: "text" }, recordTerminal()), {
    message:
      /team\/edge-1 refuses GET \/explain: 404 no route of this name is bound to a listener; its status says why/,
  });
  const here = { ...options, namespace: "default", from: "gateway/edge.team", output: "text" } as const;
  await explainObject("httproute/shop", here, recordTerminal());
  await assert.rejects(explainObject("grpcroute/shop", here, recordTerminal()), {
    message: "no GRPCRoute default/shop is bound to a listener, but HTTPRoute default/shop",
  });
  for (const [object, text] of EXPLAINED) {
    const printed = recordTerminal();
    await explainObject(object, { ...options, output: "text" }, printed);
    assert.equal(printed.printed(), text);
  }
});

/** What `explain` prints about the objects of startAdministeredPlane. */
const EXPLAINED: readonly (readonly [object: string, text: string])[] = [
  [
    "tcproute/db.default",
    `TCPRoute default/db on ${LISTENER}
  connections
    - http
      from GwPolicy default/calls spec.frontend.http (gateway)
  rule 0
    no policies
    to backend/default/svc (weight 2)
    - tcp
      from GwPolicy default/calls spec.backend.tcp (gateway)
    to no backend (weight 1): refused, no such Service
`,
  ],
  [
    "httproute/llm.default",
    `HTTPRoute default/llm on ${LISTENER}
  connections
    - http
      from GwPolicy default/calls spec.frontend.http (gateway)
  rule 0
    no policies
    to backend/default/ai (weight 1)
    - tcp
      from GwPolicy default/calls spec.backend.tcp (gateway)
    to section fast of backend/default/ai
    - http
      from GwPolicy default/fast spec.backend.http (section)
    copies to backend/default/svc (share 0.25)
    - tcp
      from GwPolicy default/calls spec.backend.tcp (gateway)
`,
  ],
  [
    "gateway/gw.default",
    `Gateway default/gw on port 80
  connections
    - http
      from GwPolicy default/calls spec.frontend.http (gateway)
`,
  ],
];

const DEPLOYMENT = "/apis/apps/v1/namespaces/system/deployments/gwproxy";
const CONTROLLER_PODS = "/api/v1/namespaces/system/pods";

async function startControllerAdmin(t: TestContext): Promise<number> {
  const sync = { resources: 1, unanswered: 0, acknowledgedAt: null, refused: [] };
  const dataPlanes = [
    { gateway: "team/edge", node: "edge-1", sync: { a: sync } },
    { gateway: "team/edge", node: "edge-2", sync: { a: { ...sync, unanswered: 1 } } },
    { gateway: "team/edge", node: "edge-3", sync: { a: { ...sync, refused: [{ key: "k", reason: "r" }] } } },
  ];
  const gateways = { "team/edge": { binds: [{ listeners: { a: {}, b: {} } }], routes: { r: {} }, policies: [] } };
  const server = await startControllerAdminServer({
    address: { host: "127.0.0.1", port: 0 },
    state: () => Promise.resolve({ ready: true, leader: true, gateways, dataPlanes }),
    tasks: () => Promise.resolve({ tasks: [], truncated: false }),
    profile: () => Promise.resolve([]),
    filter: { level: "info", modules: new Map() },
  });
  t.after(() => server.close());
  return Number(server.address.split(":").at(-1));
}

test("config all, log and collect ask the pods of a controller on the port of its admin server", async (t) => {
  const controllerAdminPort = await startControllerAdmin(t);
  const pods = { items: [{ metadata: { namespace: "system", name: "gwproxy-1" }, status: { phase: "Running" } }] };
  const { kubeconfig, asked } = await startPodServer(t, {
    [DEPLOYMENT]: { spec: { selector: { matchLabels: { gwproxy: "gwproxy" } } } },
    [CONTROLLER_PODS]: pods,
    "/api/v1/pods": pods,
    [`${CONTROLLER_PODS}/gwproxy-1`]: { kind: "Pod" },
  });
  const options = { kubeconfig, proxyAdminPort: 1, controllerAdminPort };
  const summary = recordTerminal();
  await showConfig("controller/gwproxy.system", { ...options, output: "short" }, summary);
  assert.match(summary.printed(), /^READY +LEADER\ntrue +true\n\nGATEWAY +BINDS +LISTENERS +ROUTES +/);
  assert.match(summary.printed(), /\nteam\/edge +1 +2 +1 +0 +0 +0 +0 +3 +1\n$/);
  assert.ok(asked.some((path) => path === `${CONTROLLER_PODS}?labelSelector=gwproxy%3Dgwproxy`));
  const levels = recordTerminal();
  await showLog("controller/gwproxy.system", { ...options, output: "text", level: "debug" }, levels);
  assert.equal(levels.printed(), "POD                LEVEL\nsystem/gwproxy-1   debug\n");
  const backends = showBackends("controller/gwproxy.system", { ...options, output: "short" }, recordTerminal());
  await assert.rejects(backends, { message: /a controller sends no requests to backends; ask a data plane/ });
  const folder = join(temporaryFolder(t), "bundle");
  await collect({ ...options, metricsPort: 1, output: folder }, recordTerminal());
  const dump = readFileSync(join(folder, "pods/system/gwproxy-1/config_dump.json"), "utf8");
  assert.match(dump, /"dataPlanes"/);
});

test("without a Gateway, with several, without pods, rights or cluster the error says the next step", async (t) => {
  const many = { items: [{ metadata: { name: "a" } }, { metadata: { name: "b" } }] };
  const cases: readonly (readonly [object, Readonly<Record<string, number>>, RegExp])[] = [
    [{ [GATEWAYS]: { items: [] } }, {}, /namespace team has no Gateway; name another namespace with -n/],
    [{ [GATEWAYS]: many }, {}, /has several Gateways; name one: gateway\/a, gateway\/b/],
    [
      { [GATEWAYS]: ONE_GATEWAY, [PODS]: { items: [] } },
      {},
      /gateway team\/edge has no running pod; see kubectl -n team get pods/,
    ],
    [{}, { [GATEWAYS]: 403 }, /ask for the right to get and list it/],
    [{}, { [GATEWAYS]: 404 }, /check the name and the namespace/],
  ];
  for (const [answers, statuses, message] of cases) {
    const { kubeconfig } = await startPodServer(t, { ...answers }, statuses);
    const asked = showConfig(undefined, { kubeconfig, proxyAdminPort: 1, output: "short" }, recordTerminal());
    await assert.rejects(asked, { message });
  }
  const none = showConfig(undefined, { kubeconfig: "/none", proxyAdminPort: 1, output: "short" }, recordTerminal());
  await assert.rejects(none, {
    message: /name one with --kubeconfig, or ask a data plane on this machine with --local/,
  });
  const local = { local: true, proxyAdminPort: 1, output: "short" as const };
  await assert.rejects(showConfig(undefined, local, recordTerminal()), {
    message: /localhost does not answer on its admin port: .*; is a data plane running here, such as gwproxy up/,
  });
  await assert.rejects(showConfig("gateway/edge", local, recordTerminal()), {
    message: "--local and a resource exclude each other; leave one of them out",
  });
  await assert.rejects(showConfig("cronjob/a", { ...local, local: false, kubeconfig: "/none" }, recordTerminal()));
});

test("a token is asked for by name, and taken from a file", async (t) => {
  const { adminPort } = await startAdministeredPlane(t, "the-token");
  const options = { local: true, proxyAdminPort: adminPort, output: "short" as const };
  await assert.rejects(showConfig(undefined, options, recordTerminal()), {
    message: /give the token with --admin-token-file/,
  });
  const file = join(temporaryFolder(t), "token");
  writeFileSync(file, "the-token\n");
  await showConfig(undefined, { ...options, adminTokenFile: file }, recordTerminal());
});

test("dumps come from files too, and one that is cut off is named", async (t) => {
  const folder = temporaryFolder(t);
  const service = {
    name: "a",
    namespace: "b",
    endpoints: [{ active: { "1.1.1.1:1": { info: { health: 0.5, totalRequests: 0 } } } }],
  };
  writeFileSync(join(folder, "dump.json"), JSON.stringify({ services: [service] }));
  const options = { proxyAdminPort: 1, file: join(folder, "dump.json") };
  const some = recordTerminal();
  await showBackends(undefined, { ...options, output: "json" }, some);
  assert.deepEqual(JSON.parse(some.printed()), []);
  const all = recordTerminal();
  await showBackends(undefined, { ...options, output: "json", all: true }, all);
  assert.deepEqual(JSON.parse(all.printed()), [
    { type: "Service", name: "a", namespace: "b", endpoint: "1.1.1.1:1", health: 0.5, requests: 0, latencyMs: 0 },
  ]);
  writeFileSync(join(folder, "cut.json"), '{"services": [');
  const cut = showBackends(
    undefined,
    { ...options, file: join(folder, "cut.json"), output: "short" },
    recordTerminal(),
  );
  await assert.rejects(cut, { message: /is no configuration dump, or it is cut off/ });
  const both = showConfig("gateway/edge", { ...options, output: "short" }, recordTerminal());
  await assert.rejects(both, { message: /exclude each other/ });
});

test("trace sends a request, prints its events, and shows recorded ones as a list with a summary", async (t) => {
  const { port, adminPort } = await startAdministeredPlane(t);
  const raw = recordTerminal();
  const local = { local: true, proxyAdminPort: adminPort, port, raw: true };
  await runTrace(undefined, ["http://shop.example/cart", "-H", "x-user: 1", "-d", "in"], local, raw);
  assert.match(raw.errors(), /^POST http:\/\/shop\.example\/cart: 200 OK\n$/);
  const lines = raw.printed().trimEnd().split("\n");
  assert.match(lines[0] ?? "", /"type":"requestStarted"/);
  assert.match(lines.at(-1) ?? "", /"type":"requestFinished","status":200/);
  assert.match(raw.printed(), /"host":"shop\.example"/);
  const file = join(temporaryFolder(t), "trace.jsonl");
  writeFileSync(file, raw.printed());
  const view = recordTerminal();
  await runTrace(undefined, [], { proxyAdminPort: 1, port: 0, file }, view);
  assert.match(view.printed(), /ms {2}requestStarted/);
  assert.match(view.printed(), /\+ request\.headers\.x-a: 1\n/);
  assert.match(
    view.printed(),
    /\nroute +HTTPRoute default\/shop rule 0\npolicies +headerModifiers\nbackend +127\.0\.0\.1:\d+\nstatus +200\n$/,
  );
  writeFileSync(file, raw.printed().slice(0, -20));
  const cut = runTrace(undefined, [], { proxyAdminPort: 1, port: 0, file }, recordTerminal());
  await assert.rejects(cut, { message: /line \d+ of .*trace\.jsonl is no event of a trace, or it is cut off/ });
  const again = runTrace(undefined, [], { proxyAdminPort: 1, port: 0, file, raw: true }, recordTerminal());
  await assert.rejects(again, { message: /is no event of a trace/ });
  writeFileSync(file, "\n\n");
  const empty = runTrace(undefined, [], { proxyAdminPort: 1, port: 0, file }, recordTerminal());
  await assert.rejects(empty, { message: /trace\.jsonl holds no event; record a trace with gwproxy trace --raw/ });
});

test("trace refuses options that exclude each other, and arguments that it does not understand", async () => {
  const options = { proxyAdminPort: 1, port: 0 };
  const cases: readonly (readonly [string | undefined, readonly string[], object, RegExp])[] = [
    ["gateway/a", [], { file: "x" }, /leave the resource/],
    ["gateway/a", [], { local: true }, /exclude each other/],
    [undefined, ["http://a/"], {}, /--port and a URL after -- belong together/],
    [undefined, [], { port: 80 }, /--port and a URL after -- belong together/],
    [undefined, ["http://a/", "--fail"], { port: 80 }, /--fail is not understood/],
    [undefined, ["-H"], { port: 80 }, /-H needs a value/],
    [undefined, ["shop"], { port: 80 }, /"shop" is no URL/],
  ];
  for (const [resource, words, more, message] of cases)
    await assert.rejects(runTrace(resource, words, { ...options, ...more }, recordTerminal()), { message });
});

test("a trace view shows control characters of clients as what they are", async (t) => {
  const file = join(temporaryFolder(t), "trace.jsonl");
  const message = { type: "policyEvent", kind: "\u001B[31mred", details: "a\nb" };
  writeFileSync(file, JSON.stringify({ eventStart: null, eventEnd: 1, severity: "info", message }));
  const view = recordTerminal();
  await runTrace(undefined, [], { proxyAdminPort: 1, port: 0, file }, view);
  assert.ok(!view.printed().includes("\u001B"));
});

test("without a cluster no bundle is begun", async (t) => {
  const output = join(temporaryFolder(t), "bundle");
  const options = { kubeconfig: "/none", proxyAdminPort: 1, metricsPort: 1, output };
  await assert.rejects(collect(options, recordTerminal()), { message: /name one with --kubeconfig/ });
  assert.equal(existsSync(output), false);
});

test("a bundle holds objects, Events, logs and dumps without secrets, and lists what is missing", async (t) => {
  const { adminPort } = await startAdministeredPlane(t);
  const secret = { metadata: { name: "s", namespace: "team" }, data: { password: "aHVudGVyMg==" } };
  const pods = { items: [{ metadata: { namespace: "team", name: "edge-1" }, status: { phase: "Running" } }] };
  const { kubeconfig } = await startPodServer(t, {
    "/version": { gitVersion: "v1.34.4" },
    "/api/v1/secrets": { kind: "SecretList", items: [secret] },
    "/api/v1/events": { kind: "EventList", items: [{ message: "token Bearer abcdefghijkl" }] },
    "/api/v1/pods": pods,
    [`${PODS}/edge-1`]: { kind: "Pod", metadata: { name: "edge-1" } },
    [`${PODS}/edge-1/log`]: "started\nauthorization: Bearer abcdefghijkl\n",
  });
  const folder = join(temporaryFolder(t), "bundle");
  const terminal = recordTerminal();
  await collect({ kubeconfig, proxyAdminPort: adminPort, metricsPort: 1, output: folder }, terminal);
  const contents = readFileSync(join(folder, "CONTENTS.txt"), "utf8");
  assert.match(contents, /^versions\.json: /m);
  assert.match(contents, /^pods\/team\/edge-1\/log\.txt: the last lines of its log$/m);
  assert.match(contents, /^pods\/team\/edge-1\/config_dump\.json: /m);
  assert.match(contents, /^missing objects\/httproutes\.json: /m);
  assert.match(terminal.errors(), /missing pods\/team\/edge-1\/metrics\.txt/);
  const log = readFileSync(join(folder, "pods/team/edge-1/log.txt"), "utf8");
  assert.equal(log, "started\nauthorization: <redacted>\n");
  assert.doesNotMatch(readFileSync(join(folder, "events.json"), "utf8"), /abcdefghijkl/);
  const secrets = readFileSync(join(folder, "objects/secrets.json"), "utf8");
  assert.doesNotMatch(secrets, /aHVudGVyMg/);
  assert.match(secrets, /"password": "<redacted>"/);
});
