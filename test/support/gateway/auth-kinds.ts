/** A block of each kind of `auth`, with the Secret and the services that all of them need, and what a request then shows. */
import { generateKeyPairSync } from "node:crypto";
import { setEnvironment } from "../fixtures/environment.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { startTokenServer, type TokenServer } from "../servers/token-endpoint.ts";
import { secret } from "./backend-auth.ts";

const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const KEY = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

export interface AuthKinds {
  /** Gives every token, "minted-1" and so on. */
  readonly server: TokenServer;
  /** The Secret that the blocks read. */
  readonly object: string;
  /** Blocks by kind, as flow YAML, with what the header `Authorization` shows. */
  readonly blocks: Readonly<Record<string, readonly [auth: string, shows: RegExp]>>;
}

/** Starts what the kinds ask. `passthrough` and those that exchange tokens need one that a JWT policy verified. */
export async function startAuthKinds(context: ProofContext): Promise<AuthKinds> {
  const server = await startTokenServer(context);
  server.reply = ({ form }) =>
    form.get("requested_token_type") === ID_JAG ? { members: { issued_token_type: ID_JAG, token_type: "N_A" } } : {};
  setEnvironment(context, {
    AZURE_AUTHORITY_HOST: server.url,
    GOOGLE_APPLICATION_CREDENTIALS: undefined,
    GCE_METADATA_HOST: `127.0.0.1:${server.port}`,
    GWPROXY_AMBIENT_IDENTITY_HOSTS: "*",
  });
  const entries = { accessKey: "AKID", secretKey: "k", tenantId: "t", clientId: "c", clientSecret: "s" };
  const end = `{url: "${server.url}", clientAuth: {clientId: c, secretRef: {name: s}}}`;
  return {
    server,
    object: secret("s", { ...entries, Authorization: "of-the-secret", signingKey: KEY }),
    blocks: {
      key: ["{key: own}", /^Bearer own$/],
      secretRef: ["{secretRef: {name: s}}", /^Bearer of-the-secret$/],
      passthrough: ["{passthrough: {}}", /^Bearer ey/],
      cloudA: ["{cloudA: {region: eu-west-1, secretRef: {name: s}}}", /^AWS4-HMAC-SHA256 Credential=AKID\//],
      cloudB: ["{cloudB: {secretRef: {name: s}}}", /^Bearer minted-/],
      cloudC: ["{cloudC: {}}", /^Bearer minted-/],
      jwtSign: ["{jwtSign: {signingKeyRef: {name: s}, alg: ES256}}", /^Bearer ey/],
      oauthTokenExchange: [`{oauthTokenExchange: {url: "${server.url}"}}`, /^Bearer minted-/],
      crossAppAccess: [
        `{crossAppAccess: {identityProvider: ${end}, resourceAuthorizationServer: ${end}, audience: a}}`,
        /^Bearer minted-/,
      ],
      credentials: [
        '{credentials: [{location: {header: {name: authorization, prefix: "Own "}}, secretRef: {name: s}}]}',
        /^Own of-the-secret$/,
      ],
    },
  };
}
