/** `auth.cloudC` against a fake of the metadata server, the token service and the service of impersonation. */
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { jwtVerify } from "jose";
import { call } from "../../../support/clients/http.ts";
import { setEnvironment } from "../../../support/fixtures/environment.ts";
import { AUTH_PLACES, INLINE_AUTH, secret, seen, serveAuth } from "../../../support/gateway/backend-auth.ts";
import { prove, type ProofContext } from "../../../support/proofs/prove.ts";
import { startTokenServer, type TokenServer } from "../../../support/servers/token-endpoint.ts";

const KEY = generateKeyPairSync("rsa", { modulusLength: 2048 })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const idToken = [{ alg: "none" }, { exp: Math.floor(Date.now() / 1000) + 3600 }, "x"]
  .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
  .join(".");

async function startCloud(context: ProofContext): Promise<TokenServer> {
  const server = await startTokenServer(context);
  setEnvironment(context, {
    GOOGLE_APPLICATION_CREDENTIALS: undefined,
    GCE_METADATA_HOST: `127.0.0.1:${server.port}`,
    GWPROXY_AMBIENT_IDENTITY_HOSTS: "*",
    GWPROXY_EXTERNAL_ACCOUNT_FILES: undefined,
  });
  return server;
}

function account({ url }: TokenServer, more: object = {}): string {
  const file = {
    type: "service_account",
    client_email: "robot@p.test",
    private_key: KEY,
    private_key_id: "k1",
    token_uri: `${url}/token`,
  };
  return JSON.stringify({ ...file, ...more });
}

for (const place of AUTH_PLACES) {
  const field = (name: string): string => `${place.prefix}.cloudC.${name}`;

  prove(
    [field("secretRef.name"), field("secretRef.key")],
    `a service account signs for an access token, once for all requests (${place.kind})`,
    async (context) => {
      const cloud = await startCloud(context);
      const entries = secret("robot", {
        "credentials.json": account(cloud),
        other: account(cloud, { client_email: "other@p.test" }),
      });
      const served = await serveAuth(context, place, "{cloudC: {secretRef: {name: robot}}}", entries);
      const requests = await Promise.all(Array.from({ length: 200 }, () => seen(served)));
      assert.deepEqual(new Set(requests.map(({ headers }) => headers["authorization"])), new Set(["Bearer minted-1"]));
      assert.equal(cloud.calls.length, 1);
      const [{ form } = assert.fail("no call")] = cloud.calls;
      assert.equal(form.get("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
      const { payload } = await jwtVerify(form.get("assertion") ?? "", createPublicKey(KEY));
      const { iat: _iat, exp: _exp, ...claims } = payload;
      assert.deepEqual(claims, { iss: "robot@p.test", sub: "robot@p.test", aud: `${cloud.url}/token`, scope: SCOPE });
      await seen(await serveAuth(context, place, "{cloudC: {secretRef: {name: robot, key: other}}}", entries));
      const other = await jwtVerify(cloud.calls[1]?.form.get("assertion") ?? "", createPublicKey(KEY));
      assert.equal(other.payload.iss, "other@p.test");
    },
  );

  prove(
    [field("type"), field("audience")],
    `the metadata server gives an ID token for the audience (${place.kind})`,
    async (context) => {
      const cloud = await startCloud(context);
      cloud.reply = () => ({ body: idToken });
      const served = await serveAuth(context, place, "{cloudC: {type: IdToken, audience: https://own.test}}");
      assert.equal((await seen(served)).headers["authorization"], `Bearer ${idToken}`);
      const [{ path, headers } = assert.fail("no call")] = cloud.calls;
      assert.equal(headers["metadata-flavor"], "Google");
      assert.equal(
        path,
        "/computeMetadata/v1/instance/service-accounts/default/identity?audience=https%3A%2F%2Fown.test&format=full",
      );
      const { gateway } = await serveAuth(context, place, "{cloudC: {type: IdToken}}");
      assert.equal((await call(gateway.url())).status, 500, "an address is no audience");
    },
  );
}

prove([], "users and impersonated accounts get tokens of their own services", async (context) => {
  const cloud = await startCloud(context);
  const user = {
    type: "authorized_user",
    client_id: "c",
    client_secret: "s",
    refresh_token: "r",
    token_uri: `${cloud.url}/token`,
  };
  await seen(
    await serveAuth(
      context,
      INLINE_AUTH,
      "{cloudC: {secretRef: {name: f}}}",
      secret("f", { "credentials.json": JSON.stringify(user) }),
    ),
  );
  assert.equal(cloud.calls[0]?.form.get("refresh_token"), "r");
  cloud.reply = ({ path }) =>
    path === "/token"
      ? {}
      : {
          body: JSON.stringify({
            accessToken: "of-the-other",
            expireTime: new Date(Date.now() + 3_600_000).toISOString(),
          }),
        };
  const file = {
    type: "impersonated_service_account",
    source_credentials: user,
    service_account_impersonation_url: `${cloud.url}/sa:generateAccessToken`,
  };
  const served = await serveAuth(
    context,
    INLINE_AUTH,
    "{cloudC: {secretRef: {name: f}}}",
    secret("f", { "credentials.json": JSON.stringify(file) }),
  );
  assert.equal((await seen(served)).headers["authorization"], "Bearer of-the-other");
  assert.equal(cloud.calls.at(-1)?.headers["authorization"], "Bearer minted-2");
});

const FOREIGN: readonly (readonly [string, object])[] = [
  ["a program", { credential_source: { executable: { command: "/bin/true" } } }],
  ["a file that is not listed", { credential_source: { file: "/var/run/secrets/token" } }],
  ["a file elsewhere", { credential_source: { file: "/etc/passwd" } }],
  ["a URL", { credential_source: { url: "http://127.0.0.1:1/" } }],
  [
    "plain text to another machine",
    {
      type: "service_account",
      client_email: "r@p.test",
      private_key: KEY,
      private_key_id: "k",
      token_uri: "http://sts.test/",
    },
  ],
  ["a type that is not served", { type: "own" }],
];

for (const [name, members] of FOREIGN)
  prove([], `a credential file of a Secret that names ${name} lets no request out`, async (context) => {
    const cloud = await startCloud(context);
    const file = {
      type: "external_account",
      audience: "a",
      subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
      token_url: `${cloud.url}/token`,
      ...members,
    };
    for (const place of AUTH_PLACES) {
      const { gateway, echo } = await serveAuth(
        context,
        place,
        "{cloudC: {secretRef: {name: f}}}",
        secret("f", { "credentials.json": JSON.stringify(file) }),
      );
      assert.equal((await call(gateway.url())).status, 500);
      assert.deepEqual([cloud.calls.length, echo.seen.length], [0, 0]);
    }
  });

prove([], "a metadata server that answers with a page or a redirect lets no request out", async (context) => {
  const cloud = await startCloud(context);
  const { gateway, echo } = await serveAuth(context, INLINE_AUTH, "{cloudC: {}}");
  for (const reply of [{ body: "<html>", type: "text/html" }, { status: 302 }, { members: { access_token: "a b" } }]) {
    cloud.reply = () => reply;
    assert.equal((await call(gateway.url())).status, 500);
  }
  assert.equal(echo.seen.length, 0);
  cloud.reply = () => ({});
  assert.equal((await call(gateway.url())).status, 200);
});
