/** `auth.cloudB` against a fake of the token service and of managed identities. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call } from "../../../support/clients/http.ts";
import { setEnvironment } from "../../../support/fixtures/environment.ts";
import { AUTH_PLACES, INLINE_AUTH, secret, seen, serveAuth } from "../../../support/gateway/backend-auth.ts";
import { prove, type ProofContext } from "../../../support/proofs/prove.ts";
import { startTokenServer, type TokenServer } from "../../../support/servers/token-endpoint.ts";

const ENTRIES = { tenantId: "tenant", clientId: "app", clientSecret: "s3cret" };
const RESOURCE = "https://cognitiveservices.azure.com";

/** A fake of all services of the cloud, and an environment that offers nothing else. */
async function startCloud(
  context: ProofContext,
  variables: (server: TokenServer) => Readonly<Record<string, string>> = () => ({}),
): Promise<TokenServer> {
  const server = await startTokenServer(context);
  setEnvironment(context, {
    AZURE_TENANT_ID: undefined,
    AZURE_CLIENT_ID: undefined,
    AZURE_CLIENT_SECRET: undefined,
    AZURE_FEDERATED_TOKEN_FILE: undefined,
    IDENTITY_ENDPOINT: undefined,
    IDENTITY_HEADER: undefined,
    AZURE_AUTHORITY_HOST: server.url,
    AZURE_POD_IDENTITY_AUTHORITY_HOST: server.url,
    GWPROXY_AMBIENT_IDENTITY_HOSTS: "*",
    ...variables(server),
  });
  return server;
}

for (const place of AUTH_PLACES) {
  const field = (name: string): string => `${place.prefix}.cloudB.${name}`;

  prove(
    field("secretRef.name"),
    `a token for the secret of a client is fetched once (${place.kind})`,
    async (context) => {
      const cloud = await startCloud(context);
      const served = await serveAuth(context, place, "{cloudB: {secretRef: {name: app}}}", secret("app", ENTRIES));
      const options = { headers: { authorization: "Bearer of-the-client" } };
      const requests = await Promise.all(Array.from({ length: 200 }, () => seen(served, "/", options)));
      assert.deepEqual(new Set(requests.map(({ headers }) => headers["authorization"])), new Set(["Bearer minted-1"]));
      assert.deepEqual(
        cloud.calls.map(({ method, path, form }) => [method, path, Object.fromEntries(form)]),
        [
          [
            "POST",
            "/tenant/oauth2/v2.0/token",
            {
              grant_type: "client_credentials",
              scope: `${RESOURCE}/.default`,
              client_id: "app",
              client_secret: "s3cret",
            },
          ],
        ],
      );
    },
  );

  for (const [member, name] of [
    ["clientId", "client_id"],
    ["objectId", "object_id"],
    ["resourceId", "msi_res_id"],
  ] as const)
    prove(
      field(`managedIdentity.${member}`),
      `a managed identity is the one whose ${member} the block names (${place.kind})`,
      async (context) => {
        const cloud = await startCloud(context);
        await seen(await serveAuth(context, place, `{cloudB: {managedIdentity: {${member}: "one"}}}`));
        const { method, path = "", headers } = cloud.calls[0] ?? assert.fail("no call");
        const url = new URL(path, cloud.url);
        assert.deepEqual(
          [method, url.pathname, headers["metadata"]],
          ["GET", "/metadata/identity/oauth2/token", "true"],
        );
        assert.deepEqual(Object.fromEntries(url.searchParams), {
          "api-version": "2018-02-01",
          resource: RESOURCE,
          [name]: "one",
        });
      },
    );

  prove(
    field("workloadIdentity"),
    `a workload shows its federated token, whatever else the environment has (${place.kind})`,
    async (context) => {
      const folder = mkdtempSync(join(tmpdir(), "gwproxy-entra-"));
      context.after(() => rmSync(folder, { recursive: true }));
      const file = join(folder, "token");
      writeFileSync(file, "federated\n");
      const cloud = await startCloud(context, () => ({
        AZURE_TENANT_ID: "tenant",
        AZURE_CLIENT_ID: "app",
        AZURE_CLIENT_SECRET: "not-this",
        AZURE_FEDERATED_TOKEN_FILE: file,
      }));
      await seen(await serveAuth(context, place, "{cloudB: {workloadIdentity: {}}}"));
      assert.equal(cloud.calls[0]?.form.get("client_assertion"), "federated");
      assert.equal(cloud.calls[0]?.form.get("client_secret"), null);
      rmSync(file);
      const { gateway, echo } = await serveAuth(context, place, "{cloudB: {workloadIdentity: {}}}");
      assert.equal((await call(gateway.url())).status, 500, "a file that vanished");
      assert.equal(echo.seen.length, 0);
    },
  );
}

prove([], "without a configured identity the first that the environment has is used", async (context) => {
  const cloud = await startCloud(context, ({ url }) => ({ IDENTITY_ENDPOINT: `${url}/msi`, IDENTITY_HEADER: "proof" }));
  await seen(await serveAuth(context, INLINE_AUTH, "{cloudB: {}}"));
  assert.equal(cloud.calls[0]?.headers["x-identity-header"], "proof");
  assert.match(cloud.calls[0]?.path ?? "", /^\/msi\?api-version=2019-08-01&resource=/);
  Object.assign(process.env, { AZURE_TENANT_ID: "tenant", AZURE_CLIENT_ID: "app", AZURE_CLIENT_SECRET: "s" });
  await seen(await serveAuth(context, INLINE_AUTH, "{cloudB: {}}"));
  assert.equal(cloud.calls[1]?.form.get("client_secret"), "s");
});

prove(
  [],
  "the identity of the environment does not go to a host of a stranger, and a broken one is not replaced",
  async (context) => {
    const cloud = await startCloud(context);
    cloud.reply = () => ({ status: 401, body: "words" });
    const { gateway, echo } = await serveAuth(context, INLINE_AUTH, "{cloudB: {}}");
    assert.equal((await call(gateway.url())).status, 500);
    assert.equal(cloud.calls.length, 1);
    delete process.env["GWPROXY_AMBIENT_IDENTITY_HOSTS"];
    assert.equal((await call(gateway.url())).status, 500);
    assert.deepEqual([cloud.calls.length, echo.seen.length], [1, 0], "it is not even fetched");
    const half = await serveAuth(
      context,
      INLINE_AUTH,
      "{cloudB: {secretRef: {name: app}}}",
      secret("app", { tenantId: "t" }),
    );
    assert.equal((await call(half.gateway.url())).status, 500);
  },
);
