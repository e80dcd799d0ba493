/** Signatures of `auth.cloudA`: clocks that are apart, services with wishes of their own, names that are none. */
import assert from "node:assert/strict";
import { call, type Call } from "../../../support/clients/http.ts";
import { setEnvironment } from "../../../support/fixtures/environment.ts";
import { AUTH_PLACES, INLINE_AUTH, secret } from "../../../support/gateway/backend-auth.ts";
import {
  SCOPE,
  SCOPED,
  KEYS,
  FETCHED,
  ROLE,
  ENTRIES,
  EMPTY,
  ENVIRONMENT_KEYS,
  serveSigned,
} from "../../../support/gateway/cloud-a.ts";
import { documents, GATEWAY, route, startGateway } from "../../../support/gateway/gateway.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { startAwsServices } from "../../../support/servers/aws.ts";
import { startSignedUpstream } from "../../../support/servers/signed-upstream.ts";

function gwBackend(members: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec: {${members}}
`;
}

function chat(content: string): Call {
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content }] });
  return { method: "POST", body, headers: { "content-type": "application/json" } };
}

function mcpCall(): Call {
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } };
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }), headers };
}

const TEN_MINUTES_MS = 600_000;
const EXPIRED = /^signature expired/;

/** A GwBackend `web` of each kind that sends signed requests to the port, and a call of it. */
const SIGNED_BACKENDS: Readonly<Record<string, { objects: (port: number, auth: string) => string; request: Call }>> = {
  "a plain backend": {
    objects: (port, auth) => INLINE_AUTH.objects(port, auth),
    request: { body: "x", method: "POST" },
  },
  "a provider of language models": {
    objects: (port, auth) =>
      gwBackend(`ai: {provider: {llma: {}, host: 127.0.0.1, port: ${port}}}, policies: {auth: ${auth}}`),
    request: chat("hi"),
  },
  "an MCP target": {
    objects: (port, auth) =>
      gwBackend(`mcp: {targets: [{name: t, static: {host: 127.0.0.1, port: ${port}, policies: {auth: ${auth}}}}]}`),
    request: mcpCall(),
  },
};

for (const [name, { objects, request }] of Object.entries(SIGNED_BACKENDS))
  for (const aheadMs of [TEN_MINUTES_MS, -TEN_MINUTES_MS])
    prove([], `a clock that is ${aheadMs / 60_000} minutes ahead is learned once (${name})`, async (context) => {
      const upstream = await startSignedUpstream(context, { ...KEYS, ...SCOPE }, [], aheadMs);
      const manifests = [
        objects(upstream.port, `{cloudA: {secretRef: {name: aws}, ${SCOPED}}}`),
        secret("aws", ENTRIES),
      ];
      const gateway = await startGateway(context, documents(GATEWAY, ...manifests, route("web", "web")));
      await call(gateway.url(), request);
      assert.match(upstream.faults[0] ?? "", EXPIRED);
      assert.equal(upstream.faults[1], undefined);
      assert.equal(upstream.bodies[1], upstream.bodies[0]);
      await call(gateway.url(), request);
      assert.deepEqual(
        upstream.faults.slice(2),
        upstream.faults.slice(2).map(() => undefined),
      );
    });

prove(
  [],
  "a refusal with our own time is the answer, and the clock of the token service is learned too",
  async (context) => {
    const refusing = await startSignedUpstream(context, { ...KEYS, ...SCOPE }, [403]);
    const direct = await serveSigned(context, refusing, `secretRef: {name: aws}, ${SCOPED}`, {
      more: [secret("aws", ENTRIES)],
    });
    assert.deepEqual([(await call(direct.url())).status, refusing.faults.length], [403, 1]);
    const sts = await startAwsServices(context, FETCHED, { ...KEYS, region: "eu-west-1", service: "sts" });
    sts.aheadMs = TEN_MINUTES_MS;
    setEnvironment(context, { ...EMPTY, ...ENVIRONMENT_KEYS, AWS_ENDPOINT_URL_STS: sts.url });
    const upstream = await startSignedUpstream(context, { ...FETCHED, ...SCOPE });
    const gateway = await serveSigned(context, upstream, `assumeRole: {roleArn: "${ROLE}"}, ${SCOPED}`);
    assert.equal((await call(gateway.url())).status, 200);
    assert.equal(sts.calls.length, 2);
  },
);

prove([], "services of objects get the digest of the body, over the path as it is", async (context) => {
  const scope = { region: "eu-west-1", service: "s3" };
  const upstream = await startSignedUpstream(context, { ...KEYS, ...scope });
  const more = [secret("aws", ENTRIES)];
  const gateway = await serveSigned(context, upstream, "secretRef: {name: aws}, region: eu-west-1, serviceName: s3", {
    more,
  });
  for (const path of ["/bucket/a%20b//c", "/bucket/%C3%A9?list-type=2&prefix=a%2Fb"]) {
    const headers = { "x-amz-content-sha256": "UNSIGNED-PAYLOAD" };
    const { status, body } = await call(gateway.url() + path, { method: "PUT", body: "object", headers });
    assert.deepEqual([status, body], [200, ""], path);
  }
});

prove([], "a region or service with a slash would end the scope of a signature", async (context) => {
  const upstream = await startSignedUpstream(context, { ...KEYS, ...SCOPE });
  for (const [field, members] of [
    ["region", 'region: "eu/west"'],
    ["serviceName", 'region: eu-west-1, serviceName: "s3/x"'],
  ] as const)
    for (const place of AUTH_PLACES) {
      const more = [secret("aws", ENTRIES)];
      const gateway = await serveSigned(context, upstream, `secretRef: {name: aws}, ${members}`, { place, more });
      assert.equal((await call(gateway.url())).status, 500);
      const found = gateway.translator.diagnostics().map(({ path, message }) => `${path}: ${message}`);
      assert.match(found.join(), new RegExp(`auth\\.cloudA\\.${field}: ".*/.*" is not a name of the cloud`));
    }
  setEnvironment(context, { ...EMPTY, ...ENVIRONMENT_KEYS, AWS_REGION: "eu/west" });
  const gateway = await serveSigned(context, upstream, "serviceName: execute-api");
  assert.equal((await call(gateway.url())).status, 500);
  assert.equal(upstream.faults.length, 0);
});
