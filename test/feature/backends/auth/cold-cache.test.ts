/** Requests that come all at once when nothing has been fetched yet, to a process of two threads. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call } from "../../../support/clients/http.ts";
import { freePorts } from "../../../support/fixtures/free-ports.ts";
import { startAuthKinds } from "../../../support/gateway/auth-kinds.ts";
import { documents, gatewayOf, route } from "../../../support/gateway/gateway.ts";
import { startGwproxy } from "../../../support/gateway/process.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { startAwsServices } from "../../../support/servers/aws.ts";
import { startEcho } from "../../../support/servers/echo.ts";

const KEYS = { accessKeyId: "AKIDSTATIC", secretAccessKey: "secret-of-static", sessionToken: "session-of-static" };
const FETCHED = { accessKeyId: "ASIAFETCHED", secretAccessKey: "secret-of-fetched", sessionToken: "session" };
const REQUESTS = 200;

prove([], "200 requests at once on a cold cache are one call of the whole process, for each kind", async (context) => {
  const { server, object, blocks } = await startAuthKinds(context);
  const sts = await startAwsServices(context, FETCHED, { ...KEYS, region: "eu-west-1", service: "sts" });
  const echo = await startEcho(context);
  const role = "{cloudA: {region: eu-west-1, assumeRole: {roleArn: 'arn:aws:iam::123456789012:role/reader'}}}";
  const fetching: Readonly<Record<string, { readonly auth: string; readonly calls: number }>> = {
    "cloud-a": { auth: role, calls: 1 },
    "cloud-b": { auth: blocks["cloudB"]?.[0] ?? "", calls: 1 },
    "cloud-c": { auth: blocks["cloudC"]?.[0] ?? "", calls: 1 },
    exchange: { auth: blocks["oauthTokenExchange"]?.[0] ?? "", calls: 1 },
    // One at each of its two servers.
    cross: { auth: blocks["crossAppAccess"]?.[0] ?? "", calls: 2 },
  };
  const [port = 0, admin = 0, metrics = 0] = await freePorts(3);
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-cold-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const backends = Object.entries(fetching).map(
    ([name, { auth }]) => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {static: {host: 127.0.0.1, port: ${echo.port}}, policies: {auth: ${auth}}}
`,
  );
  const routes = Object.keys(fetching).map((name) => route(name, name, `/${name}`));
  const listener = gatewayOf([`{name: http, port: ${port}, protocol: HTTP}`]);
  writeFileSync(join(folder, "all.yaml"), documents(listener, object, ...backends, ...routes));
  const addresses = ["--admin-address", `127.0.0.1:${admin}`, "--metrics-address", `127.0.0.1:${metrics}`];
  const gwproxy = startGwproxy(
    context,
    ["up", "-f", folder, "--workers", "2", "--readiness-address", "127.0.0.1:0", ...addresses],
    {
      AZURE_AUTHORITY_HOST: server.url,
      GCE_METADATA_HOST: `127.0.0.1:${server.port}`,
      AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
      AWS_SESSION_TOKEN: KEYS.sessionToken,
      AWS_ENDPOINT_URL_STS: sts.url,
    },
  );
  await gwproxy.printed(`:${port} for Gateway default/gw`);
  for (const [name, { calls }] of Object.entries(fetching)) {
    const before = server.calls.length + sts.calls.length;
    const headers = { authorization: "Bearer of-the-client" };
    const answers = await Promise.all(
      Array.from({ length: REQUESTS }, () => call(`http://127.0.0.1:${port}/${name}`, { headers })),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]), name);
    assert.equal(server.calls.length + sts.calls.length - before, calls, name);
  }
  const shown = echo.seen.map(({ url, headers }) => `${url} ${headers["authorization"]?.split(/[/,]/)[0] ?? ""}`);
  assert.equal(new Set(shown).size, Object.keys(fetching).length, "each request shows the credential of its kind");
  assert.equal(echo.seen.length, REQUESTS * Object.keys(fetching).length);
});
