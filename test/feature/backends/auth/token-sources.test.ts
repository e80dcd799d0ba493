/** Where `oauthTokenExchange` and `crossAppAccess` read and write tokens, and which servers they ask, in every place. */
import assert from "node:assert/strict";
import { createHash, createPublicKey, X509Certificate } from "node:crypto";
import { decodeProtectedHeader, jwtVerify } from "jose";
import { createAuthority, createLeaf } from "../../../../src/lib/certificates/x509.ts";
import { ALL_PLACES, placeRows, type AuthRow, type AuthScene } from "../../../support/gateway/auth-places.ts";
import { secret } from "../../../support/gateway/backend-auth.ts";
import { staticBackend } from "../../../support/gateway/gateway.ts";
import { serviceElsewhere } from "../../../support/gateway/service-elsewhere.ts";
import { prove } from "../../../support/proofs/prove.ts";
import type { Echoed } from "../../../support/servers/echo.ts";
import { validNow } from "../../../support/servers/tls-upstream.ts";
import { startTokenServer, type TokenServer } from "../../../support/servers/token-endpoint.ts";

const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const unsigned = (claims: object): string =>
  [{ alg: "none" }, claims, ""].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
const oauth = (...names: readonly string[]): string[] => names.map((name) => `oauthTokenExchange.${name}`);
const cross = (...names: readonly string[]): string[] => names.map((name) => `crossAppAccess.${name}`);

const ENDS = ["identityProvider", "resourceAuthorizationServer"] as const;
const { certificate, key: KEY } = createLeaf(createAuthority("authority", validNow()), ["client"], validNow());
/** Entries that are not those that blocks read by default. */
const CLIENT = secret("client", { clientSecret: "first", secret: "second", pem: KEY, chain: certificate });

type Members = Omit<AuthScene, "auth" | "check">;

/** A request whose token is exchanged by the block that `auth` writes for the server. */
const exchanging =
  (
    auth: (server: TokenServer) => string,
    check: (server: TokenServer, request: Echoed) => void | Promise<void>,
    members: (server: TokenServer) => Members = () => ({}),
  ): AuthRow["arrange"] =>
  async (context) => {
    const server = await startTokenServer(context);
    server.reply = ({ form }) =>
      form.get("requested_token_type") === ID_JAG
        ? { members: { issued_token_type: ID_JAG, token_type: "N_A", expires_in: undefined } }
        : { members: { expires_in: undefined } };
    const headers = { authorization: "Bearer of-the-client" };
    return { headers, auth: auth(server), check: (request) => check(server, request), ...members(server) };
  };

/** Both ends of `crossAppAccess` on one server. @param client members of `clientAuth` @param more of the block */
const crossing = (url: string, client: string, more = ""): string => {
  const end = (path: string): string => `{url: "${url}/${path}", clientAuth: {clientId: ${path}, ${client}}}`;
  return `{crossAppAccess: {identityProvider: ${end("idp")}, resourceAuthorizationServer: ${end("as")}, audience: a${more}}}`;
};

/** A way to bring two tokens, and to take one on. */
interface Way {
  readonly form: string;
  /** Field of the location. */
  readonly field: string;
  /** Flow YAML of the location of a token. */
  at(name: string): string;
  readonly brings: Pick<AuthScene, "headers" | "query">;
  /** Whether the way can also carry a token to the upstream. */
  readonly writes: boolean;
  /** What the upstream sees of a token that was brought, undefined when it was taken away. */
  find(request: Echoed, name: string): string | undefined;
}

const WAYS: readonly Way[] = [
  {
    form: "headers with a prefix of their own",
    field: "header.prefix",
    at: (name) => `{header: {name: x-${name}, prefix: "Own "}}`,
    brings: { headers: { "x-subject": "Own s", "x-actor": "Own a" } },
    writes: true,
    find: ({ headers }, name) => /^Own (.*)$/.exec(headers[`x-${name}`] ?? "")?.[1],
  },
  {
    form: "cookies",
    field: "cookie.name",
    at: (name) => `{cookie: {name: ${name}}}`,
    brings: { headers: { cookie: "subject=s; other=1; actor=a" } },
    writes: true,
    find: ({ headers }, name) => new RegExp(`\\b${name}=([^;]+)`).exec(headers["cookie"] ?? "")?.[1],
  },
  {
    form: "the query",
    field: "queryParameter.name",
    at: (name) => `{queryParameter: {name: ${name}}}`,
    brings: { query: "?subject=s&actor=a" },
    writes: true,
    find: ({ url }, name) => new URL(url, "http://x").searchParams.get(name) ?? undefined,
  },
  {
    form: "what an expression gives",
    field: "expression",
    at: (name) => `{expression: 'request.headers["x-both"].split(" ")[${name === "subject" ? 0 : 1}]'}`,
    brings: { headers: { "x-both": "s a" } },
    writes: false,
    find: () => undefined,
  },
];

const SOURCES: readonly AuthRow[] = WAYS.flatMap(({ form, field, at, brings, writes, find }) => [
  {
    name: `a token for a subject and an actor in ${form}${writes ? ", in the same way" : ""}`,
    fields: oauth(
      `subjectToken.source.${field}`,
      `actorToken.source.${field}`,
      ...(writes ? [`location.${field}`] : []),
    ),
    arrange: exchanging(
      ({ url }) =>
        `{oauthTokenExchange: {url: "${url}", subjectToken: {source: ${at("subject")}}, actorToken: {source: ${at("actor")}}${writes ? `, location: ${at("token")}` : ""}}}`,
      ({ calls }, request) => {
        const form = calls[0]?.form;
        assert.deepEqual([form?.get("subject_token"), form?.get("actor_token")], ["s", "a"]);
        assert.deepEqual([find(request, "subject"), find(request, "actor")], [undefined, undefined]);
        const token = writes ? find(request, "token") : request.headers["authorization"]?.replace("Bearer ", "");
        assert.equal(token, "minted-1");
      },
      () => ({ headers: {}, ...brings }),
    ),
  },
  {
    name: `a token of another application for a subject in ${form}`,
    isUnknownToModels: true,
    fields: cross(
      `subjectToken.source.${field}`,
      ...(field === "header.prefix" ? ["subjectToken.source.header.name"] : []),
    ),
    arrange: exchanging(
      ({ url }) => crossing(url, "secretRef: {name: client}", `, subjectToken: {source: ${at("subject")}}`),
      ({ calls }, request) => {
        assert.equal(calls[0]?.form.get("subject_token"), "s");
        assert.equal(find(request, "subject"), undefined);
        assert.equal(request.headers["authorization"], "Bearer minted-2");
      },
      () => ({ headers: {}, ...brings, more: [CLIENT] }),
    ),
  },
]);

/** Asserts that a call proves who the gateway is by an assertion with the certificate. */
async function assertSigned(form: URLSearchParams | undefined, id: string): Promise<void> {
  const assertion = form?.get("client_assertion") ?? "";
  const options = { algorithms: ["ES256"], audience: `https://${id}.test`, issuer: id, subject: id };
  const verified = await jwtVerify(assertion, createPublicKey(KEY), options).catch(() => undefined);
  assert.ok(verified, "an assertion of ours");
  const { kid, "x5t#S256": thumbprint, x5c } = decodeProtectedHeader(assertion) as Record<string, unknown>;
  const { raw } = new X509Certificate(certificate);
  assert.deepEqual([kid, x5c], [`key-of-${id}`, undefined]);
  assert.equal(thumbprint, createHash("sha256").update(raw).digest("base64url"));
}

/** Members of `clientAuth` for an assertion. */
const signed = (id: string): string =>
  `clientId: ${id}, method: PrivateKeyJwt, privateKeyJwt: {signingKeyRef: {name: client, key: pem}, alg: ES256, kid: key-of-${id}, assertionAudience: "https://${id}.test", certificateRef: {name: client, key: chain}, certificateHeader: "x5t#S256"}`;
const SIGNED_FIELDS = [
  "signingKeyRef.name",
  "signingKeyRef.key",
  "alg",
  "kid",
  "assertionAudience",
  "certificateRef.name",
  "certificateRef.key",
  "certificateHeader",
].map((name) => `clientAuth.privateKeyJwt.${name}`);

const endsOf = (...names: readonly string[]): string[] =>
  cross(...ENDS.flatMap((end) => names.map((name) => `${end}.${name}`)));

const SERVERS: readonly AuthRow[] = [
  {
    name: "a token of a server that is a Service of another namespace",
    fields: oauth("backendRef.namespace", "backendRef.port"),
    arrange: exchanging(
      () => "{oauthTokenExchange: {backendRef: {name: issuer, namespace: infra, port: 80}, path: /own}}",
      ({ calls }, { headers }) =>
        assert.deepEqual([calls[0]?.path, headers["authorization"]], ["/own", "Bearer minted-1"]),
      ({ port }) => ({ more: serviceElsewhere(port, "issuer") }),
    ),
  },
  {
    name: "a token of another application, whose servers are Services of another namespace",
    isUnknownToModels: true,
    fields: endsOf("backendRef.namespace", "backendRef.port", "backendRef.name", "path"),
    arrange: exchanging(
      () => {
        const end = (name: string): string =>
          `{backendRef: {name: ${name}, namespace: infra, port: 80}, path: /${name}, clientAuth: {clientId: c, method: ClientSecretPost}}`;
        return `{crossAppAccess: {identityProvider: ${end("idp")}, resourceAuthorizationServer: ${end("as")}, audience: a}}`;
      },
      ({ calls }, { headers }) => {
        assert.deepEqual(
          calls.map(({ path }) => path),
          ["/idp", "/as"],
        );
        assert.equal(headers["authorization"], "Bearer minted-2");
      },
      ({ port }) => ({ more: serviceElsewhere(port, "idp", "as") }),
    ),
  },
  {
    name: "a token of another application, whose servers are backends",
    isUnknownToModels: true,
    fields: endsOf("backendRef.group", "backendRef.kind"),
    arrange: exchanging(
      () => {
        const end = (name: string): string =>
          `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: ${name}}, clientAuth: {clientId: c, method: ClientSecretPost}}`;
        return `{crossAppAccess: {identityProvider: ${end("idp")}, resourceAuthorizationServer: ${end("as")}, audience: a}}`;
      },
      (_server, { headers }) => assert.equal(headers["authorization"], "Bearer minted-2"),
      ({ port }) => ({ more: [staticBackend("idp", port), staticBackend("as", port)] }),
    ),
  },
  {
    name: "a token for a gateway that signs, with its certificate",
    fields: oauth(...SIGNED_FIELDS),
    arrange: exchanging(
      ({ url }) => `{oauthTokenExchange: {url: "${url}", clientAuth: {${signed("me")}}}}`,
      ({ calls }) => assertSigned(calls[0]?.form, "me"),
      () => ({ more: [CLIENT] }),
    ),
  },
  {
    name: "a token of another application for a gateway that signs, with its certificate",
    isUnknownToModels: true,
    fields: endsOf(...SIGNED_FIELDS),
    arrange: exchanging(
      ({ url }) =>
        `{crossAppAccess: {identityProvider: {url: "${url}", clientAuth: {${signed("idp")}}}, resourceAuthorizationServer: {url: "${url}", clientAuth: {${signed("as")}}}, audience: a}}`,
      async ({ calls }) => {
        await assertSigned(calls[0]?.form, "idp");
        await assertSigned(calls[1]?.form, "as");
      },
      () => ({ more: [CLIENT] }),
    ),
  },
  {
    name: "a token of another application for a gateway with a secret in the form",
    isUnknownToModels: true,
    fields: endsOf("clientAuth.method", "clientAuth.secretRef.key"),
    arrange: exchanging(
      ({ url }) => crossing(url, "method: ClientSecretPost, secretRef: {name: client, key: secret}"),
      ({ calls }) =>
        assert.deepEqual(
          calls.map(({ form }) => [form.get("client_id"), form.get("client_secret")]),
          [
            ["idp", "second"],
            ["as", "second"],
          ],
        ),
      () => ({ more: [CLIENT] }),
    ),
  },
];

/** Two requests with the same token, and the number of calls that they cause. */
const calling =
  (kind: string, cache: string, calls: number): AuthRow["arrange"] =>
  (context) =>
    exchanging(
      ({ url }) =>
        kind === "oauthTokenExchange"
          ? `{oauthTokenExchange: {url: "${url}", cache: {inMemory: {${cache}}}}}`
          : crossing(url, "secretRef: {name: client}", `, cache: {inMemory: {${cache}}}`),
      (server) => assert.equal(server.calls.length, kind === "oauthTokenExchange" ? calls : 2 * calls),
      () => ({ more: [CLIENT], times: 2 }),
    )(context);

const KEPT: readonly AuthRow[] = ["oauthTokenExchange", "crossAppAccess"].flatMap((kind) =>
  [
    ["maxEntries", "maxEntries: 0"],
    // Shorter than the margin before the end of a token, so that it is used once.
    ["defaultTtl", "defaultTtl: 5s"],
  ].map(([name, cache = ""]) => ({
    name: `a new token for each request, because of ${name} of ${kind}`,
    ...(kind === "crossAppAccess" ? { isUnknownToModels: true as const } : {}),
    fields: [`${kind}.cache.inMemory.${name}`],
    arrange: calling(kind, cache, 2),
  })),
);

const MAY_ACT: AuthRow = {
  name: "nothing for an actor that the subject does not name",
  fields: oauth("actorToken.mayAct"),
  arrange: async (context) => {
    const server = await startTokenServer(context);
    return {
      auth: `{oauthTokenExchange: {url: "${server.url}", actorToken: {source: {header: {name: x-actor}}, tokenType: Jwt, mayAct: Required}}}`,
      headers: {
        authorization: `Bearer ${unsigned({ may_act: { sub: "robot" } })}`,
        "x-actor": unsigned({ sub: "another" }),
      },
      checkRefused: () => assert.equal(server.calls.length, 0),
    };
  },
};

for (const { fields, title, run } of placeRows([...SOURCES, ...SERVERS, ...KEPT, MAY_ACT], ALL_PLACES))
  prove(fields, title, run);
