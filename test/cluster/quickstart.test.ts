/** The quickstart on a real API server: plain kubectl apply, and controller, webhook and data plane as three processes. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { serveMockProvider } from "../../examples/mock-provider/mock-provider.ts";
import { startHello } from "../../examples/quickstart/hello.ts";
import { startCluster } from "../support/kubernetes/cluster.ts";
import { call } from "../support/clients/http.ts";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { eventually, type GwproxyProcess, startGwproxy } from "../support/gateway/process.ts";
import { contextOf, type ProofContext } from "../support/proofs/prove.ts";
import { checkQuickstart, quickstartManifests } from "../support/gateway/quickstart.ts";
import { tlsFiles } from "../support/fixtures/tls-files.ts";
import type { ApiServer } from "../testbed/api-server.ts";

interface Quickstart {
  readonly server: ApiServer;
  readonly url: string;
  readonly controller: GwproxyProcess;
  restartController(): GwproxyProcess;
  condition(kind: string, name: string, path: string): Promise<string>;
}

async function startQuickstart(context: Pick<ProofContext, "after">): Promise<Quickstart> {
  const server = await startCluster(context);
  const [gateway = 0, hello = 0, provider = 0, xds = 0, health = 0, webhook = 0, admin = 0] = await freePorts(7);
  const service = await startHello(hello);
  context.after(() => void service.close());
  const mock = await serveMockProvider({ port: provider, keys: ["mock-key"] });
  context.after(() => mock.stop());

  const tls = tlsFiles(context);
  const controllerArgs = [
    "controller",
    "-k",
    server.kubeconfig,
    "--xds-address",
    `127.0.0.1:${xds}`,
    "--xds-tls-cert",
    tls.certificate,
    "--xds-tls-key",
    tls.key,
    "--xds-auth",
    "true",
    "--metrics-address",
    "127.0.0.1:0",
    "--admin-address",
    "127.0.0.1:0",
    "--health-address",
    `127.0.0.1:${health}`,
    "--allow-local-backends",
  ];
  const restartController = (): GwproxyProcess => startGwproxy(context, controllerArgs);
  const controller = restartController();
  const hook = startGwproxy(context, [
    "webhook",
    "-k",
    server.kubeconfig,
    "--address",
    `127.0.0.1:${webhook}`,
    "--url",
    `https://127.0.0.1:${webhook}/validate`,
  ]);
  await Promise.all([controller.printed("serving data planes"), hook.printed("validating")]);

  const folder = mkdtempSync(join(tmpdir(), "gwproxy-cluster-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [file, text] of quickstartManifests({ gateway, hello, provider })) writeFileSync(join(folder, file), text);
  await eventually(() => server.kubectl(["apply", "-f", folder]));

  const startPlane = async (account: string, adminPort: number): Promise<GwproxyProcess> => {
    const token = join(folder, `${account}.token`);
    const make = ["create", "token", account, "--audience", "gwproxy"];
    writeFileSync(token, await eventually(() => server.kubectl(make)));
    return startGwproxy(context, [
      "proxy",
      "--xds-address",
      `https://localhost:${xds}`,
      "--xds-ca",
      tls.ca,
      "--xds-token",
      token,
      "--gateway",
      "default/quickstart",
      "--bind-address",
      "127.0.0.1",
      "--admin-address",
      `127.0.0.1:${adminPort}`,
      "--metrics-address",
      "127.0.0.1:0",
      "--readiness-address",
      "127.0.0.1:0",
    ]);
  };
  await server.kubectl(["create", "serviceaccount", "stranger"]);
  const stranger = await startPlane("stranger", 0);
  await stranger.printed("system:serviceaccount:default:stranger may not follow Gateway default/quickstart");
  await stranger.kill("SIGKILL");
  // The controller makes the account of a Gateway's own data plane.
  const plane = await startPlane("quickstart", admin);
  await plane.printed(`listening on 127.0.0.1:${gateway} for Gateway default/quickstart`);
  return {
    server,
    url: `http://127.0.0.1:${gateway}`,
    controller,
    restartController,
    async condition(kind, name, path) {
      return (await server.kubectl(["get", kind, name, "-o", `jsonpath={${path}}`])).trim();
    },
  };
}

test("the quickstart behaves on a cluster as it does from files", async (t) => {
  const cluster = await startQuickstart(contextOf(t));
  const { server, url, condition } = cluster;

  await checkQuickstart(url);

  await eventually(async () => {
    const status = (type: string) => `?(@.type=="${type}")].status`;
    assert.equal(await condition("gateway", "quickstart", `.status.conditions[${status("Accepted")}`), "True");
    assert.equal(await condition("gateway", "quickstart", `.status.conditions[${status("Programmed")}`), "True");
    assert.equal(await condition("httproute", "chat", `.status.parents[0].conditions[${status("Accepted")}`), "True");
    assert.equal(
      await condition("httproute", "chat", `.status.parents[0].conditions[${status("ResolvedRefs")}`),
      "True",
    );
    assert.equal(await condition("gwbackend", "openai", `.status.conditions[${status("Accepted")}`), "True");
    assert.equal(await condition("gwpolicy", "chat", `.status.ancestors[0].conditions[${status("Accepted")}`), "True");
    assert.equal(await condition("gwpolicy", "chat", `.status.ancestors[0].conditions[${status("Attached")}`), "True");
  });

  await t.test("the API server refuses what the schema can see, the webhook the rest", async () => {
    const policy = (traffic: string) =>
      `{apiVersion: gwproxy.dev/v1alpha1, kind: GwPolicy, metadata: {name: bad}, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: chat}], traffic: ${traffic}}}`;
    await assert.rejects(
      () =>
        server.kubectl(["apply", "-f", "-"], policy("{rateLimit: {local: [{requests: 1, tokens: 1, unit: Hours}]}}")),
      /spec\.traffic\.rateLimit\.local\[0\]/,
    );
    await assert.rejects(
      () =>
        server.kubectl(
          ["apply", "-f", "-"],
          policy(`{authorization: {policy: {matchExpressions: ["reqest.path == 'x'"]}}}`),
        ),
      /spec\.traffic\.authorization\.policy\.matchExpressions\[0\]/,
    );
  });

  await t.test("the example for clusters is accepted, and its pods are those of the restricted standard", async () => {
    await server.kubectl(["label", "namespace", "default", "pod-security.kubernetes.io/warn=restricted"]);
    const strictly = ["--dry-run=server", "--validate=strict", "--warnings-as-errors"];
    const said = await server.kubectl([
      "apply",
      "-f",
      join(import.meta.dirname, "../../examples/cluster"),
      ...strictly,
    ]);
    assert.match(said, /^deployment\.apps\/mock-provider created \(server dry run\)$/m);
  });

  await t.test("traffic does not need the controller, and its return changes nothing", async () => {
    await cluster.controller.kill("SIGKILL");
    assert.equal((await call(`${url}/hello`)).status, 200);
    const again = cluster.restartController();
    await again.printed("serving data planes");
    assert.equal((await call(`${url}/hello`)).status, 200);
    await server.kubectl([
      "patch",
      "httproute",
      "hello",
      "--type=json",
      "-p",
      '[{"op":"replace","path":"/spec/rules/0/matches/0/path/value","value":"/hi"}]',
    ]);
    await eventually(async () => assert.equal((await call(`${url}/hi`)).status, 200));
  });
});
