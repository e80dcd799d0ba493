/** How the gateway names itself to the guards of vendors: each form of `auth` that they take, in every place of a guard. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { FOREIGN, namesForeign } from "../../support/fixtures/foreign-secret.ts";
import { setEnvironment } from "../../support/fixtures/environment.ts";
import { secret } from "../../support/gateway/backend-auth.ts";
import { GUARD_PLACES, startGuarded } from "../../support/gateway/guarded.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startAwsServices } from "../../support/servers/aws.ts";
import { newest, startVendorService, type GuardService } from "../../support/servers/guard-service.ts";
import { findSignatureFault } from "../../support/servers/llm/aws-signature.ts";
import type { Received } from "../../support/servers/scripted-server.ts";

interface Guard {
  readonly kind: "moderation" | "guardrailsA" | "guardrailsB";
  readonly phases: readonly string[];
  readonly host: string;
  /** Members of the guard as flow YAML. */
  readonly members: string;
  readonly pass: GuardService["answer"];
}

const GUARDS: readonly Guard[] = [
  {
    kind: "moderation",
    phases: ["request"],
    host: "api.openai.com",
    members: "failureMode: FailClosed",
    pass: { body: { results: [{ flagged: false }] } },
  },
  {
    kind: "guardrailsA",
    phases: ["request", "response"],
    host: "bedrock-runtime.eu-west-1.amazonaws.com",
    members: 'identifier: g, version: "1", region: eu-west-1',
    pass: { body: { action: "NONE" } },
  },
  {
    kind: "guardrailsB",
    phases: ["request", "response"],
    host: "modelarmor.europe-west4.rep.googleapis.com",
    members: "templateId: t, projectId: p, location: europe-west4",
    pass: { body: { sanitizationResult: { filterMatchState: "NO_MATCH_FOUND", invocationResult: "SUCCESS" } } },
  },
];

interface Row {
  readonly name: string;
  readonly kinds: readonly Guard["kind"][];
  /** Paths below `policies.auth`. */
  readonly fields: readonly string[];
  /** Flow YAML of `auth`, and what the request to the vendor has to show; without `check` none may reach it. */
  arrange(context: ProofContext): Promise<{ readonly auth: string; check?(request: Received): void }>;
}

const ROLE = "arn:aws:iam::123456789012:role/reader";
const KEYS = { accessKeyId: "AKIDSTATIC", secretAccessKey: "secret-of-static", sessionToken: "session-of-static" };
const FETCHED = { accessKeyId: "ASIAFETCHED", secretAccessKey: "secret-of-fetched", sessionToken: "session" };
const ROBOT = JSON.stringify({
  type: "service_account",
  client_email: "robot",
  private_key: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }),
  private_key_id: "k1",
  token_uri: "http://127.0.0.1:1/token",
});
/** Has the entries that every block here would read. */
const SECRET = secret("s", { Authorization: "v1", accessKey: "AKID", secretKey: "k", "credentials.json": ROBOT });

/** The role is taken on with the members of the block, and its keys sign what the vendor gets. */
const assumes =
  (members: string, parameters: Readonly<Record<string, string>>): Row["arrange"] =>
  async (context) => {
    const sts = await startAwsServices(context, FETCHED, { ...KEYS, region: "eu-west-1", service: "sts" });
    setEnvironment(context, {
      AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
      AWS_SESSION_TOKEN: KEYS.sessionToken,
      AWS_ENDPOINT_URL_STS: sts.url,
      // The tunnel to the vendor ends TLS with a certificate of our own.
      GWPROXY_AMBIENT_IDENTITY_HOSTS: "*.amazonaws.com,127.0.0.1",
    });
    return {
      auth: `{cloudA: {assumeRole: {roleArn: "${ROLE}", ${members}}}}`,
      check({ method, path: url, rawHeaders, text }) {
        const asked = Object.fromEntries(sts.parameters[0] ?? []);
        assert.deepEqual({ ...asked, RoleArn: ROLE, ...parameters }, asked);
        const expected = { ...FETCHED, region: "eu-west-1", service: "bedrock" };
        const fault = findSignatureFault({ method, url, rawHeaders, body: Buffer.from(text) }, expected);
        assert.equal(fault, undefined);
      },
    };
  };

const ROWS: readonly Row[] = [
  {
    name: "shows a key in a cookie",
    kinds: ["moderation", "guardrailsA"],
    fields: ["location.cookie.name"],
    arrange: async () => ({
      auth: "{key: v1, location: {cookie: {name: c}}}",
      check: ({ headers }) => assert.equal(headers["cookie"], "c=v1"),
    }),
  },
  {
    name: "shows a key in the query",
    kinds: ["moderation", "guardrailsA"],
    fields: ["location.queryParameter.name"],
    arrange: async () => ({
      auth: "{key: v1, location: {queryParameter: {name: q}}}",
      check: ({ path }) => assert.equal(new URL(path, "http://x").searchParams.get("q"), "v1"),
    }),
  },
  {
    name: "signs with the keys of a role",
    kinds: ["guardrailsA"],
    fields: ["roleArn", "sessionName", "tags[].key", "tags[].value"].map((name) => `cloudA.assumeRole.${name}`),
    arrange: assumes("sessionName: night, tags: [{key: team, value: red}]", {
      RoleSessionName: "night",
      "Tags.member.1.Key": "team",
      "Tags.member.1.Value": "red",
    }),
  },
  {
    name: "signs with the keys of a session for each caller",
    kinds: ["guardrailsA"],
    fields: ["sessionNameExpression", "tags[].expression"].map((name) => `cloudA.assumeRole.${name}`),
    arrange: assumes(
      `sessionNameExpression: 'request.headers["x-who"]', tags: [{key: who, expression: 'request.headers["x-who"] + "-1"'}]`,
      { RoleSessionName: "ann", "Tags.member.1.Value": "ann-1" },
    ),
  },
  ...(
    [
      [["moderation", "guardrailsA"], "secretRef", "{secretRef: REF}"],
      [["guardrailsA"], "cloudA.secretRef", "{cloudA: {secretRef: REF}}"],
      [["guardrailsB"], "cloudC.secretRef", "{cloudC: {secretRef: REF}}"],
    ] as const
  ).map(([kinds, path, auth]) => ({
    name: `is not asked where ${path} names another kind`,
    kinds,
    fields: [`${path}.group`, `${path}.kind`],
    arrange: async () => ({ auth: auth.replace("REF", `{name: s, ${FOREIGN}}`) }),
  })),
];

for (const place of GUARD_PLACES)
  for (const { kind, phases, host, members, pass } of GUARDS)
    for (const phase of phases)
      for (const { name, fields, arrange } of ROWS.filter(({ kinds }) => kinds.includes(kind)))
        prove(
          fields.map((field) => place.field(`${phase}[].${kind}.policies.auth.${field}`)),
          `${kind} of the ${phase} ${name}`,
          async (context) => {
            const service = await startVendorService(context, host);
            service.answer = pass;
            const { auth, check } = await arrange(context);
            const guard = `{${phase}: [{${kind}: {${members}, policies: {${service.policies}, auth: ${auth}}}}]}`;
            const guarded = await startGuarded(context, guard, { place, objects: [service.object, SECRET] });
            const { status } = await guarded.ask("hi", { "x-who": "ann" });
            if (check !== undefined) {
              assert.equal(status, 200);
              return check(newest(service));
            }
            // A model whose guard cannot be used is not offered: 404.
            assert.ok(status >= 400, `${status}`);
            assert.equal(service.received.length, 0);
            namesForeign(guarded.gateway);
          },
        );
