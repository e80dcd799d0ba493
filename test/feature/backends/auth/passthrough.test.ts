/** `auth.passthrough` and `auth.credentials`: the client's verified token, and credentials beside others. */
import assert from "node:assert/strict";
import { call } from "../../../support/clients/http.ts";
import { FOREIGN, namesForeign } from "../../../support/fixtures/foreign-secret.ts";
import { createIssuer } from "../../../support/fixtures/tokens.ts";
import {
  AUTH_PLACES,
  INLINE_AUTH,
  secret,
  seen,
  serveAuth,
  verifyTokens,
} from "../../../support/gateway/backend-auth.ts";
import { prove } from "../../../support/proofs/prove.ts";

const ISSUER = "https://issuer.test";

for (const place of AUTH_PLACES) {
  const field = (name: string): string => `${place.prefix}.${name}`;

  prove(
    field("passthrough"),
    `the token that a policy verified goes on to the upstream (${place.kind})`,
    async (context) => {
      const issuer = await createIssuer(ISSUER);
      const served = await serveAuth(context, place, "{passthrough: {}}", verifyTokens(issuer));
      const token = await issuer.token();
      const { headers } = await seen(served, "/", { headers: { authorization: `Bearer ${token}` } });
      assert.equal(headers["authorization"], `Bearer ${token}`);
    },
  );

  prove(
    [
      field("credentials[].secretRef.name"),
      field("credentials[].secretRef.key"),
      field("credentials[].location.header.name"),
      field("credentials[].location.header.prefix"),
    ],
    `further credentials are written after the first one, in their order (${place.kind})`,
    async (context) => {
      const list =
        '[{secretRef: {name: more}, location: {header: {name: X-First, prefix: "A "}}}, {secretRef: {name: more, key: other}, location: {header: {name: X-Second, prefix: "B "}}}]';
      const more = secret("more", { Authorization: "Bearer one", other: "two" });
      const { headers } = await seen(await serveAuth(context, place, `{key: first, credentials: ${list}}`, more), "/", {
        headers: { "x-first": "of-the-client" },
      });
      assert.deepEqual(
        [headers["authorization"], headers["x-first"], headers["x-second"]],
        ["Bearer first", "A one", "B two"],
      );
    },
  );

  prove(
    [field("credentials[].location.queryParameter.name"), field("credentials[].location.cookie.name")],
    `credentials alone go into a query parameter and a cookie, and the client's own header stays (${place.kind})`,
    async (context) => {
      const list =
        "[{secretRef: {name: more}, location: {queryParameter: {name: key}}}, {secretRef: {name: more, key: other}, location: {cookie: {name: s}}}]";
      const more = secret("more", { Authorization: "one", other: "two" });
      const { headers, url } = await seen(
        await serveAuth(context, place, `{credentials: ${list}}`, more),
        "/p?key=of-the-client&x=1",
        { headers: { cookie: "s=of-the-client; a=1", authorization: "Bearer of-the-client" } },
      );
      assert.deepEqual(
        [url, headers["cookie"], headers["authorization"]],
        ["/p?x=1&key=one", "a=1; s=two", "Bearer of-the-client"],
      );
    },
  );

  prove(
    [field("credentials[].secretRef.group"), field("credentials[].secretRef.kind")],
    `a further credential of a kind that is not known closes the backend (${place.kind})`,
    async (context) => {
      const list = `[{secretRef: {name: more, ${FOREIGN}}, location: {header: {name: x-more}}}]`;
      const more = secret("more", { Authorization: "one" });
      const { gateway, echo } = await serveAuth(context, place, `{key: first, credentials: ${list}}`, more);
      assert.equal((await call(gateway.url())).status, 500);
      namesForeign(gateway);
      assert.equal(echo.seen.length, 0);
    },
  );
}

const LOCATIONS = [
  ["{queryParameter: {name: ticket}}", (token: string) => ({ path: `/p?a=1&ticket=${token}`, headers: {} })],
  ["{cookie: {name: session}}", (token: string) => ({ path: "/p?a=1", headers: { cookie: `session=${token}` } })],
] as const;

for (const [location, present] of LOCATIONS)
  prove(
    [],
    `a verified token that came as ${location} is put where the block says, and nowhere else`,
    async (context) => {
      const issuer = await createIssuer(ISSUER);
      const auth = "{passthrough: {}, location: {header: {name: x-token, prefix: 'Token '}}}";
      const served = await serveAuth(context, INLINE_AUTH, auth, verifyTokens(issuer, `location: ${location}`));
      const token = await issuer.token();
      const { path, headers } = present(token);
      const got = await seen(served, path, { headers });
      assert.deepEqual(
        [got.headers["x-token"], got.headers["cookie"], got.url],
        [`Token ${token}`, undefined, "/p?a=1"],
      );
    },
  );

prove(
  [],
  "a token that no policy verified is not put anywhere, whatever else authenticated the client",
  async (context) => {
    const issuer = await createIssuer(ISSUER);
    const auth = "{passthrough: {}, location: {header: {name: x-token}}}";
    const served = await serveAuth(context, INLINE_AUTH, auth, verifyTokens(issuer, "mode: Permissive"));
    const forged = await (await createIssuer(ISSUER)).token();
    for (const authorization of [`Bearer ${forged}`, "Basic YTpi"]) {
      const { headers } = await seen(served, "/", { headers: { authorization } });
      assert.deepEqual([headers["x-token"], headers["authorization"]], [undefined, authorization]);
    }
  },
);

prove([], "a credential whose Secret is missing closes the backend, though the first one is there", async (context) => {
  const list = "[{secretRef: {name: missing}, location: {header: {name: x-more}}}]";
  for (const place of AUTH_PLACES) {
    const { gateway, echo } = await serveAuth(context, place, `{key: first, credentials: ${list}}`);
    assert.equal((await call(gateway.url())).status, 500);
    assert.equal(echo.seen.length, 0);
  }
});
