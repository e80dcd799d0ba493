/** References of `auth` to a credential of a kind that nobody knows, in every place: no Secret of the same name stands in. */
import assert from "node:assert/strict";
import { createAuthority, createLeaf } from "../../../../src/lib/certificates/x509.ts";
import { FOREIGN, namesForeign } from "../../../support/fixtures/foreign-secret.ts";
import { ALL_PLACES, placeRows, type AuthRow } from "../../../support/gateway/auth-places.ts";
import { secret } from "../../../support/gateway/backend-auth.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { validNow } from "../../../support/servers/tls-upstream.ts";
import { startTokenServer } from "../../../support/servers/token-endpoint.ts";

const { certificate, key: KEY } = createLeaf(createAuthority("authority", validNow()), ["client"], validNow());

/** Has an entry for every reference, so that each block would work if the Secret were taken. */
const secretFor = (url: string): string =>
  secret("s", {
    Authorization: "of-the-secret",
    clientSecret: "c",
    accessKey: "AKID",
    secretKey: "k",
    tenantId: "t",
    clientId: "c",
    signingKey: KEY,
    certificate,
    "credentials.json": JSON.stringify({
      type: "service_account",
      client_email: "robot",
      private_key: KEY,
      private_key_id: "k1",
      token_uri: `${url}/token`,
    }),
  });

const OWN = "{name: s}";
const THEIRS = `{name: s, ${FOREIGN}}`;

/** The token endpoint of `clientAuth` with the one reference. @param rest further members of the block */
const client = (member: string, url: string): string => {
  const ref = (name: string): string => (name === member ? THEIRS : OWN);
  const assertion = `signingKeyRef: ${ref("privateKeyJwt.signingKeyRef")}, alg: ES256, assertionAudience: a, certificateRef: ${ref("privateKeyJwt.certificateRef")}, certificateHeader: x5c`;
  const how = member === "secretRef" ? `secretRef: ${THEIRS}` : `method: PrivateKeyJwt, privateKeyJwt: {${assertion}}`;
  return `{url: "${url}", clientAuth: {clientId: c, ${how}}}`;
};

/** By the path of the reference. @param url of the token endpoint */
type Blocks = Readonly<Record<string, (url: string) => string>>;

const BLOCKS: Blocks = {
  secretRef: () => `{secretRef: ${THEIRS}}`,
  "credentials[].secretRef": () => `{credentials: [{location: {header: {name: x-more}}, secretRef: ${THEIRS}}]}`,
  "cloudA.secretRef": () => `{cloudA: {region: eu-west-1, secretRef: ${THEIRS}}}`,
  "cloudB.secretRef": () => `{cloudB: {secretRef: ${THEIRS}}}`,
  "cloudC.secretRef": () => `{cloudC: {secretRef: ${THEIRS}}}`,
  "jwtSign.signingKeyRef": () => `{jwtSign: {signingKeyRef: ${THEIRS}, alg: ES256}}`,
  ...Object.fromEntries(
    ["secretRef", "privateKeyJwt.signingKeyRef", "privateKeyJwt.certificateRef"].flatMap((member) => [
      [`oauthTokenExchange.clientAuth.${member}`, (url: string) => `{oauthTokenExchange: ${client(member, url)}}`],
      ...["identityProvider", "resourceAuthorizationServer"].map((end) => [
        `crossAppAccess.${end}.clientAuth.${member}`,
        (url: string) => {
          const at = (name: string): string => client(name === end ? member : "", url);
          return `{crossAppAccess: {identityProvider: ${at("identityProvider")}, resourceAuthorizationServer: ${at("resourceAuthorizationServer")}, audience: a}}`;
        },
      ]),
    ]),
  ),
};

const ROWS: readonly AuthRow[] = Object.entries(BLOCKS).map(([path, block]) => ({
  name: `nothing where ${path} names another kind`,
  fields: [`${path}.group`, `${path}.kind`],
  ...(/^(crossAppAccess|jwtSign)/.test(path) ? { isUnknownToModels: true as const } : {}),
  arrange: async (context) => {
    const server = await startTokenServer(context);
    return {
      auth: block(server.url),
      more: [secretFor(server.url)],
      headers: { authorization: "Bearer of-the-client" },
      checkRefused(gateway) {
        namesForeign(gateway);
        assert.equal(server.calls.length, 0);
      },
    };
  },
}));

for (const { fields, title, run } of placeRows(ROWS, ALL_PLACES)) prove(fields, title, run);
