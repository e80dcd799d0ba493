/** Token endpoints of `auth`: what they should not answer, which backends they may be, and how many tokens are kept. */
import assert from "node:assert/strict";
import { createAuthority, createLeaf } from "../../../../src/lib/certificates/x509.ts";
import { call, type Call } from "../../../support/clients/http.ts";
import { INLINE_AUTH, secret, seen, serveAuth } from "../../../support/gateway/backend-auth.ts";
import { documents, staticBackend } from "../../../support/gateway/gateway.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { validNow } from "../../../support/servers/tls-upstream.ts";
import { startTokenServer, type TokenReply } from "../../../support/servers/token-endpoint.ts";

const client = (token: string): Call => ({ headers: { authorization: `Bearer ${token}` } });

const BAD: readonly (readonly [string, TokenReply, number])[] = [
  ["a type that is not JSON", { type: "text/html" }, 500],
  ["a body that is not JSON", { body: "words-of-the-server" }, 500],
  ["3 MB", { body: JSON.stringify({ access_token: "x".repeat(3_000_000), token_type: "Bearer" }) }, 500],
  ["1.5 MB", { members: { padding: "x".repeat(1_500_000) } }, 500],
  ["a redirect", { status: 302, headers: { location: "http://127.0.0.1:1/" } }, 500],
  ["no content", { status: 204 }, 500],
  ["a token with line ends", { members: { access_token: "a\r\nx-evil: 1" } }, 500],
  ["a token that is no text", { members: { access_token: 7 } }, 500],
  ["an empty token", { members: { access_token: "" } }, 500],
  ["another type of token", { members: { token_type: "DPoP" } }, 500],
  ["400", { status: 400, body: '{"error":"words-of-the-server"}' }, 400],
  ["401", { status: 401, body: "words-of-the-server" }, 500],
  ["403", { status: 403 }, 500],
  ["429", { status: 429 }, 400],
  ["503", { status: 503, body: "words-of-the-server" }, 500],
];

prove(
  [],
  "what a token endpoint should not answer lets no request out, and its words stay away from clients",
  async (context) => {
    const server = await startTokenServer(context);
    const { gateway, echo } = await serveAuth(context, INLINE_AUTH, `{oauthTokenExchange: {url: "${server.url}"}}`);
    for (const [name, reply, expected] of BAD) {
      server.reply = () => reply;
      const { status, body } = await call(gateway.url(), client("t"));
      assert.equal(status, expected, name);
      assert.doesNotMatch(body, /words-of-the-server/);
    }
    assert.equal(server.calls.length, BAD.length, "failures are not kept");
    assert.equal((await call(gateway.url())).status, 400, "a request without a token");
    assert.equal(echo.seen.length, 0);
    assert.doesNotMatch(JSON.stringify((await gateway.proxy.state()).credentials), /words-of-the-server|minted/);
    server.reply = () => ({ members: { expires_in: "3600" } });
    assert.equal((await call(gateway.url(), client("t"))).status, 200);
  },
);

prove([], "more subjects than the cache holds push out the least recent ones", async (context) => {
  const server = await startTokenServer(context);
  const auth = `{oauthTokenExchange: {url: "${server.url}", cache: {inMemory: {maxEntries: 3}}}}`;
  const served = await serveAuth(context, INLINE_AUTH, auth);
  for (const subject of ["a", "b", "c", "d", "d", "c", "b", "a"]) await seen(served, "/", client(subject));
  assert.equal(server.calls.length, 5, "the least recent one was asked for again");
});

prove([], "a certificate of another key than the one that signs is a warning", async (context) => {
  const server = await startTokenServer(context);
  const authority = createAuthority("authority", validNow());
  const [own, other] = [createLeaf(authority, ["own"], validNow()), createLeaf(authority, ["other"], validNow())];
  const jwt =
    "signingKeyRef: {name: client}, alg: ES256, assertionAudience: a, certificateRef: {name: client}, certificateHeader: x5c";
  const spec = `url: "${server.url}", clientAuth: {clientId: c, method: PrivateKeyJwt, privateKeyJwt: {${jwt}}}`;
  const warnings: unknown[] = [];
  for (const { certificate } of [own, other]) {
    const key = secret("client", { signingKey: own.key, certificate });
    const served = await serveAuth(context, INLINE_AUTH, `{oauthTokenExchange: {${spec}}}`, key);
    await seen(served, "/", client("t"));
    warnings.push(served.gateway.translator.diagnostics().map(({ path, severity }) => [path, severity]));
  }
  const path = "spec.policies.auth.oauthTokenExchange.clientAuth.privateKeyJwt.certificateRef";
  assert.deepEqual(warnings, [[], [[path, "warning"]]]);
});

/** A token endpoint with an `auth` block of its own, in the GwBackend or in a policy on it, and what is reported. */
const CHAINS: readonly (readonly [title: string, auth: string, client: string, report: RegExp | undefined])[] = [
  [
    "exchanges tokens itself",
    `oauthTokenExchange: {url: "http://127.0.0.1:1"}`,
    "",
    /^spec\.policies\.auth\.oauthTokenExchange\.backendRef: the auth of this backend exchanges tokens itself/,
  ],
  [
    "has a key beside a client secret in the header",
    "key: own",
    "clientAuth: {clientId: c, secretRef: {name: client}}",
    /^spec\.policies\.auth\.oauthTokenExchange\.clientAuth\.method: the backend of the token endpoint has auth of its own/,
  ],
  [
    "has a key beside a client secret in the form",
    "key: own",
    "clientAuth: {clientId: c, method: ClientSecretPost, secretRef: {name: client}}",
    undefined,
  ],
];

for (const [title, auth, clientAuth, report] of CHAINS)
  for (const isInline of [true, false])
    prove([], `a token endpoint that ${title}, ${isInline ? "in its own block" : "by a policy"}`, async (context) => {
      const server = await startTokenServer(context);
      const spec = `backendRef: {group: gwproxy.dev, kind: GwBackend, name: issuer}, ${clientAuth}`;
      const { gateway, echo } = await serveAuth(
        context,
        INLINE_AUTH,
        `{oauthTokenExchange: {${spec}}}`,
        secret("client", { clientSecret: "s" }),
        isInline
          ? `${staticBackend("issuer", server.port).trimEnd()}\n  policies: {auth: {${auth}}}\n`
          : documents(
              staticBackend("issuer", server.port),
              `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: on-issuer}
spec: {targetRefs: [{group: gwproxy.dev, kind: GwBackend, name: issuer}], backend: {auth: {${auth}}}}
`,
            ),
      );
      const { status } = await call(gateway.url(), client("t"));
      const found = gateway.translator
        .diagnostics()
        .filter(({ object, severity }) => object.name === "web" && severity === "error")
        .map(({ path, message }) => `${path}: ${message}`);
      if (report === undefined) {
        assert.deepEqual([status, found], [200, []]);
        assert.equal(server.calls[0]?.headers["authorization"], "Bearer own");
        return;
      }
      assert.equal(status, 500);
      assert.equal(found.length, 1, found.join("\n"));
      assert.match(found[0] ?? "", report);
      assert.deepEqual([server.calls.length, echo.seen.length], [0, 0]);
    });
