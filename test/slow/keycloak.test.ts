/** Tokens of a real Keycloak: its JWKS by path at a backend, a claim from a user's attribute, and a rotation of its keys. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { startEcho } from "../support/servers/echo.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../support/gateway/gateway.ts";
import { call } from "../support/clients/http.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { startKeycloak, type Keycloak } from "../testbed/keycloak.ts";

const SECRET = randomBytes(18).toString("base64url");
const PASSWORD = randomBytes(18).toString("base64url");
const KEYS = "org.keycloak.keys.KeyProvider";
const PROFILE = {
  unmanagedAttributePolicy: "ENABLED",
  attributes: ["username", "email", "firstName", "lastName"].map((name) => ({ name })),
};

const user = (username: string, group: string) => ({
  username,
  enabled: true,
  email: `${username}@shop.test`,
  emailVerified: true,
  firstName: username,
  lastName: "Test",
  attributes: { group: [group] },
  credentials: [{ type: "password", value: PASSWORD, temporary: false }],
});

const REALM = {
  realm: "shop",
  enabled: true,
  sslRequired: "none",
  components: {
    "org.keycloak.userprofile.UserProfileProvider": [
      { providerId: "declarative-user-profile", config: { "kc.user.profile.config": [JSON.stringify(PROFILE)] } },
    ],
  },
  clients: [
    {
      clientId: "app",
      secret: SECRET,
      directAccessGrantsEnabled: true,
      serviceAccountsEnabled: true,
      redirectUris: ["*"],
      protocolMappers: [
        {
          name: "group",
          protocol: "openid-connect",
          protocolMapper: "oidc-usermodel-attribute-mapper",
          config: { "user.attribute": "group", "claim.name": "group", "access.token.claim": "true" },
        },
      ],
    },
  ],
  users: [user("alice", "writers"), user("bob", "readers")],
};

function tokenOf(keycloak: Keycloak, username: string): Promise<string> {
  return keycloak.token("shop", { client_id: "app", client_secret: SECRET, username, password: PASSWORD });
}

test("tokens of a realm pass by their claims, also over a rotation of its keys", async (t) => {
  const context = contextOf(t);
  const keycloak = await startKeycloak(context);
  await keycloak.admin("POST", "", REALM);
  const echo = await startEcho(context);
  const certs = "/realms/shop/protocol/openid-connect/certs";
  const backend = "{group: gwproxy.dev, kind: GwBackend, name: keycloak, port: 80}";
  const remote = `{backendRef: ${backend}, jwksPath: ${certs}, cacheDuration: 1s}`;
  const jwt = `{providers: [{issuer: "${keycloak.url}/realms/shop", jwks: {remote: ${remote}}}]}`;
  const authorization = `{policy: {matchExpressions: ['jwt.group == "writers"']}}`;
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      staticBackend("web", echo.port),
      staticBackend("keycloak", Number(new URL(keycloak.url).port)),
      route("web", "web"),
      routePolicy("realm", "web", `  traffic: {jwtAuthentication: ${jwt}, authorization: ${authorization}}`),
    ),
  );
  const statusFor = async (token: string): Promise<number> =>
    (await call(gateway.url(), { headers: { authorization: `Bearer ${token}` } })).status;

  const alice = await tokenOf(keycloak, "alice");
  await gateway.until(async () => (await statusFor(alice)) === 200);
  assert.equal(await statusFor(await tokenOf(keycloak, "bob")), 403);
  assert.equal(await statusFor(`${alice.slice(0, -4)}AAAA`), 401);
  assert.equal((await call(gateway.url())).status, 401);

  const realm = (await keycloak.admin("GET", "/shop")) as { id: string };
  const before = (await keycloak.admin("GET", `/shop/components?type=${KEYS}`)) as { id: string; providerId: string }[];
  const config = { priority: ["200"], enabled: ["true"], active: ["true"], algorithm: ["RS256"], keySize: ["2048"] };
  const added = { name: "next", providerId: "rsa-generated", providerType: KEYS, parentId: realm.id, config };
  await keycloak.admin("POST", "/shop/components", added);
  const fresh = await tokenOf(keycloak, "alice");
  await gateway.until(async () => (await statusFor(fresh)) === 200);
  assert.equal(await statusFor(alice), 200, "a key that is still published stays good");
  const old = before.find(({ providerId }) => providerId === "rsa-generated");
  await keycloak.admin("DELETE", `/shop/components/${old?.id}`);
  await gateway.until(async () => (await statusFor(alice)) === 401);
  assert.equal(await statusFor(fresh), 200);
});
