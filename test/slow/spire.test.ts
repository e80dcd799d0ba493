/**
 * Identities of a real SPIRE: shown to upstreams and clients, beside each kind of `auth`, rotated under load, kept while
 * the agent is away, taken back.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { realpathSync } from "node:fs";
import { request } from "node:https";
import { test } from "node:test";
import {
  documents,
  gatewayOf,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../support/gateway/gateway.ts";
import { call } from "../support/clients/http.ts";
import { createIssuer } from "../support/fixtures/tokens.ts";
import { startAuthKinds } from "../support/gateway/auth-kinds.ts";
import { verifyTokens } from "../support/gateway/backend-auth.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { startWorkload, type Asked } from "../support/servers/workload.ts";
import { startSpire, type Fetched } from "../testbed/spire.ts";

const GATEWAY_ID = "spiffe://example.org/ns/edge/sa/gateway";
/** A new one comes at half of it: the agent may be away for the other half. */
const TTL_SECONDS = 30;
const USER = `unix:uid:${process.getuid?.() ?? 0}`;

test("a workload of a real SPIRE rotates, survives its agent and ends with its entry", async (t) => {
  const context = contextOf(t);
  const spire = await startSpire(context);
  const node = `unix:path:${realpathSync(process.execPath)}`;
  const entry = await spire.register({ path: "/ns/edge/sa/gateway", selectors: [USER, node], ttlSeconds: TTL_SECONDS });
  const command = `unix:path:${realpathSync(spire.command)}`;
  await spire.register({ path: "/ns/shop/sa/web", selectors: [USER, command], ttlSeconds: 3600 });
  const web = await spire.fetch();
  const port = await startWorkload(context, web, [{ certificate: web.bundle }]);

  const kinds = await startAuthKinds(context);
  const issuer = await createIssuer("https://issuer.test");
  const blocks = Object.entries(kinds.blocks).map(([kind, block]) => [kind.toLowerCase(), ...block] as const);
  const backend = (name: string, more = ""): string =>
    `${staticBackend(name, port).trimEnd()}\n  policies: {tls: {certificateSource: SPIFFE}${more}}\n`;
  const listeners = [
    "{name: http, port: 8080, protocol: HTTP}",
    "{name: mtls, port: 8443, protocol: HTTPS, tls: {options: {gwproxy.dev/tls-certificate-source: SPIFFE}}}",
  ];
  const settings = { spiffeEndpoint: spire.endpoint, log: recordingLog().log };
  const manifests = documents(
    gatewayOf(listeners),
    backend("web"),
    route("web", "web"),
    kinds.object,
    ...blocks.flatMap(([kind, auth]) => [backend(kind, `, auth: ${auth}`), route(kind, kind, `/${kind}`)]),
    verifyTokens(issuer).replaceAll("name: web", "name: passthrough"),
  );
  const gateway = await startGateway(context, manifests, settings);
  const checkKinds = async (): Promise<void> => {
    const headers = { authorization: `Bearer ${await issuer.token()}` };
    for (const [kind, , shows] of blocks) {
      const { status, body } = await call(`${gateway.url()}/${kind}`, { headers });
      assert.equal(status, 200, `${kind}: ${body}`);
      const { client, authorization } = JSON.parse(body) as Asked;
      assert.equal(client, `URI:${GATEWAY_ID}`, kind);
      assert.match(authorization, shows, kind);
    }
  };
  // The agent learns of an entry with its next look at the server.
  await identity(gateway, (serial) => serial !== undefined);
  assert.equal((await asked(gateway)).client, `URI:${GATEWAY_ID}`);
  await checkKinds();
  assert.equal(await throughListener(gateway, web), `URI:${GATEWAY_ID}`);
  await assert.rejects(throughListener(gateway, undefined), /alert|ECONNRESET|socket hang up/);

  let running = true;
  const statuses: number[] = [];
  const load = async (): Promise<void> => {
    while (running) statuses.push((await call(gateway.url(), { method: "POST", body: "x".repeat(10_000) })).status);
  };
  const loads = [load(), load(), load()];
  const shown = new Set<string>();
  for (let turn = 0; turn < 3; turn++) {
    const { serialNumber } = await asked(gateway);
    shown.add(serialNumber);
    await identity(gateway, (serial) => serial !== undefined && serial !== serialNumber);
  }
  assert.equal(shown.size, 3, "each time with another certificate");

  await spire.stopAgent();
  const { serialNumber: last } = await asked(gateway);
  await spire.startAgent();
  await identity(gateway, (serial) => serial !== undefined && serial !== last);
  await checkKinds();
  running = false;
  await Promise.all(loads);
  assert.deepEqual([...new Set(statuses)], [200], "rotation and a restart of the agent cost no request");
  assert.ok(statuses.length > 100, `${statuses.length} requests`);

  await spire.remove(entry);
  await identity(gateway, (serial) => serial === undefined);
  assert.equal((await call(gateway.url())).status, 503);
  await assert.rejects(throughListener(gateway, web), /alert|ECONNRESET|socket hang up/);
});

async function asked(gateway: TestGateway): Promise<Asked> {
  const answer = await call(gateway.url());
  assert.equal(answer.status, 200, answer.body);
  return JSON.parse(answer.body) as Asked;
}

/** Resolves when the serial number of the identity in force is as wanted. */
async function identity(gateway: TestGateway, fits: (serial: string | undefined) => boolean): Promise<void> {
  for (;;) {
    const { workloadIdentity } = await gateway.proxy.state();
    if (fits(workloadIdentity?.serialNumber ?? undefined)) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** @returns the names in the certificate that the listener showed */
function throughListener(gateway: TestGateway, client: Fetched | undefined): Promise<string> {
  const port = Number(new URL(gateway.url(8443)).port);
  const shown = client === undefined ? {} : { cert: client.certificate, key: client.privateKey, ca: client.bundle };
  let names = "";
  const checkServerIdentity = (_host: string, { raw }: { raw: Buffer }): undefined => {
    names = new X509Certificate(raw).subjectAltName ?? "";
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port,
        agent: false,
        rejectUnauthorized: client !== undefined,
        checkServerIdentity,
        ...shown,
      },
      (response) => {
        response.resume();
        response.on("end", () => resolve(names));
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}
