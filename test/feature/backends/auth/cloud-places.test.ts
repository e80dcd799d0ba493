/** Identities of clouds of `auth` in MCP targets and models. */
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jwtVerify } from "jose";
import { setEnvironment } from "../../../support/fixtures/environment.ts";
import { assertBearer, placeRows, type AuthRow } from "../../../support/gateway/auth-places.ts";
import { secret } from "../../../support/gateway/backend-auth.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { startAwsServices } from "../../../support/servers/aws.ts";
import { startTokenServer, type TokenServer } from "../../../support/servers/token-endpoint.ts";

const RSA = generateKeyPairSync("rsa", { modulusLength: 2048 })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();
const ROLE = "arn:aws:iam::123456789012:role/reader";
const KEYS = { accessKeyId: "AKIDSTATIC", secretAccessKey: "secret-of-static", sessionToken: "session-of-static" };
const FETCHED = { accessKeyId: "ASIAFETCHED", secretAccessKey: "secret-of-fetched", sessionToken: "session" };

const AWS_ENVIRONMENT = {
  AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
  AWS_SESSION_TOKEN: KEYS.sessionToken,
  GWPROXY_AMBIENT_IDENTITY_HOSTS: "*",
};

/** A role is taken on with the members of the block, and its keys sign. */
const assumes =
  (members: string, parameters: Readonly<Record<string, string>>): AuthRow["arrange"] =>
  async (context) => {
    const sts = await startAwsServices(context, FETCHED, { ...KEYS, region: "eu-west-1", service: "sts" });
    setEnvironment(context, { ...AWS_ENVIRONMENT, AWS_ENDPOINT_URL_STS: sts.url });
    return {
      auth: `{cloudA: {region: eu-west-1, assumeRole: {roleArn: "${ROLE}", ${members}}}}`,
      headers: { "x-who": "ann" },
      check({ headers }) {
        const asked = Object.fromEntries(sts.parameters[0] ?? []);
        assert.deepEqual({ ...asked, ...parameters }, asked);
        assert.equal(asked["RoleArn"], ROLE);
        assert.match(headers["authorization"] ?? "", /Credential=ASIAFETCHED\//);
      },
    };
  };

/** A token of cloud B that the fake of its services gives. */
const entra =
  (
    auth: string,
    check: (cloud: TokenServer) => void,
    { more = [] as string[], variables = {} as Readonly<Record<string, string>> } = {},
  ): AuthRow["arrange"] =>
  async (context) => {
    const cloud = await startTokenServer(context);
    setEnvironment(context, {
      AZURE_FEDERATED_TOKEN_FILE: undefined,
      IDENTITY_ENDPOINT: undefined,
      AZURE_TENANT_ID: "tenant",
      AZURE_CLIENT_ID: "app",
      AZURE_CLIENT_SECRET: "of-the-environment",
      AZURE_AUTHORITY_HOST: cloud.url,
      AZURE_POD_IDENTITY_AUTHORITY_HOST: cloud.url,
      GWPROXY_AMBIENT_IDENTITY_HOSTS: "*",
      ...variables,
    });
    return {
      auth: `{cloudB: ${auth}}`,
      more,
      check(request) {
        assertBearer(request, "minted-1");
        check(cloud);
      },
    };
  };

const FOLDER = mkdtempSync(join(tmpdir(), "gwproxy-places-"));
process.on("exit", () => rmSync(FOLDER, { recursive: true }));
writeFileSync(join(FOLDER, "federated"), "federated");

const CLOUDS: readonly AuthRow[] = [
  {
    name: "a signature with the keys of a Secret",
    fields: ["cloudA.secretRef.name", "cloudA.region", "cloudA.serviceName"],
    arrange: async () => ({
      auth: "{cloudA: {secretRef: {name: aws}, region: eu-west-1, serviceName: own}}",
      more: [secret("aws", { accessKey: KEYS.accessKeyId, secretKey: KEYS.secretAccessKey })],
      check: ({ headers }) =>
        assert.match(headers["authorization"] ?? "", /Credential=AKIDSTATIC\/\d{8}\/eu-west-1\/own\/aws4_request/),
    }),
  },
  {
    name: "a signature with the keys of a role",
    fields: ["roleArn", "sessionName", "tags[].key", "tags[].value"].map((name) => `cloudA.assumeRole.${name}`),
    arrange: assumes("sessionName: night, tags: [{key: team, value: red}]", {
      RoleSessionName: "night",
      "Tags.member.1.Key": "team",
      "Tags.member.1.Value": "red",
    }),
  },
  {
    name: "a session of a role for each caller",
    fields: ["sessionNameExpression", "tags[].expression"].map((name) => `cloudA.assumeRole.${name}`),
    arrange: assumes(
      `sessionNameExpression: 'request.headers["x-who"]', tags: [{key: who, expression: 'request.headers["x-who"] + "-1"'}]`,
      { RoleSessionName: "ann", "Tags.member.1.Value": "ann-1" },
    ),
  },
  {
    name: "a token of cloud B for a client secret",
    fields: ["cloudB.secretRef.name"],
    arrange: entra(
      "{secretRef: {name: app}}",
      ({ calls }) => assert.equal(calls[0]?.form.get("client_secret"), "of-the-secret"),
      { more: [secret("app", { tenantId: "t", clientId: "c", clientSecret: "of-the-secret" })] },
    ),
  },
  ...(["clientId", "objectId", "resourceId"] as const).map((member) => ({
    name: `a token of the managed identity by its ${member}`,
    fields: [`cloudB.managedIdentity.${member}`],
    arrange: entra(`{managedIdentity: {${member}: one}}`, ({ calls, url }) => {
      const query = new URL(calls[0]?.path ?? "", url).searchParams;
      const name = { clientId: "client_id", objectId: "object_id", resourceId: "msi_res_id" }[member];
      assert.equal(query.get(name), "one");
    }),
  })),
  {
    name: "a token of cloud B for a workload",
    fields: ["cloudB.workloadIdentity"],
    arrange: entra(
      "{workloadIdentity: {}}",
      ({ calls }) => assert.equal(calls[0]?.form.get("client_assertion"), "federated"),
      { variables: { AZURE_FEDERATED_TOKEN_FILE: join(FOLDER, "federated") } },
    ),
  },
  {
    name: "a token of cloud C for a service account",
    fields: ["cloudC.secretRef.name", "cloudC.secretRef.key", "cloudC.type", "cloudC.audience"],
    arrange: async (context) => {
      const cloud = await startTokenServer(context);
      const idToken = ["{}", `{"exp": 99999999999}`, "x"]
        .map((text) => Buffer.from(text).toString("base64url"))
        .join(".");
      cloud.reply = () => ({ members: { id_token: idToken } });
      const file = { type: "service_account", private_key: RSA, private_key_id: "k1", token_uri: `${cloud.url}/token` };
      const named = (name: string): string => JSON.stringify({ ...file, client_email: name });
      return {
        auth: "{cloudC: {type: IdToken, audience: https://own.test, secretRef: {name: robot, key: other}}}",
        more: [secret("robot", { "credentials.json": named("first"), other: named("second") })],
        async check(request) {
          assertBearer(request, idToken);
          const { payload } = await jwtVerify(cloud.calls[0]?.form.get("assertion") ?? "", createPublicKey(RSA));
          assert.deepEqual([payload.iss, payload["target_audience"]], ["second", "https://own.test"]);
        },
      };
    },
  },
];

for (const { fields, title, run } of placeRows(CLOUDS)) prove(fields, title, run);
