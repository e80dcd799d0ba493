/**
 * An authorization server that somebody else wrote: the package oidc-provider reads the calls of the gateway,
 * authenticates it, and signs the tokens. It lacks the grants that exchange tokens, so they are registered here.
 */
import { randomUUID } from "node:crypto";
import { createLocalJWKSet, importJWK, jwtVerify, SignJWT, type JWK, type JWTPayload } from "jose";
import { errors, Provider, type GrantContext } from "oidc-provider";
import type { ProofContext } from "../proofs/prove.ts";
import { createPrivateJwk, startOidcServer, type OidcServer } from "./oidc-server.ts";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const ALG = "ES256";

/** Those of `privateKeyJwt`. */
export const JWT_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384"] as const;

/** Audience of the tokens that are given for assertions. */
export const ASSERTED_AUDIENCE = "https://asserted.test";

export interface TokenJudge extends OidcServer {
  /** The key with which it signs, as it is published. */
  readonly key: JWK;
  /** Returns an opaque token of a user. */
  subject(): Promise<string>;
  /** Returns the claims of a token that it signed. */
  claims(token: string): Promise<JWTPayload>;
}

interface JudgeOptions {
  /** Registrations of clients that may exchange tokens, with `client_id` and how they authenticate. */
  readonly clients: readonly object[];
  /** Keys whose assertions it takes. */
  readonly trusts?: readonly JWK[];
}

export async function startTokenJudge(
  context: ProofContext,
  { clients, trusts = [] }: JudgeOptions,
): Promise<TokenJudge> {
  const server = await startOidcServer(context);
  const key = await createPrivateJwk(ALG, "of-the-server");
  const common = { redirect_uris: [], response_types: [], id_token_signed_response_alg: ALG };
  const user = { client_id: "user", client_secret: "of-the-user", grant_types: ["client_credentials"], ...common };
  const provider = new Provider(server.issuer, {
    jwks: { keys: [key] },
    clients: [...clients.map((client) => ({ grant_types: [EXCHANGE, BEARER], ...common, ...client })), user],
    enabledJWA: { idTokenSigningAlgValues: [ALG], clientAuthSigningAlgValues: [...JWT_ALGORITHMS] },
    ttl: { ClientCredentials: 600 },
    extraTokenClaims: (grant: GrantContext) => claims.get(grant),
    features: { devInteractions: { enabled: false }, clientCredentials: { enabled: true } },
  });
  provider.registerGrantType(
    EXCHANGE,
    async (grant) => {
      const { subject_token: subject, subject_token_type: type, ...asked } = grant.oidc.params;
      const found = type === ACCESS_TOKEN ? await provider.ClientCredentials.find(String(subject)) : undefined;
      if (found === undefined) throw new errors.InvalidGrant("the subject is not a token of this server");
      const { audience } = asked;
      if (typeof audience !== "string") throw new errors.InvalidRequest("there is not one audience");
      grant.body =
        asked["requested_token_type"] === ID_JAG
          ? await vouch(grant, server.issuer, key, { audience, subject: found.clientId })
          : await issue(provider, grant, { audience, subject: found.clientId });
    },
    ["subject_token", "subject_token_type", "requested_token_type", "audience", "resource", "scope"],
    ["resource"],
  );
  provider.registerGrantType(
    BEARER,
    async (grant) => {
      const keys = createLocalJWKSet({ keys: [...trusts] });
      const checks = { audience: server.issuer, requiredClaims: ["exp", "sub"] };
      const verified = await jwtVerify(String(grant.oidc.params["assertion"]), keys, checks).catch(() => undefined);
      if (verified === undefined) throw new errors.InvalidGrant("the assertion is not one for this server");
      grant.body = await issue(provider, grant, { audience: ASSERTED_AUDIENCE, subject: verified.payload.sub ?? "" });
    },
    ["assertion", "scope"],
  );
  server.use(provider);
  const { d: _private, ...published } = key;
  const ownKeys = createLocalJWKSet({ keys: [published] });
  return {
    ...server,
    key: published,
    subject: () => server.token("user:of-the-user", { grant_type: "client_credentials" }),
    claims: async (token) => (await jwtVerify(token, ownKeys, { issuer: server.issuer })).payload,
  };
}

interface Granted {
  readonly audience: string;
  readonly subject: string;
}

/** Claims of the token that a call gets, besides those that the package writes. */
const claims = new WeakMap<GrantContext, object>();

/** Returns the answer with a token whose claim `acts_for` names the subject. */
async function issue(provider: Provider, grant: GrantContext, { audience, subject }: Granted): Promise<object> {
  const { client, params } = grant.oidc;
  claims.set(grant, { acts_for: subject, resource: params["resource"] });
  const token = new provider.ClientCredentials({ client });
  const format = { accessTokenFormat: "jwt", jwt: { sign: { alg: ALG } } };
  token.resourceServer = new provider.ResourceServer(audience, { audience, scope: "", ...format });
  token.scope = typeof params["scope"] === "string" ? params["scope"] : undefined;
  const members = { access_token: await token.save(), token_type: "Bearer", expires_in: token.expiration };
  return { ...members, issued_token_type: ACCESS_TOKEN };
}

/** Returns the answer with an assertion for another server. */
async function vouch(
  { oidc: { client, params } }: GrantContext,
  issuer: string,
  key: JWK,
  { audience, subject }: Granted,
): Promise<object> {
  const assertion = await new SignJWT({ client_id: client.clientId, scope: params["scope"] })
    .setProtectedHeader({ alg: ALG, kid: key.kid ?? "", typ: "oauth-id-jag+jwt" })
    .setIssuer(issuer)
    .setSubject(subject)
    .setAudience(audience)
    .setJti(randomUUID())
    .setExpirationTime("5m")
    .sign(await importJWK(key, ALG));
  return { access_token: assertion, issued_token_type: ID_JAG, token_type: "N_A", expires_in: 300 };
}
