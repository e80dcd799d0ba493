/** `auth.cloudA`: where keys come from, and what is signed. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ReadableStream } from "node:stream/web";
import { call } from "../../../support/clients/http.ts";
import { setEnvironment } from "../../../support/fixtures/environment.ts";
import { AUTH_PLACES, INLINE_AUTH, secret } from "../../../support/gateway/backend-auth.ts";
import {
  SCOPE,
  SCOPED,
  KEYS,
  FETCHED,
  ROLE,
  ENTRIES,
  EMPTY,
  ENVIRONMENT_KEYS,
  serveSigned,
} from "../../../support/gateway/cloud-a.ts";
import { documents, GATEWAY, route, startGateway } from "../../../support/gateway/gateway.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { startAwsServices, type AwsServices } from "../../../support/servers/aws.ts";
import { startSignedUpstream } from "../../../support/servers/signed-upstream.ts";

for (const place of AUTH_PLACES) {
  const field = (name: string): string => `${place.prefix}.cloudA${name}`;

  prove(
    [field(".secretRef.name"), field(".region"), field(".serviceName")],
    `requests are signed with the keys of a Secret, over what leaves (${place.kind})`,
    async (context) => {
      const upstream = await startSignedUpstream(context, { ...KEYS, ...SCOPE });
      const gateway = await serveSigned(context, upstream, `secretRef: {name: aws}, ${SCOPED}`, {
        place,
        more: [secret("aws", ENTRIES)],
      });
      for (const [path, options] of [
        ["/", {}],
        ["/a%2Fb/c.d/~x?b=2&a=%20x&a=1&empty", {}],
        ["/post", { method: "POST", body: "x".repeat(100_000), headers: { "content-type": "text/plain" } }],
        ["/own", { headers: { authorization: "Bearer of-the-client", "x-amz-security-token": "of-the-client" } }],
      ] as const) {
        const { status, body } = await call(gateway.url() + path, options);
        assert.deepEqual([status, body], [200, ""], path);
      }
    },
  );

  prove(
    [
      field(".assumeRole.roleArn"),
      field(".assumeRole.sessionName"),
      field(".assumeRole.tags[].key"),
      field(".assumeRole.tags[].value"),
    ],
    `the identity of the environment takes on a role, once for all requests (${place.kind})`,
    async (context) => {
      const sts = await startAwsServices(context, FETCHED, { ...KEYS, region: "eu-west-1", service: "sts" });
      setEnvironment(context, { ...EMPTY, ...ENVIRONMENT_KEYS, AWS_ENDPOINT_URL_STS: sts.url });
      const upstream = await startSignedUpstream(context, { ...FETCHED, ...SCOPE });
      const role = `{roleArn: "${ROLE}", sessionName: night, tags: [{key: team, value: red}]}`;
      const gateway = await serveSigned(context, upstream, `assumeRole: ${role}, ${SCOPED}`, { place });
      const answers = await Promise.all(Array.from({ length: 200 }, () => call(gateway.url())));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.deepEqual(sts.calls, ["sts AssumeRole"]);
      assert.deepEqual([...(sts.parameters[0] ?? [])].slice(2), [
        ["RoleArn", ROLE],
        ["RoleSessionName", "night"],
        ["Tags.member.1.Key", "team"],
        ["Tags.member.1.Value", "red"],
      ]);
    },
  );

  prove(
    [field(".assumeRole.sessionNameExpression"), field(".assumeRole.tags[].expression")],
    `each session name and set of tags is a role of its own (${place.kind})`,
    async (context) => {
      const sts = await startAwsServices(context, FETCHED, { ...KEYS, region: "eu-west-1", service: "sts" });
      setEnvironment(context, { ...EMPTY, ...ENVIRONMENT_KEYS, AWS_ENDPOINT_URL_STS: sts.url });
      const upstream = await startSignedUpstream(context, { ...FETCHED, ...SCOPE });
      const role = `{roleArn: "${ROLE}", sessionNameExpression: 'request.headers["x-who"]', tags: [{key: size, expression: "size(request.path)"}]}`;
      const gateway = await serveSigned(context, upstream, `assumeRole: ${role}, ${SCOPED}`, { place });
      const as = async (who: string, path = "/"): Promise<number> =>
        (await call(gateway.url() + path, { headers: { "x-who": who } })).status;
      assert.deepEqual(
        [await as("ann"), await as("bob"), await as("ann"), await as("ann", "/12")],
        [200, 200, 200, 200],
      );
      assert.deepEqual(
        sts.parameters.map((each) => [each.get("RoleSessionName"), each.get("Tags.member.1.Value")]),
        [
          ["ann", "1"],
          ["bob", "1"],
          ["ann", "3"],
        ],
      );
      assert.deepEqual([await as("not a name"), (await call(gateway.url())).status], [500, 500]);
      assert.equal(sts.calls.length, 3, "a request whose session has no name is not sent");
    },
  );
}

const FILES = mkdtempSync(join(tmpdir(), "gwproxy-aws-"));
process.on("exit", () => rmSync(FILES, { recursive: true }));
function file(name: string, text: string): string {
  writeFileSync(join(FILES, name), text);
  return join(FILES, name);
}

/** Sources of the environment by name, with the calls that each makes. */
const SOURCES: Readonly<
  Record<
    string,
    { variables: (aws: AwsServices) => Readonly<Record<string, string | undefined>>; calls: readonly string[] }
  >
> = {
  "a profile": {
    variables: () => ({
      AWS_PROFILE: "work",
      AWS_CONFIG_FILE: file("config", "[profile work]\nregion = eu-west-1\n"),
      AWS_SHARED_CREDENTIALS_FILE: file(
        "credentials",
        `[default]\naws_access_key_id=other\n[work]\naws_access_key_id = ${FETCHED.accessKeyId}\naws_secret_access_key = ${FETCHED.secretAccessKey}\naws_session_token = ${FETCHED.sessionToken}\n`,
      ),
    }),
    calls: [],
  },
  "the token of a workload": {
    variables: ({ url }) => ({
      AWS_REGION: "eu-west-1",
      AWS_ROLE_ARN: ROLE,
      AWS_WEB_IDENTITY_TOKEN_FILE: file("token", "token-of-workload\n"),
      AWS_ENDPOINT_URL_STS: url,
    }),
    calls: ["sts AssumeRoleWithWebIdentity"],
  },
  "the agent of the container": {
    variables: ({ url }) => ({
      AWS_DEFAULT_REGION: "eu-west-1",
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/container`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file("agent", "token-of-agent"),
    }),
    calls: ["container"],
  },
  "the metadata of the instance": {
    variables: ({ url }) => ({ AWS_EC2_METADATA_DISABLED: undefined, AWS_EC2_METADATA_SERVICE_ENDPOINT: url }),
    calls: [
      "metadata token",
      "metadata /latest/meta-data/placement/region",
      "metadata token",
      "metadata /latest/meta-data/iam/security-credentials/",
      "metadata token",
      "metadata /latest/meta-data/iam/security-credentials/role-of-machine",
    ],
  },
};

for (const [name, { variables, calls }] of Object.entries(SOURCES))
  prove([], `requests are signed with the keys of ${name}, which is asked once`, async (context) => {
    const aws = await startAwsServices(context, FETCHED);
    setEnvironment(context, { ...EMPTY, ...variables(aws) });
    const upstream = await startSignedUpstream(context, { ...FETCHED, ...SCOPE });
    const gateway = await serveSigned(context, upstream, "serviceName: execute-api");
    const answers = await Promise.all(Array.from({ length: 50 }, () => call(gateway.url())));
    assert.deepEqual(new Set(answers.map(({ status, body }) => `${status} ${body}`)), new Set(["200 "]));
    assert.deepEqual(aws.calls, calls);
  });

prove(
  [],
  "a source that fails leaves no request to another identity, and its failure is reported without its words",
  async (context) => {
    const aws = await startAwsServices(context, FETCHED);
    const upstream = await startSignedUpstream(context, { ...FETCHED, ...SCOPE });
    setEnvironment(context, { ...EMPTY, ...SOURCES["the agent of the container"]?.variables(aws) });
    const gateway = await serveSigned(context, upstream, SCOPED);
    for (const answer of [
      { status: 302, body: "" },
      { status: 200, body: "<html>words-of-the-other-side</html>" },
      { status: 200, body: "{}" },
      {
        status: 200,
        body: JSON.stringify({
          AccessKeyId: "a\r\nb",
          SecretAccessKey: "s",
          Token: "t",
          Expiration: "2030-01-01T00:00:00Z",
        }),
      },
      { status: 200, body: "x".repeat(3_000_000) },
    ]) {
      aws.answer = () => answer;
      const { status, body } = await call(gateway.url());
      assert.deepEqual([status, body], [500, "backend authentication failed"]);
      const { credentials } = await gateway.proxy.state();
      const failed = credentials.find(({ lastError }) => lastError !== null);
      assert.equal(failed?.place, "GwBackend default/web spec.policies.auth");
      assert.doesNotMatch(JSON.stringify(credentials), /words-of/);
    }
    assert.equal(upstream.faults.length, 0, "nothing was sent");
    aws.answer = undefined;
    assert.equal((await call(gateway.url())).status, 200);
  },
);

prove([], "the identity of the environment goes only to hosts that the operator allows", async (context) => {
  setEnvironment(context, { ...EMPTY, ...ENVIRONMENT_KEYS, GWPROXY_AMBIENT_IDENTITY_HOSTS: undefined });
  const upstream = await startSignedUpstream(context, { ...KEYS, ...SCOPE });
  const gateway = await serveSigned(context, upstream, SCOPED);
  assert.equal((await call(gateway.url())).status, 500);
  process.env["GWPROXY_AMBIENT_IDENTITY_HOSTS"] = "*.example.com, 127.0.0.1";
  assert.equal((await call(gateway.url())).status, 200);
  assert.equal(upstream.faults.length, 1);
});

prove([], "half of the entries, or none, close the backend and name what is missing", async (context) => {
  setEnvironment(context, { ...EMPTY, ...ENVIRONMENT_KEYS });
  const upstream = await startSignedUpstream(context, { ...KEYS, ...SCOPE });
  for (const place of AUTH_PLACES)
    for (const more of [[], [secret("aws", { accessKey: "a" })]]) {
      const gateway = await serveSigned(context, upstream, `secretRef: {name: aws}, ${SCOPED}`, { place, more });
      assert.equal((await call(gateway.url())).status, 500);
      const messages = gateway.translator.diagnostics().map(({ message }) => message);
      assert.match(messages.join(), /Secret default\/aws (not found|has no text in entry secretKey)/);
    }
  assert.equal(upstream.faults.length, 0);
});

prove([], "each attempt is signed anew, with a body that the client sent slowly", async (context) => {
  const upstream = await startSignedUpstream(context, { ...KEYS, ...SCOPE }, [503]);
  const retry = route("web", "web").replace("    - ", "    - retry: {attempts: 1, codes: [503]}\n      ");
  const objects = INLINE_AUTH.objects(upstream.port, `{cloudA: {secretRef: {name: aws}, ${SCOPED}}}`);
  const gateway = await startGateway(context, documents(GATEWAY, objects, retry, secret("aws", ENTRIES)));
  async function* slowly(): AsyncGenerator<string> {
    for (const part of ["one ", "two ", "three"]) {
      await new Promise(setImmediate);
      yield part;
    }
  }
  const answer = await fetch(gateway.url(), {
    method: "POST",
    body: ReadableStream.from(slowly()),
    duplex: "half",
  } as RequestInit);
  assert.equal(answer.status, 200);
  assert.deepEqual(upstream.faults, [undefined, undefined]);
  assert.deepEqual(upstream.bodies, ["one two three", "one two three"]);
});
