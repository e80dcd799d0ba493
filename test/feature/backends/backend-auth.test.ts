/** Credentials for upstreams, set inline on a GwBackend and by a GwPolicy. */
import assert from "node:assert/strict";
import { echoed, startEcho, type Echoed } from "../../support/servers/echo.ts";
import { FOREIGN, namesForeign } from "../../support/fixtures/foreign-secret.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call, type Call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

/** The two places where the same block can stand. */
interface Place {
  readonly prefix: string;
  /** A backend `web` with the block, and a policy if that is where the block stands. @param auth YAML flow */
  objects(port: number, auth: string): string;
}

const INLINE: Place = {
  prefix: "GwBackend spec.policies.auth",
  objects: (port, auth) => `${staticBackend("web", port).trimEnd()}\n  policies: {auth: ${auth}}\n`,
};
const ATTACHED: Place = {
  prefix: "GwPolicy spec.backend.auth",
  objects: (port, auth) =>
    documents(staticBackend("web", port), routePolicy("auth", "web", `  backend: {auth: ${auth}}`)),
};

const SECRET = `
apiVersion: v1
kind: Secret
metadata: {name: provider}
stringData:
  Authorization: Bearer of-the-default-entry
  token: of-another-entry
`;

async function serve(
  context: ProofContext,
  place: Place,
  auth: string,
  ...more: readonly string[]
): Promise<TestGateway> {
  const { port } = await startEcho(context);
  return startGateway(context, documents(GATEWAY, place.objects(port, auth), route("web", "web"), ...more));
}

/** What the upstream saw of a request. */
async function seen(gateway: TestGateway, path = "/", options: Call = {}): Promise<Echoed> {
  const answer = await call(gateway.url() + path, options);
  assert.equal(answer.status, 200, answer.body);
  return echoed(answer.body);
}

const FROM_CLIENT = { headers: { authorization: "Bearer of-the-client" } };

for (const place of [INLINE, ATTACHED]) {
  const on = `(${place.prefix.split(" ")[0]})`;
  const field = (name: string) => `${place.prefix}.${name}`;

  prove(field("key"), `a bare token is sent as Bearer in place of what the client sent ${on}`, async (context) => {
    const gateway = await serve(context, place, "{key: bare-token}");
    assert.equal((await seen(gateway, "/", FROM_CLIENT)).headers["authorization"], "Bearer bare-token");
  });

  prove(field("key"), `a value that names its scheme is sent as it stands ${on}`, async (context) => {
    const gateway = await serve(context, place, "{key: Basic dXNlcjpwYXNz}");
    assert.equal((await seen(gateway)).headers["authorization"], "Basic dXNlcjpwYXNz");
  });

  prove(field("secretRef.name"), `the credential is the entry Authorization of the Secret ${on}`, async (context) => {
    const gateway = await serve(context, place, "{secretRef: {name: provider}}", SECRET);
    assert.equal((await seen(gateway, "/", FROM_CLIENT)).headers["authorization"], "Bearer of-the-default-entry");
  });

  prove(field("secretRef.key"), `the credential is the entry that the block names ${on}`, async (context) => {
    const gateway = await serve(context, place, "{secretRef: {name: provider, key: token}}", SECRET);
    assert.equal((await seen(gateway)).headers["authorization"], "Bearer of-another-entry");
  });

  prove(
    [field("secretRef.group"), field("secretRef.kind")],
    `a Secret does not stand in for a credential of a kind that nobody knows ${on}`,
    async (context) => {
      const gateway = await serve(context, place, `{secretRef: {name: provider, ${FOREIGN}}}`, SECRET);
      assert.equal((await call(gateway.url(), FROM_CLIENT)).status, 500);
      namesForeign(gateway);
    },
  );

  prove(
    [field("location.header.name"), field("location.header.prefix")],
    `the credential is written to the header, after its prefix, and the client's own stays away ${on}`,
    async (context) => {
      const gateway = await serve(
        context,
        place,
        '{key: secret-value, location: {header: {name: X-Api-Key, prefix: "Key "}}}',
      );
      const { headers } = await seen(gateway, "/", { headers: { "x-api-key": "of-the-client" } });
      assert.equal(headers["x-api-key"], "Key secret-value");
      assert.equal(headers["authorization"], undefined);
    },
  );

  prove(
    field("location.queryParameter.name"),
    `the credential replaces the query parameter and the others stay ${on}`,
    async (context) => {
      const gateway = await serve(context, place, "{key: a b&c, location: {queryParameter: {name: key}}}");
      const { url, headers } = await seen(gateway, "/p?key=of-the-client&x=1");
      assert.equal(url, "/p?x=1&key=a%20b%26c");
      assert.equal(headers["authorization"], undefined);
    },
  );

  prove(
    field("location.cookie.name"),
    `the credential replaces the cookie and the others stay ${on}`,
    async (context) => {
      const gateway = await serve(context, place, "{key: secret-value, location: {cookie: {name: session}}}");
      const { headers } = await seen(gateway, "/", { headers: { cookie: "a=1; session=of-the-client" } });
      assert.equal(headers["cookie"], "a=1; session=secret-value");
      assert.equal(headers["authorization"], undefined);
    },
  );
}

prove([], "a GwBackend whose Secret is missing answers 500 until it is there", async (context) => {
  const { port } = await startEcho(context);
  const base = documents(GATEWAY, INLINE.objects(port, "{secretRef: {name: provider}}"), route("web", "web"));
  const gateway = await startGateway(context, base);
  assert.equal((await call(gateway.url())).status, 500);
  await gateway.change(documents(base, SECRET));
  assert.equal((await seen(gateway)).headers["authorization"], "Bearer of-the-default-entry");
});

prove(
  [],
  "a GwPolicy whose Secret is missing sends nothing, not even with the client's own credential",
  async (context) => {
    const gateway = await serve(context, ATTACHED, "{secretRef: {name: provider}}");
    const { status, body } = await call(gateway.url(), FROM_CLIENT);
    assert.deepEqual([status, body], [500, "backend authentication failed"]);
  },
);

prove([], "the credential of the GwBackend beats that of a GwPolicy on its route", async (context) => {
  const policy = routePolicy("auth", "web", "  backend: {auth: {key: of-the-policy}}");
  const gateway = await serve(context, INLINE, "{key: of-the-backend}", policy);
  assert.equal((await seen(gateway)).headers["authorization"], "Bearer of-the-backend");
});
