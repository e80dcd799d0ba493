/** `tls.certificateSource: SPIFFE` beside each kind of `auth`: the connection shows the workload, the request the credential. */
import assert from "node:assert/strict";
import { call } from "../../../support/clients/http.ts";
import { createTrustDomain, issueSvid } from "../../../support/fixtures/svid.ts";
import { createIssuer } from "../../../support/fixtures/tokens.ts";
import { startAuthKinds } from "../../../support/gateway/auth-kinds.ts";
import { verifyTokens } from "../../../support/gateway/backend-auth.ts";
import { documents, GATEWAY, route, startGateway } from "../../../support/gateway/gateway.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { answerOf, startAgent } from "../../../support/servers/workload-agent.ts";
import { startWorkload, type Asked } from "../../../support/servers/workload.ts";

const OWN = createTrustDomain("example.org");
const GATE = issueSvid(OWN, "/ns/edge/sa/gateway");
const WEB = issueSvid(OWN, "/ns/shop/sa/web");

prove([], "an upstream sees the workload and the credential of each kind", async (context) => {
  const kinds = await startAuthKinds(context);
  const port = await startWorkload(context, WEB, [OWN]);
  const agent = await startAgent(context, answerOf(GATE, OWN));
  const issuer = await createIssuer("https://issuer.test");
  const blocks = Object.entries(kinds.blocks);
  const backends = blocks.map(
    ([name, [auth]]) => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name.toLowerCase()}}
spec: {static: {host: 127.0.0.1, port: ${port}}, policies: {tls: {certificateSource: SPIFFE}, auth: ${auth}}}
`,
  );
  const manifests = documents(
    GATEWAY,
    kinds.object,
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
