/** Credentials for upstreams, set inline on a GwBackend and by a GwPolicy. */
import assert from "node:assert/strict";
import { call } from "../../../support/clients/http.ts";
import { FOREIGN, namesForeign } from "../../../support/fixtures/foreign-secret.ts";
import { ATTACHED_AUTH, AUTH_PLACES, INLINE_AUTH, seen, serveAuth } from "../../../support/gateway/backend-auth.ts";
import { documents, routePolicy } from "../../../support/gateway/gateway.ts";
import { prove } from "../../../support/proofs/prove.ts";

const SECRET = `
apiVersion: v1
kind: Secret
metadata: {name: provider}
stringData:
  Authorization: Bearer of-the-default-entry
  token: of-another-entry
`;

const FROM_CLIENT = { headers: { authorization: "Bearer of-the-client" } };

for (const place of AUTH_PLACES) {
  const on = `(${place.kind})`;
  const field = (name: string) => `${place.prefix}.${name}`;

  prove(field("key"), `a bare token is sent as Bearer in place of what the client sent ${on}`, async (context) => {
    const served = await serveAuth(context, place, "{key: bare-token}");
    assert.equal((await seen(served, "/", FROM_CLIENT)).headers["authorization"], "Bearer bare-token");
  });

  prove(field("key"), `a value that names its scheme is sent as it stands ${on}`, async (context) => {
    const served = await serveAuth(context, place, "{key: Basic dXNlcjpwYXNz}");
    assert.equal((await seen(served)).headers["authorization"], "Basic dXNlcjpwYXNz");
  });

  prove(field("secretRef.name"), `the credential is the entry Authorization of the Secret ${on}`, async (context) => {
    const served = await serveAuth(context, place, "{secretRef: {name: provider}}", SECRET);
    assert.equal((await seen(served, "/", FROM_CLIENT)).headers["authorization"], "Bearer of-the-default-entry");
  });

  prove(field("secretRef.key"), `the credential is the entry that the block names ${on}`, async (context) => {
    const served = await serveAuth(context, place, "{secretRef: {name: provider, key: token}}", SECRET);
    assert.equal((await seen(served)).headers["authorization"], "Bearer of-another-entry");
  });

  prove(
    [field("secretRef.group"), field("secretRef.kind")],
    `a Secret does not stand in for a credential of a kind that nobody knows ${on}`,
    async (context) => {
      const { gateway } = await serveAuth(context, place, `{secretRef: {name: provider, ${FOREIGN}}}`, SECRET);
      assert.equal((await call(gateway.url(), FROM_CLIENT)).status, 500);
      namesForeign(gateway);
    },
  );

  prove(
    [field("location.header.name"), field("location.header.prefix")],
    `the credential is written to the header, after its prefix, and the client's own stays away ${on}`,
    async (context) => {
      const served = await serveAuth(
        context,
        place,
        '{key: secret-value, location: {header: {name: X-Api-Key, prefix: "Key "}}}',
      );
      const { headers } = await seen(served, "/", { headers: { "x-api-key": "of-the-client" } });
      assert.equal(headers["x-api-key"], "Key secret-value");
      assert.equal(headers["authorization"], undefined);
    },
  );

  prove(
    field("location.queryParameter.name"),
    `the credential replaces the query parameter and the others stay ${on}`,
    async (context) => {
      const served = await serveAuth(context, place, "{key: a b&c, location: {queryParameter: {name: key}}}");
      const { url, headers } = await seen(served, "/p?key=of-the-client&x=1");
      assert.equal(url, "/p?x=1&key=a%20b%26c");
      assert.equal(headers["authorization"], undefined);
    },
  );

  prove(
    field("location.cookie.name"),
    `the credential replaces the cookie and the others stay ${on}`,
    async (context) => {
      const served = await serveAuth(context, place, "{key: secret-value, location: {cookie: {name: session}}}");
      const { headers } = await seen(served, "/", { headers: { cookie: "a=1; session=of-the-client" } });
      assert.equal(headers["cookie"], "a=1; session=secret-value");
      assert.equal(headers["authorization"], undefined);
    },
  );
}

prove([], "a GwBackend whose Secret is missing answers 500 until it is there", async (context) => {
  const served = await serveAuth(context, INLINE_AUTH, "{secretRef: {name: provider}}");
  assert.equal((await call(served.gateway.url())).status, 500);
  await served.gateway.change(documents(served.manifests, SECRET));
  assert.equal((await seen(served)).headers["authorization"], "Bearer of-the-default-entry");
});

prove(
  [],
  "a GwPolicy whose Secret is missing sends nothing, not even with the client's own credential",
  async (context) => {
    const { gateway, echo } = await serveAuth(context, ATTACHED_AUTH, "{secretRef: {name: provider}}");
    const { status, body } = await call(gateway.url(), FROM_CLIENT);
    assert.deepEqual([status, body], [500, "backend authentication failed"]);
    assert.equal(echo.seen.length, 0);
  },
);

prove([], "the credential of the GwBackend beats that of a GwPolicy on its route", async (context) => {
  const policy = routePolicy("auth", "web", "  backend: {auth: {key: of-the-policy}}");
  const served = await serveAuth(context, INLINE_AUTH, "{key: of-the-backend}", policy);
  assert.equal((await seen(served)).headers["authorization"], "Bearer of-the-backend");
});
