/** Where exchanged tokens come from and go to, who asks for them, and credentials of foreign kinds, at every place of `auth`. */
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { decodeProtectedHeader, jwtVerify } from "jose";
import { createAuthority, createLeaf } from "../../../../src/lib/certificates/x509.ts";
import { FOREIGN, namesForeign } from "../../../support/fixtures/foreign-secret.ts";
import {
  assertBearer,
  everywhere,
  placeRows,
  type AuthRow,
  type RefusedScene,
} from "../../../support/gateway/auth-places.ts";
import { secret } from "../../../support/gateway/backend-auth.ts";
import { service } from "../../../support/gateway/models.ts";
import { prove, type ProofContext } from "../../../support/proofs/prove.ts";
import { startTokenServer, type TokenServer } from "../../../support/servers/token-endpoint.ts";
import { validNow } from "../../../support/servers/tls-upstream.ts";

const TYPE = "urn:ietf:params:oauth:token-type:";
const P256 = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();
const LEAF = createLeaf(createAuthority("authority", validNow()), ["client"], validNow()).certificate;
/** The entries that the gateway reads by default hold something else. */
const CLIENT = secret("client", {
  clientSecret: "first",
  other: "second",
  signingKey: "unused",
  own: P256,
  certificate: "unused",
  leaf: LEAF,
});

/** A server that vouches for a client at /idp, and gives tokens elsewhere. */
async function startIssuer(context: ProofContext): Promise<TokenServer> {
  const server = await startTokenServer(context);
  server.reply = ({ form }) =>
    form.get("requested_token_type")?.endsWith("id-jag") === true
      ? { members: { issued_token_type: `${TYPE}id-jag`, token_type: "N_A" } }
      : {};
  return server;
}

const exchange = (...names: readonly string[]): string[] => names.map((name) => `oauthTokenExchange.${name}`);
const cross = (...names: readonly string[]): string[] => names.map((name) => `crossAppAccess.${name}`);
const ENDS = ["identityProvider", "resourceAuthorizationServer"] as const;
const ofBothEnds = (...names: readonly string[]): string[] =>
  cross(...ENDS.flatMap((end) => names.map((name) => `${end}.${name}`)));

interface Source {
  /** Path below `source`. */
  readonly field: string;
  /** YAML flow of `source`, for a token of that name. */
  at(name: string): string;
  present(name: string): { readonly headers?: Readonly<Record<string, string>>; readonly query?: string };
}

const COOKIE: Source = {
  field: "cookie.name",
  at: (name) => `{cookie: {name: ${name}}}`,
  present: (name) => ({ headers: { cookie: `${name}=${name}` } }),
};
const QUERY: Source = {
  field: "queryParameter.name",
  at: (name) => `{queryParameter: {name: ${name}}}`,
  present: (name) => ({ query: `?${name}=${name}` }),
};
const PREFIX: Source = {
  field: "header.prefix",
  at: (name) => `{header: {name: x-${name}, prefix: "P "}}`,
  present: (name) => ({ headers: { [`x-${name}`]: `P ${name}` } }),
};
const EXPRESSION: Source = {
  field: "expression",
  at: (name) => `{expression: 'request.headers["x-${name}"]'}`,
  present: (name) => ({ headers: { [`x-${name}`]: name } }),
};

const PAIRS: readonly (readonly [subject: Source, actor: Source])[] = [
  [COOKIE, QUERY],
  [QUERY, COOKIE],
  [PREFIX, EXPRESSION],
  [EXPRESSION, PREFIX],
];

const SOURCES: readonly AuthRow[] = PAIRS.map(([subject, actor]) => ({
  name: `a token for a subject in ${subject.field} and an actor in ${actor.field}`,
  fields: exchange(`subjectToken.source.${subject.field}`, `actorToken.source.${actor.field}`),
  arrange: async (context: ProofContext) => {
    const server = await startIssuer(context);
    const [s, a] = [subject.present("subject"), actor.present("actor")];
    return {
      auth: `{oauthTokenExchange: {url: "${server.url}", subjectToken: {source: ${subject.at("subject")}}, actorToken: {source: ${actor.at("actor")}}}}`,
      headers: { ...s.headers, ...a.headers },
      query: s.query ?? a.query ?? "",
      check(request) {
        assertBearer(request, "minted-1");
        const form = server.calls[0]?.form;
        assert.deepEqual([form?.get("subject_token"), form?.get("actor_token")], ["subject", "actor"]);
      },
    };
  },
}));

const LOCATIONS: readonly AuthRow[] = (
  [
    ["header.prefix", `{header: {name: x-token, prefix: "T "}}`, "T minted-1"],
    ["cookie.name", "{cookie: {name: x-token}}", "x-token=minted-1"],
    ["queryParameter.name", "{queryParameter: {name: x-token}}", "?x-token=minted-1"],
  ] as const
).map(([field, location, placed]) => ({
  name: `a new token in ${field}`,
  fields: exchange(`location.${field}`),
  arrange: async (context: ProofContext) => {
    const server = await startIssuer(context);
    return {
      auth: `{oauthTokenExchange: {url: "${server.url}", location: ${location}}}`,
      headers: { authorization: "Bearer of-the-client" },
      check({ headers, url }) {
        const query = url.slice(url.indexOf("?"));
        assert.ok([headers["x-token"], headers["cookie"], query].includes(placed), JSON.stringify(headers));
      },
    };
  },
}));

const SIGNED =
  "clientAuth: {clientId: me, method: PrivateKeyJwt, privateKeyJwt: {signingKeyRef: {name: client, key: own}, alg: ES256, kid: k9, assertionAudience: 'https://as.test', certificateRef: {name: client, key: leaf}, certificateHeader: x5c}}";
const SIGNED_FIELDS = ["signingKeyRef.key", "certificateRef.name", "certificateRef.key", "certificateHeader"].map(
  (name) => `clientAuth.privateKeyJwt.${name}`,
);

async function checkAssertion({ form }: TokenServer["calls"][number]): Promise<void> {
  const assertion = form.get("client_assertion") ?? "";
  const verified = await jwtVerify(assertion, createPublicKey(P256), { algorithms: ["ES256"] }).catch(() => undefined);
  assert.equal(verified?.payload.aud, "https://as.test");
  const { kid, x5c } = decodeProtectedHeader(assertion);
  assert.deepEqual([kid, x5c?.length], ["k9", 1]);
}

const ends = (members: (end: string) => string): string =>
  ENDS.map((end) => `${end}: {${members(end)}}`).join(", ") + ", audience: a";

/** A Service of another namespace, whose port 80 leads to the server. */
const inNamespace = (port: number): string =>
  service("issuer", port)
    .replace("{name: issuer}", "{name: issuer, namespace: apart}")
    .replace("{name: issuer-1,", "{name: issuer-1, namespace: apart,")
    .replace("[{name: http, port: 80}]", "[{name: other, port: 81}, {name: http, port: 80}]");
const APART = "backendRef: {name: issuer, namespace: apart, port: 80}";

const SERVERS: readonly AuthRow[] = [
  {
    name: "a token for a gateway that shows a certificate",
    fields: exchange(...SIGNED_FIELDS),
    arrange: async (context: ProofContext) => {
      const server = await startIssuer(context);
      return {
        auth: `{oauthTokenExchange: {url: "${server.url}", ${SIGNED}}}`,
        more: [CLIENT],
        headers: { authorization: "Bearer of-the-client" },
        check: () => checkAssertion(server.calls[0] ?? assert.fail("no token was asked for")),
      };
    },
  },
  {
    name: "a token of a server in another namespace",
    fields: exchange("backendRef.namespace", "backendRef.port"),
    arrange: async (context: ProofContext) => {
      const server = await startIssuer(context);
      return {
        auth: `{oauthTokenExchange: {${APART}}}`,
        more: [inNamespace(server.port)],
        headers: { authorization: "Bearer of-the-client" },
        check: (request) => assertBearer(request, "minted-1"),
      };
    },
  },
  ...[
    ["maxEntries", 0],
    ["defaultTtl", "5s"],
  ].map(([field, value]): AuthRow => ({
    name: `tokens that ${field} does not let it keep`,
    fields: exchange(`cache.inMemory.${field}`),
    arrange: async (context: ProofContext) => {
      const server = await startTokenServer(context);
      server.reply = () => ({ members: { expires_in: undefined } });
      return {
        auth: `{oauthTokenExchange: {url: "${server.url}", cache: {inMemory: {${field}: ${value}}}}}`,
        headers: { authorization: "Bearer of-the-client" },
        times: 2,
        check: () => assert.equal(server.calls.length, 2),
      };
    },
  })),
];

/** @param block with a Secret of a kind that is not known */
const foreign = (name: string, fields: readonly string[], auth: string): AuthRow => ({
  name: `nothing with ${name} of a kind that is not known`,
  fields: fields.flatMap((field) => [`${field}.group`, `${field}.kind`]),
  arrange: async (): Promise<RefusedScene> => ({
    auth,
    more: [CLIENT],
    headers: { authorization: "Bearer of-the-client" },
    checkRefused: namesForeign,
  }),
});

const REF = `{name: client, ${FOREIGN}}`;
const KNOWN = "{name: client, key: own}";
const at = (auth: string): string =>
  `{oauthTokenExchange: {url: "http://127.0.0.1:1", clientAuth: {clientId: me, ${auth}}}}`;
const signs = (key: string, certificate: string): string =>
  `method: PrivateKeyJwt, privateKeyJwt: {signingKeyRef: ${key}, alg: ES256, assertionAudience: 'https://as.test'${certificate}}`;

const FOREIGNERS: readonly AuthRow[] = [
  foreign("keys of cloud A", ["cloudA.secretRef"], `{cloudA: {region: r, serviceName: s, secretRef: ${REF}}}`),
  foreign("the secret of cloud B", ["cloudB.secretRef"], `{cloudB: {secretRef: ${REF}}}`),
  foreign("the account of cloud C", ["cloudC.secretRef"], `{cloudC: {secretRef: ${REF}}}`),
  foreign("a client's secret", exchange("clientAuth.secretRef"), at(`secretRef: ${REF}`)),
  foreign("a client's key", exchange("clientAuth.privateKeyJwt.signingKeyRef"), at(signs(REF, ""))),
  foreign(
    "a client's certificate",
    exchange("clientAuth.privateKeyJwt.certificateRef"),
    at(signs(KNOWN, `, certificateRef: ${REF}, certificateHeader: x5c`)),
  ),
];

/** Models have neither of the two. */
const NOT_FOR_MODELS: readonly AuthRow[] = [
  foreign("the signing key", ["jwtSign.signingKeyRef"], `{jwtSign: {signingKeyRef: ${REF}, alg: ES256, claims: {}}}`),
  {
    name: "a token of another application for a gateway that signs",
    fields: ofBothEnds(
      ...["signingKeyRef.name", "alg", "kid", "assertionAudience"].map((name) => `clientAuth.privateKeyJwt.${name}`),
      ...SIGNED_FIELDS,
      "clientAuth.method",
    ),
    arrange: async (context: ProofContext) => {
      const server = await startIssuer(context);
      return {
        auth: `{crossAppAccess: {${ends(() => `url: "${server.url}", ${SIGNED}`)}}}`,
        more: [CLIENT],
        headers: { authorization: "Bearer of-the-client" },
        async check() {
          assert.equal(server.calls.length, 2);
          for (const asked of server.calls) await checkAssertion(asked);
        },
      };
    },
  },
  {
    name: "a token of another application at servers in another namespace, with secrets of an entry",
    fields: ofBothEnds("backendRef.namespace", "backendRef.port", "clientAuth.secretRef.key"),
    arrange: async (context: ProofContext) => {
      const server = await startIssuer(context);
      const secrets = `${APART}, clientAuth: {clientId: me, secretRef: {name: client, key: other}}`;
      return {
        auth: `{crossAppAccess: {${ends(() => secrets)}}}`,
        more: [CLIENT, inNamespace(server.port)],
        headers: { authorization: "Bearer of-the-client" },
        check() {
          const credential = `Basic ${Buffer.from("me:second").toString("base64")}`;
          assert.deepEqual(
            server.calls.map(({ headers }) => headers["authorization"]),
            [credential, credential],
          );
        },
      };
    },
  },
  ...[COOKIE, QUERY, PREFIX, EXPRESSION].map(({ field, at: source, present }): AuthRow => ({
    name: `a token of another application for a subject in ${field}`,
    fields: cross(`subjectToken.source.${field}`),
    arrange: async (context: ProofContext) => {
      const server = await startIssuer(context);
      return {
        auth: `{crossAppAccess: {${ends(() => `url: "${server.url}", clientAuth: {clientId: me, method: ClientSecretPost}`)}, subjectToken: {source: ${source("subject")}}}}`,
        ...present("subject"),
        check: () => assert.equal(server.calls[0]?.form.get("subject_token"), "subject"),
      };
    },
  })),
  ...ENDS.flatMap((end) =>
    [
      ["secretRef", `secretRef: ${REF}`],
      ["privateKeyJwt.signingKeyRef", signs(REF, "")],
      ["privateKeyJwt.certificateRef", signs(KNOWN, `, certificateRef: ${REF}, certificateHeader: x5c`)],
    ].map(([name = "", auth = ""]) =>
      foreign(
        `${name} of the ${end}`,
        cross(`${end}.clientAuth.${name}`),
        `{crossAppAccess: {${ends((each) => `url: "http://127.0.0.1:1", clientAuth: {clientId: me, ${each === end ? auth : "method: ClientSecretPost"}}`)}}}`,
      ),
    ),
  ),
].map((row) => ({ ...row, isNotForModels: true as const }));

for (const { fields, title, run } of everywhere([
  ...SOURCES,
  ...LOCATIONS,
  ...SERVERS,
  ...FOREIGNERS,
  ...NOT_FOR_MODELS,
]))
  prove(fields, title, run);

for (const { fields, title, run } of placeRows([
  foreign("a credential", ["secretRef"], `{secretRef: {name: other, ${FOREIGN}}}`),
  foreign(
    "a further credential",
    ["credentials[].secretRef"],
    `{key: k, credentials: [{location: {header: {name: x-more}}, secretRef: {name: other, ${FOREIGN}}}]}`,
  ),
]))
  prove(fields, title, run);
