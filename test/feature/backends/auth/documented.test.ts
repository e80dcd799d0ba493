/** The manifests of docs/backend-identity.md, each against fakes of the services that it names. */
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeProtectedHeader, jwtVerify } from "jose";
import { parse } from "yaml";
import { call } from "../../../support/clients/http.ts";
import { setEnvironment } from "../../../support/fixtures/environment.ts";
import { createIssuer } from "../../../support/fixtures/tokens.ts";
import { secret, verifyTokens } from "../../../support/gateway/backend-auth.ts";
import { documents, GATEWAY, route, startGateway } from "../../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../../support/proofs/prove.ts";
import { startAwsServices } from "../../../support/servers/aws.ts";
import { startEcho, type Echoed } from "../../../support/servers/echo.ts";
import { startTokenServer } from "../../../support/servers/token-endpoint.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../../docs/backend-identity.md"), "utf8");
const PEM = { type: "pkcs8", format: "pem" } as const;
const RSA = String(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export(PEM));
const P256 = String(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export(PEM));
const ID_TOKEN = ["{}", '{"exp": 99999999999}', "x"].map((part) => Buffer.from(part).toString("base64url")).join(".");
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const KEYS = { accessKeyId: "AKIDSTATIC", secretAccessKey: "secret-of-static", sessionToken: "session-of-static" };
const FETCHED = { accessKeyId: "ASIAFETCHED", secretAccessKey: "secret-of-fetched", sessionToken: "session" };

/** A manifest of the page, as far as the test changes it. */
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    static: { host: string; port: number };
    policies: { tls?: object; extAuth?: object; auth?: object };
  };
}

/** What the destination of each manifest receives. */
const EXPECTED: Readonly<Record<string, (request: Echoed, token: string) => void | Promise<void>>> = {
  search: ({ headers }) => assert.equal(headers["x-api-key"], "search-token"),
  profile({ headers }, token) {
    assert.deepEqual([headers["authorization"], headers["x-gateway-key"]], [`Bearer ${token}`, "search-token"]);
  },
  lambda: ({ headers }) =>
    assert.match(headers["authorization"] ?? "", /Credential=ASIAFETCHED\/\d{8}\/eu-west-1\/execute-api\//),
  vision: ({ headers }) => assert.equal(headers["authorization"], "Bearer minted-1"),
  run: ({ headers }) => assert.equal(headers["authorization"], `Bearer ${ID_TOKEN}`),
  orders: ({ headers }) => assert.equal(headers["authorization"], "Bearer minted-1"),
  calendar: ({ headers }) => assert.equal(headers["authorization"], "Bearer minted-2"),
  async ledger({ headers }) {
    const token = headers["authorization"]?.slice("Bearer ".length) ?? "";
    const { payload } = await jwtVerify(token, createPublicKey(P256), { issuer: "gateway", audience: "ledger" });
    assert.equal((payload.exp ?? 0) - (payload.iat ?? 0), 70);
    assert.equal(decodeProtectedHeader(token).kid, "gateway-1");
  },
};

/** Starts the fakes, and an environment that leads to them. @returns URL of the token endpoint */
async function startServices(context: ProofContext): Promise<string> {
  const server = await startTokenServer(context);
  server.reply = ({ form }) =>
    form.get("requested_token_type") === ID_JAG
      ? { members: { issued_token_type: ID_JAG, token_type: "N_A" } }
      : { members: { id_token: ID_TOKEN } };
  const sts = await startAwsServices(context, FETCHED, { ...KEYS, region: "eu-west-1", service: "sts" });
  setEnvironment(context, {
    AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    AWS_SESSION_TOKEN: KEYS.sessionToken,
    AWS_ENDPOINT_URL_STS: sts.url,
    AZURE_AUTHORITY_HOST: server.url,
    GWPROXY_AMBIENT_IDENTITY_HOSTS: "*",
  });
  return server.url;
}

function secrets(url: string): string[] {
  const robot = { type: "service_account", client_email: "r@p.test", private_key: RSA, private_key_id: "k" };
  return [
    secret("search-key", { token: "search-token" }),
    secret("entra-app", { tenantId: "t", clientId: "c", clientSecret: "s" }),
    secret("robot", { "credentials.json": JSON.stringify({ ...robot, token_uri: `${url}/token` }) }),
    secret("gateway-client", { clientSecret: "s" }),
    secret("gateway-key", { signingKey: P256 }),
  ];
}

const manifests = [...PAGE.matchAll(/```yaml\n([^]*?)```/g)]
  .map(([, text]) => parse(text ?? "") as Manifest) // the page is ours
  .filter(({ spec }) => spec.policies.auth !== undefined);

for (const { metadata, spec } of manifests)
  prove([], `the backend ${metadata.name} of the page gets its credential`, async (context) => {
    const check = EXPECTED[metadata.name] ?? assert.fail("the page has a manifest that no check knows");
    const url = await startServices(context);
    const echo = await startEcho(context);
    const auth = JSON.stringify(spec.policies.auth).replaceAll("https://login.example.com", url);
    const backend = {
      apiVersion: "gwproxy.dev/v1alpha1",
      kind: "GwBackend",
      metadata: { name: "web" },
      spec: { static: { host: "127.0.0.1", port: echo.port }, policies: { auth: JSON.parse(auth) as object } },
    };
    const issuer = await createIssuer("https://issuer.test");
    const token = await issuer.token();
    const objects = [JSON.stringify(backend), verifyTokens(issuer), ...secrets(url)];
    const gateway = await startGateway(context, documents(GATEWAY, route("web", "web"), ...objects));
    assert.deepEqual(gateway.problems(), []);
    const headers = { authorization: `Bearer ${token}`, "x-team": "red" };
    const { status, body } = await call(`${gateway.url()}/things`, { headers });
    assert.equal(status, 200, body);
    await check(echo.seen[0] ?? assert.fail("nothing arrived"), token);
  });

prove([], "the page has a manifest for each check", async () => {
  assert.deepEqual(manifests.map(({ metadata }) => metadata.name).sort(), Object.keys(EXPECTED).sort());
});
