/** `tls.certificateSource: SPIFFE` beside each kind of `auth`: the connection shows the workload, the request the credential. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { call } from "../../../support/clients/http.ts";
import { setEnvironment } from "../../../support/fixtures/environment.ts";
import { createTrustDomain, issueSvid } from "../../../support/fixtures/svid.ts";
import { createIssuer } from "../../../support/fixtures/tokens.ts";
import { secret, verifyTokens } from "../../../support/gateway/backend-auth.ts";
import { documents, GATEWAY, route, startGateway } from "../../../support/gateway/gateway.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { startTokenServer } from "../../../support/servers/token-endpoint.ts";
import { answerOf, startAgent } from "../../../support/servers/workload-agent.ts";
import { startWorkload, type Asked } from "../../../support/servers/workload.ts";

const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const OWN = createTrustDomain("example.org");
const GATE = issueSvid(OWN, "/ns/edge/sa/gateway");
const WEB = issueSvid(OWN, "/ns/shop/sa/web");
const KEY = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

/** Blocks by kind, with what the request shows. @param url of the token endpoint */
function blocksOf(url: string): Readonly<Record<string, readonly [auth: string, shows: RegExp]>> {
  const end = `{url: "${url}", clientAuth: {clientId: c, secretRef: {name: s}}}`;
  return {
    key: ["{key: own}", /^Bearer own$/],
    secretRef: ["{secretRef: {name: s}}", /^Bearer of-the-secret$/],
    passthrough: ["{passthrough: {}}", /^Bearer ey/],
    cloudA: ["{cloudA: {region: eu-west-1, secretRef: {name: s}}}", /^AWS4-HMAC-SHA256 Credential=AKID\//],
    cloudB: ["{cloudB: {secretRef: {name: s}}}", /^Bearer minted-/],
    cloudC: ["{cloudC: {}}", /^Bearer minted-/],
    jwtSign: ["{jwtSign: {signingKeyRef: {name: s}, alg: ES256}}", /^Bearer ey/],
    oauthTokenExchange: [`{oauthTokenExchange: {url: "${url}"}}`, /^Bearer minted-/],
    crossAppAccess: [
      `{crossAppAccess: {identityProvider: ${end}, resourceAuthorizationServer: ${end}, audience: a}}`,
      /^Bearer minted-/,
    ],
    credentials: [
      '{credentials: [{location: {header: {name: authorization, prefix: "Own "}}, secretRef: {name: s}}]}',
      /^Own of-the-secret$/,
    ],
  };
}

prove([], "an upstream sees the workload and the credential of each kind", async (context) => {
  const server = await startTokenServer(context);
  server.reply = ({ form }) =>
    form.get("requested_token_type") === ID_JAG ? { members: { issued_token_type: ID_JAG, token_type: "N_A" } } : {};
  setEnvironment(context, {
    AZURE_AUTHORITY_HOST: server.url,
    GOOGLE_APPLICATION_CREDENTIALS: undefined,
    GCE_METADATA_HOST: `127.0.0.1:${server.port}`,
    GWPROXY_AMBIENT_IDENTITY_HOSTS: "*",
  });
  const port = await startWorkload(context, WEB, [OWN]);
  const agent = await startAgent(context, answerOf(GATE, OWN));
  const issuer = await createIssuer("https://issuer.test");
  const blocks = Object.entries(blocksOf(server.url));
  const backends = blocks.map(
    ([name, [auth]]) => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name.toLowerCase()}}
spec: {static: {host: 127.0.0.1, port: ${port}}, policies: {tls: {certificateSource: SPIFFE}, auth: ${auth}}}
`,
  );
  const entries = { accessKey: "AKID", secretKey: "k", tenantId: "t", clientId: "c", clientSecret: "s" };
  const manifests = documents(
    GATEWAY,
    secret("s", { ...entries, Authorization: "of-the-secret", signingKey: KEY }),
    ...backends,
    ...blocks.map(([name]) => route(name.toLowerCase(), name.toLowerCase(), `/${name}`)),
    verifyTokens(issuer).replaceAll("name: web", "name: passthrough"),
  );
  const { log } = recordingLog();
  const gateway = await startGateway(context, manifests, { spiffeEndpoint: agent.endpoint, log });
  assert.deepEqual(gateway.problems(), []);
  for (const [name, [, shows]] of blocks) {
    const headers = { authorization: `Bearer ${await issuer.token()}` };
    const { status, body } = await call(`${gateway.url()}/${name}`, { headers });
    assert.equal(status, 200, `${name}: ${body}`);
    const { client, authorization } = JSON.parse(body) as Asked;
    assert.equal(client, `URI:${GATE.id}`, name);
    assert.match(authorization, shows, name);
  }
});
