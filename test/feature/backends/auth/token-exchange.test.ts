/** `auth.oauthTokenExchange` and `auth.crossAppAccess` against token endpoints that record every parameter. */
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { decodeProtectedHeader, jwtVerify } from "jose";
import { createAuthority, createLeaf } from "../../../../src/lib/certificates/x509.ts";
import { call, type Call } from "../../../support/clients/http.ts";
import { createIssuer } from "../../../support/fixtures/tokens.ts";
import {
  AUTH_PLACES,
  INLINE_AUTH,
  secret,
  seen,
  serveAuth,
  verifyTokens,
} from "../../../support/gateway/backend-auth.ts";
import { staticBackend } from "../../../support/gateway/gateway.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { validNow } from "../../../support/servers/tls-upstream.ts";
import { startTokenServer } from "../../../support/servers/token-endpoint.ts";

const TYPE = "urn:ietf:params:oauth:token-type:";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const client = (token: string): Call => ({ headers: { authorization: `Bearer ${token}` } });
const unsigned = (claims: object): string =>
  [{ alg: "none" }, claims, ""].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");

for (const place of AUTH_PLACES) {
  const field = (name: string): string => `${place.prefix}.oauthTokenExchange.${name}`;
  const on = `(${place.kind})`;

  prove(
    [
      field("url"),
      field("audiences[]"),
      field("resources[]"),
      field("scopes[]"),
      field("requestedTokenType"),
      field("additionalParams"),
      field("subjectToken.tokenType"),
    ],
    `the client's token is exchanged for one that the upstream gets, once for all its requests ${on}`,
    async (context) => {
      const server = await startTokenServer(context);
      server.reply = () => ({ members: { issued_token_type: `${TYPE}jwt` } });
      const spec = `url: "${server.url}/token", audiences: [a, b], resources: ["https://r.test"], scopes: [read, write], requestedTokenType: Jwt, subjectToken: {tokenType: IdToken}, additionalParams: {tenant: 'request.headers["x-tenant"]'}`;
      const served = await serveAuth(context, place, `{oauthTokenExchange: {${spec}}}`);
      const options = { headers: { authorization: "Bearer of-the-client", "x-tenant": "t1" } };
      const requests = await Promise.all(Array.from({ length: 200 }, () => seen(served, "/", options)));
      assert.deepEqual(new Set(requests.map(({ headers }) => headers["authorization"])), new Set(["Bearer minted-1"]));
      assert.equal(server.calls.length, 1);
      const [{ method, path, headers, form } = assert.fail("no call")] = server.calls;
      assert.deepEqual([method, path, headers["accept"]], ["POST", "/token", "application/json"]);
      assert.equal(headers["content-type"], "application/x-www-form-urlencoded");
      assert.deepEqual(
        [...form],
        [
          ["grant_type", EXCHANGE],
          ["subject_token", "of-the-client"],
          ["subject_token_type", `${TYPE}id_token`],
          ["audience", "a"],
          ["audience", "b"],
          ["resource", "https://r.test"],
          ["scope", "read write"],
          ["requested_token_type", `${TYPE}jwt`],
          ["tenant", "t1"],
        ],
      );
      await seen(served, "/", { headers: { authorization: "Bearer of-another", "x-tenant": "t1" } });
      await seen(served, "/", { headers: { authorization: "Bearer of-the-client", "x-tenant": "t2" } });
      assert.equal(server.calls.length, 3, "other subjects and parameters are other tokens");
    },
  );

  prove(
    [field("backendRef.name"), field("backendRef.group"), field("backendRef.kind"), field("path"), field("grantType")],
    `an assertion is presented to a backend of the gateway at the path that the block names ${on}`,
    async (context) => {
      const server = await startTokenServer(context);
      const spec =
        "backendRef: {group: gwproxy.dev, kind: GwBackend, name: issuer}, path: /oauth/token, grantType: JwtBearer";
      const issuer = staticBackend("issuer", server.port);
      const served = await serveAuth(context, place, `{oauthTokenExchange: {${spec}}}`, issuer);
      assert.equal((await seen(served, "/", client("assertion"))).headers["authorization"], "Bearer minted-1");
      assert.equal(server.calls[0]?.path, "/oauth/token");
      assert.deepEqual(
        [...(server.calls[0]?.form ?? [])],
        [
          ["grant_type", BEARER],
          ["assertion", "assertion"],
        ],
      );
    },
  );

  prove(
    [
      field("subjectToken.source.header.name"),
      field("actorToken.source.header.name"),
      field("actorToken.tokenType"),
      field("location.header.name"),
    ],
    `subject and actor are read where the block says and leave the request ${on}`,
    async (context) => {
      const server = await startTokenServer(context);
      const spec = `url: "${server.url}", subjectToken: {source: {header: {name: x-subject}}}, actorToken: {source: {header: {name: x-actor}}, tokenType: "urn:own"}, location: {header: {name: x-token}}`;
      const served = await serveAuth(context, place, `{oauthTokenExchange: {${spec}}}`);
      const { headers } = await seen(served, "/", {
        headers: { "x-subject": "s", "x-actor": "a", authorization: "Basic x" },
      });
      const { "x-subject": subject, "x-actor": actor, "x-token": token, authorization } = headers;
      assert.deepEqual([subject, actor, token, authorization], [undefined, undefined, "minted-1", "Basic x"]);
      assert.deepEqual([...(server.calls[0]?.form ?? [])].slice(1), [
        ["subject_token", "s"],
        ["subject_token_type", `${TYPE}access_token`],
        ["actor_token", "a"],
        ["actor_token_type", "urn:own"],
      ]);
      assert.equal((await call(served.gateway.url(), { headers: { "x-subject": "s" } })).status, 400, "no actor");
      assert.equal(server.calls.length, 1, "nothing is asked for a request without tokens");
    },
  );

  prove(field("actorToken.mayAct"), `an actor that the subject does not name is refused ${on}`, async (context) => {
    const server = await startTokenServer(context);
    const spec = `url: "${server.url}", actorToken: {source: {header: {name: x-actor}}, tokenType: Jwt, mayAct: Required}`;
    const served = await serveAuth(context, place, `{oauthTokenExchange: {${spec}}}`);
    const as = async (subject: object, actor: object): Promise<number> =>
      (
        await call(served.gateway.url(), {
          headers: { authorization: `Bearer ${unsigned(subject)}`, "x-actor": unsigned(actor) },
        })
      ).status;
    assert.equal(await as({ may_act: { sub: "robot", aud: "x" } }, { sub: "robot", aud: ["x", "y"] }), 200);
    for (const subject of [
      {},
      { may_act: {} },
      { may_act: "robot" },
      { may_act: { sub: "robot", act: 1 } },
      { may_act: { sub: "other" } },
    ])
      assert.equal(await as(subject, { sub: "robot" }), 403, JSON.stringify(subject));
    assert.equal(server.calls.length, 1);
  });

  prove(
    [
      field("clientAuth.clientId"),
      field("clientAuth.method"),
      field("clientAuth.secretRef.name"),
      field("clientAuth.secretRef.key"),
    ],
    `the gateway names itself by secret, in the header or in the form ${on}`,
    async (context) => {
      const server = await startTokenServer(context);
      const at = (auth: string): string =>
        `{oauthTokenExchange: {url: "${server.url}", clientAuth: {clientId: "my app:1", ${auth}}}}`;
      const key = secret("client", { clientSecret: "a b%", other: "s2" });
      await seen(await serveAuth(context, place, at("secretRef: {name: client}"), key), "/", client("t"));
      await seen(
        await serveAuth(context, place, at("method: ClientSecretPost, secretRef: {name: client, key: other}"), key),
        "/",
        client("t"),
      );
      const [basic, post] = server.calls;
      const expected = Buffer.from("my+app%3A1:a+b%25").toString("base64");
      assert.equal(basic?.headers["authorization"], `Basic ${expected}`);
      assert.deepEqual([basic?.form.get("client_id"), post?.headers["authorization"]], [null, undefined]);
      assert.deepEqual([post?.form.get("client_id"), post?.form.get("client_secret")], ["my app:1", "s2"]);
    },
  );

  prove(
    [
      field("clientAuth.privateKeyJwt.signingKeyRef.name"),
      field("clientAuth.privateKeyJwt.alg"),
      field("clientAuth.privateKeyJwt.kid"),
      field("clientAuth.privateKeyJwt.assertionAudience"),
      field("clientAuth.privateKeyJwt.certificateRef.name"),
      field("clientAuth.privateKeyJwt.certificateHeader"),
    ],
    `the gateway names itself by an assertion that it signs ${on}`,
    async (context) => {
      const server = await startTokenServer(context);
      const key = generateKeyPairSync("ec", { namedCurve: "P-256" })
        .privateKey.export({ type: "pkcs8", format: "pem" })
        .toString();
      const authority = createAuthority("authority", validNow());
      const { certificate } = createLeaf(authority, ["client"], validNow());
      const jwt =
        "signingKeyRef: {name: client}, alg: ES256, kid: k9, assertionAudience: 'https://issuer.test', certificateRef: {name: client}, certificateHeader: x5c";
      const spec = `{oauthTokenExchange: {url: "${server.url}", clientAuth: {clientId: me, method: PrivateKeyJwt, privateKeyJwt: {${jwt}}}}}`;
      await seen(
        await serveAuth(context, place, spec, secret("client", { signingKey: key, certificate })),
        "/",
        client("t"),
      );
      const form = server.calls[0]?.form;
      const assertion = form?.get("client_assertion") ?? "";
      assert.equal(form?.get("client_assertion_type"), "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
      const verified = await jwtVerify(assertion, createPublicKey(key), { algorithms: ["ES256"] }).catch(
        () => undefined,
      );
      assert.ok(verified, "an assertion of ours");
      const { jti, iat = 0, nbf, exp, ...claims } = verified.payload;
      assert.deepEqual(claims, { iss: "me", sub: "me", aud: "https://issuer.test" });
      assert.ok(jti);
      assert.deepEqual([nbf, exp], [iat, iat + 310]);
      const { kid, x5c } = decodeProtectedHeader(assertion);
      assert.deepEqual([kid, x5c?.length], ["k9", 1]);
    },
  );

  prove(
    [field("cache.inMemory.maxEntries"), field("cache.inMemory.defaultTtl")],
    `tokens are kept as long and as many as the block says ${on}`,
    async (context) => {
      const server = await startTokenServer(context);
      server.reply = () => ({ members: { expires_in: undefined } });
      const twice = async (cache: string): Promise<number> => {
        const served = await serveAuth(
          context,
          place,
          `{oauthTokenExchange: {url: "${server.url}", cache: {inMemory: {${cache}}}}}`,
        );
        const before = server.calls.length;
        for (let round = 0; round < 2; round++) await seen(served, "/", client("t"));
        return server.calls.length - before;
      };
      assert.deepEqual([await twice("maxEntries: 0"), await twice("defaultTtl: 5s")], [2, 2]);
      assert.equal(await twice("maxEntries: 1, defaultTtl: 60s"), 1);
    },
  );

  const cross = (name: string): string => `${place.prefix}.crossAppAccess.${name}`;
  prove(
    [
      cross("identityProvider.url"),
      cross("identityProvider.clientAuth.clientId"),
      cross("identityProvider.clientAuth.secretRef.name"),
      cross("resourceAuthorizationServer.url"),
      cross("resourceAuthorizationServer.clientAuth.clientId"),
      cross("resourceAuthorizationServer.clientAuth.secretRef.name"),
      cross("audience"),
      cross("resources[]"),
      cross("scopes[]"),
      cross("accessTokenScopes[]"),
      cross("subjectToken.tokenType"),
    ],
    `the identity provider vouches for the client, and the other server gives the token ${on}`,
    async (context) => {
      const provider = await startTokenServer(context);
      provider.reply = () => ({
        members: { access_token: "assertion", issued_token_type: `${TYPE}id-jag`, token_type: "N_A" },
      });
      const server = await startTokenServer(context);
      const auth = (id: string): string => `clientAuth: {clientId: ${id}, secretRef: {name: ${id}}}`;
      const spec = `identityProvider: {url: "${provider.url}/idp", ${auth("one")}}, resourceAuthorizationServer: {url: "${server.url}/as", ${auth("two")}}, audience: "https://as.test", resources: ["https://r.test"], scopes: [s1, s2], accessTokenScopes: [s1], subjectToken: {tokenType: AccessToken}`;
      const secrets = [secret("one", { clientSecret: "x" }), secret("two", { clientSecret: "y" })];
      const served = await serveAuth(context, place, `{crossAppAccess: {${spec}}}`, ...secrets);
      for (let round = 0; round < 2; round++)
        assert.equal((await seen(served, "/", client("t"))).headers["authorization"], "Bearer minted-1");
      assert.deepEqual([provider.calls.length, server.calls.length], [1, 1]);
      assert.deepEqual(
        [provider.calls[0]?.headers["authorization"], server.calls[0]?.headers["authorization"]],
        ["one:x", "two:y"].map((text) => `Basic ${Buffer.from(text).toString("base64")}`),
      );
      assert.deepEqual(
        [...(provider.calls[0]?.form ?? [])],
        [
          ["grant_type", EXCHANGE],
          ["requested_token_type", `${TYPE}id-jag`],
          ["subject_token", "t"],
          ["subject_token_type", `${TYPE}access_token`],
          ["audience", "https://as.test"],
          ["resource", "https://r.test"],
          ["scope", "s1 s2"],
        ],
      );
      assert.deepEqual(
        [...(server.calls[0]?.form ?? [])],
        [
          ["grant_type", BEARER],
          ["assertion", "assertion"],
          ["scope", "s1"],
        ],
      );
      server.reply = () => ({ status: 400, body: "{}" });
      assert.equal((await call(served.gateway.url(), client("other"))).status, 500, "the client did not cause it");
    },
  );

  const ends = ["identityProvider", "resourceAuthorizationServer"] as const;
  prove(
    [
      ...ends.flatMap((end) =>
        ["path", "backendRef.name", "backendRef.group", "backendRef.kind"].map((name) => cross(`${end}.${name}`)),
      ),
      cross("subjectToken.source.header.name"),
      cross("cache.inMemory.maxEntries"),
    ],
    `both servers may be backends of the gateway, and the token may be in another header ${on}`,
    async (context) => {
      const server = await startTokenServer(context);
      server.reply = ({ path }) =>
        path === "/idp" ? { members: { issued_token_type: `${TYPE}id-jag`, token_type: "N_A" } } : {};
      const end = (name: string, path: string): string =>
        `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: ${name}}, path: ${path}, clientAuth: {clientId: c, method: ClientSecretPost}}`;
      const spec = `identityProvider: ${end("idp", "/idp")}, resourceAuthorizationServer: ${end("as", "/as")}, audience: a, subjectToken: {source: {header: {name: x-token}}}, cache: {inMemory: {maxEntries: 0}}`;
      const servers = [staticBackend("idp", server.port), staticBackend("as", server.port)];
      const served = await serveAuth(context, place, `{crossAppAccess: {${spec}}}`, ...servers);
      for (let round = 0; round < 2; round++) {
        const { headers } = await seen(served, "/", { headers: { "x-token": "t" } });
        assert.equal(headers["x-token"], undefined);
      }
      assert.deepEqual(
        server.calls.map(({ path }) => path),
        ["/idp", "/as", "/idp", "/as"],
      );
      assert.equal(server.calls[0]?.form.get("subject_token"), "t");
    },
  );
}

prove(
  [],
  "behind a JWT policy the verified token is exchanged, also where it was taken out of a cookie",
  async (context) => {
    const server = await startTokenServer(context);
    const issuer = await createIssuer("https://issuer.test");
    const auth = `{oauthTokenExchange: {url: "${server.url}"}}`;
    const served = await serveAuth(context, INLINE_AUTH, auth, verifyTokens(issuer, "location: {cookie: {name: s}}"));
    const token = await issuer.token();
    const { headers } = await seen(served, "/", { headers: { cookie: `s=${token}`, authorization: "Bearer another" } });
    assert.equal(headers["authorization"], "Bearer minted-1");
    assert.equal(server.calls[0]?.form.get("subject_token"), token);
  },
);
