/** Ways on which the identity of the environment could reach a host that the operator has not allowed. */
import assert from "node:assert/strict";
import { call } from "../../../support/clients/http.ts";
import { setEnvironment } from "../../../support/fixtures/environment.ts";
import { documents, GATEWAY, route, startGateway } from "../../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../../support/proofs/prove.ts";
import { startEcho } from "../../../support/servers/echo.ts";
import { startForwardProxy } from "../../../support/servers/forward-proxy.ts";
import { startTokenServer } from "../../../support/servers/token-endpoint.ts";

/** Names below the domains of both clouds. */
const HOSTS = { cloudB: "vision.azure.com", cloudC: "storage.googleapis.com" } as const;

function backend(members: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec: {${members}}
`;
}

/** @param allowed value of the operator's list, undefined for the clouds' own domains */
async function startClouds(context: ProofContext, allowed?: string): Promise<void> {
  const server = await startTokenServer(context);
  setEnvironment(context, {
    AZURE_TENANT_ID: "t",
    AZURE_CLIENT_ID: "c",
    AZURE_CLIENT_SECRET: "s",
    AZURE_AUTHORITY_HOST: server.url,
    GOOGLE_APPLICATION_CREDENTIALS: undefined,
    GCE_METADATA_HOST: `127.0.0.1:${server.port}`,
    GWPROXY_AMBIENT_IDENTITY_HOSTS: allowed,
  });
}

for (const [kind, host] of Object.entries(HOSTS)) {
  prove([], `a proxy that could read the identity of ${kind} has to be allowed as well`, async (context) => {
    await startClouds(context);
    const echo = await startEcho(context);
    const proxy = await startForwardProxy(context, { places: { [`${host}:80`]: `127.0.0.1:${echo.port}` } });
    const through = (mode: string, more = ""): string =>
      backend(
        `static: {host: ${host}, port: 80}, policies: {auth: {${kind}: {}}, tunnel: {url: "http://127.0.0.1:${proxy.port}", mode: ${mode}}${more}}`,
      );
    const askThrough = async (object: string): Promise<number> => {
      const gateway = await startGateway(context, documents(GATEWAY, object, route("web", "web")));
      return (await call(gateway.url())).status;
    };
    for (const object of [
      through("Auto"),
      through("Connect"),
      through("Connect", ", tls: {insecureSkipVerify: All}"),
      through("Connect", ", tls: {sni: other.test}"),
      through("Connect", ", tls: {verifySubjectAltNames: [other.test]}"),
    ])
      assert.equal(await askThrough(object), 500, object);
    assert.deepEqual(proxy.asked, []);
    // A certificate for the destination that the system's roots vouch for: the proxy sees only ciphertext.
    assert.equal(await askThrough(through("Connect", ", tls: {}")), 503, "what is behind the proxy speaks no TLS");
    assert.deepEqual(proxy.asked, [`CONNECT ${host}:80`]);
    setEnvironment(context, { GWPROXY_AMBIENT_IDENTITY_HOSTS: `${host},127.0.0.1` });
    assert.equal(await askThrough(through("Auto")), 200);
    assert.match(echo.seen[0]?.headers["authorization"] ?? "", /^Bearer minted-/);
  });

  prove([], `the identity of ${kind} does not follow a transformation to another host`, async (context) => {
    await startClouds(context);
    const echo = await startEcho(context);
    const elsewhere = `transformation: {request: {set: [{name: ":authority", value: '"127.0.0.1:${echo.port}"'}]}}`;
    const any = backend(`dynamicForwardProxy: {}, policies: {auth: {${kind}: {}}, ${elsewhere}}`);
    const gateway = await startGateway(context, documents(GATEWAY, any, route("web", "web")));
    const ask = async (): Promise<number> => (await call(gateway.url(), { headers: { host: `${host}:80` } })).status;
    assert.equal(await ask(), 500);
    assert.equal(echo.seen.length, 0);
    setEnvironment(context, { GWPROXY_AMBIENT_IDENTITY_HOSTS: "*" });
    assert.equal(await ask(), 200);
  });
}
