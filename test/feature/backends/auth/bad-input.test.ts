/** Services, files and Secrets of `auth` that fail while the gateway runs: nothing leaves without its credential. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, type Call } from "../../../support/clients/http.ts";
import { setEnvironment } from "../../../support/fixtures/environment.ts";
import { INLINE_AUTH, secret, serveAuth } from "../../../support/gateway/backend-auth.ts";
import { documents, GATEWAY, route, startGateway, staticBackend } from "../../../support/gateway/gateway.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";
import { prove } from "../../../support/proofs/prove.ts";
import { startEcho } from "../../../support/servers/echo.ts";
import { startTokenServer } from "../../../support/servers/token-endpoint.ts";
import { startRawUpstream } from "../../../support/servers/upstream.ts";

const client = (token: string): Call => ({ headers: { authorization: `Bearer ${token}` } });

prove(
  [],
  "a storm of requests that a token endpoint refuses is one line of the log, and nothing leaves",
  async (context) => {
    const server = await startTokenServer(context);
    server.reply = () => ({ status: 401, body: "words-of-the-server" });
    const echo = await startEcho(context);
    const { log, lines } = recordingLog();
    const objects = [
      INLINE_AUTH.objects(echo.port, `{oauthTokenExchange: {url: "${server.url}"}}`),
      route("web", "web"),
    ];
    const gateway = await startGateway(context, documents(GATEWAY, ...objects), { log });
    const answers = await Promise.all(
      Array.from({ length: 400 }, (_none, at) => call(gateway.url(), client(`t${at % 2}`))),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([500]));
    assert.equal(lines.filter((line) => line.includes("a credential cannot be fetched")).length, 1);
    assert.doesNotMatch(lines.join("\n"), /words-of-the-server/);
    server.reply = () => ({});
    assert.equal((await call(gateway.url(), client("t"))).status, 200);
    assert.equal(lines.filter((line) => line.includes("credentials are fetched again")).length, 1);
    assert.equal(echo.seen.length, 1);
  },
);

prove([], "a token endpoint that says nothing holds requests no longer than its backend allows", async (context) => {
  const silent = await startRawUpstream(() => undefined);
  context.after(() => silent.close());
  const issuer = `${staticBackend("issuer", silent.port).trimEnd()}\n  policies: {http: {requestTimeout: 100ms}}\n`;
  const auth = "{oauthTokenExchange: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: issuer}}}";
  const { gateway, echo } = await serveAuth(context, INLINE_AUTH, auth, issuer);
  const { status, body } = await call(gateway.url(), client("t"));
  assert.deepEqual([status, body], [500, "backend authentication failed"]);
  assert.equal(echo.seen.length, 0);
});

prove([], "a Secret that goes while requests come closes the backend until it is there again", async (context) => {
  const key = secret("key", { Authorization: "Bearer s3cret" });
  const { gateway, manifests, echo } = await serveAuth(context, INLINE_AUTH, "{secretRef: {name: key}}", key);
  assert.equal((await call(gateway.url())).status, 200);
  await gateway.change(manifests.replace(key, ""));
  await gateway.until(async () => (await call(gateway.url())).status === 500);
  const before = echo.seen.length;
  assert.equal((await call(gateway.url())).status, 500);
  assert.equal(echo.seen.length, before);
  const messages = gateway.translator.diagnostics().map(({ path, message }) => `${path}: ${message}`);
  assert.match(messages.join(), /spec\.policies\.auth\.secretRef: Secret default\/key not found/);
  await gateway.change(manifests);
  await gateway.until(async () => (await call(gateway.url())).status === 200);
  assert.ok(echo.seen.every(({ headers }) => headers["authorization"] === "Bearer s3cret"));
});

prove(
  [],
  "a file that vanishes between two reads, and a service that shows a page, let no request out",
  async (context) => {
    const folder = mkdtempSync(join(tmpdir(), "gwproxy-external-"));
    context.after(() => rmSync(folder, { recursive: true }));
    const [file, subject] = [join(folder, "credentials.json"), join(folder, "subject")];
    const cloud = await startTokenServer(context);
    // Too short a life to be kept, so that each request reads the file.
    cloud.reply = () => ({ members: { expires_in: 30 } });
    const account = (tokenUrl: string): string =>
      JSON.stringify({
        type: "external_account",
        audience: "a",
        subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
        token_url: tokenUrl,
        credential_source: { file: subject },
      });
    writeFileSync(file, account(`${cloud.url}/token`));
    writeFileSync(subject, "of-the-workload\n");
    setEnvironment(context, {
      GOOGLE_APPLICATION_CREDENTIALS: file,
      AZURE_TENANT_ID: undefined,
      AZURE_FEDERATED_TOKEN_FILE: undefined,
      IDENTITY_ENDPOINT: undefined,
      AZURE_POD_IDENTITY_AUTHORITY_HOST: cloud.url,
      GWPROXY_AMBIENT_IDENTITY_HOSTS: "*",
    });
    const { gateway, echo } = await serveAuth(context, INLINE_AUTH, "{cloudC: {}}");
    const status = async (): Promise<number> => (await call(gateway.url())).status;
    assert.equal(await status(), 200);
    assert.equal(cloud.calls[0]?.form.get("subject_token"), "of-the-workload");
    rmSync(subject);
    assert.equal(await status(), 500, "the subject vanished");
    writeFileSync(subject, "of-the-workload");
    const own = JSON.parse(account(`${cloud.url}/token`)) as object;
    writeFileSync(file, JSON.stringify({ ...own, credential_source: { url: `${cloud.url}/subject` } }));
    cloud.reply = ({ path }) => (path === "/subject" ? { status: 404, body: "page-of-an-error" } : {});
    assert.equal(await status(), 500, "the page of an error is no subject");
    assert.ok(cloud.calls.every(({ form }) => form.get("subject_token") !== "page-of-an-error"));
    writeFileSync(file, account("http://token.example.com/"));
    assert.equal(await status(), 500, "plain text to another machine");
    rmSync(file);
    assert.equal(await status(), 500, "the credential file vanished");
    assert.equal(echo.seen.length, 1);

    const entra = await serveAuth(context, INLINE_AUTH, "{cloudB: {managedIdentity: {}}}");
    for (const reply of [
      { body: "<html>words-of-the-server</html>", type: "text/html" },
      { status: 302, headers: { location: "http://127.0.0.1:1/" } },
      { body: "x".repeat(3_000_000) },
    ]) {
      cloud.reply = () => reply;
      const answer = await call(entra.gateway.url());
      assert.deepEqual([answer.status, answer.body], [500, "backend authentication failed"]);
    }
    const { credentials } = await entra.gateway.proxy.state();
    assert.doesNotMatch(JSON.stringify(credentials), /words-of-the-server/);
    assert.equal(entra.echo.seen.length, 0);
  },
);

const BROKEN = secret("broken", {
  Authorization: "Bearer s3cret\r\nx-evil: 1",
  line: "s3cret\nx-evil: 1",
  accessKey: "AKID\r\nx-evil: 1",
  secretKey: "s3cret",
  cookie: "s3cret; evil=1",
  sound: "s3cret",
});
const inHeader = (name: string): string =>
  `{credentials: [{location: {header: {name: ${name}}}, secretRef: {name: broken, key: sound}}]}`;

/** Blocks whose credential cannot be written into a request, and what status says of them. */
const UNWRITABLE: readonly (readonly [auth: string, report: RegExp])[] = [
  ['{key: "s3cret\\r\\nx-evil: 1"}', /^spec\.policies\.auth\.key: the key has a character that a header cannot hold/],
  [
    "{secretRef: {name: broken}}",
    /^spec\.policies\.auth\.secretRef: entry Authorization of Secret broken has a character/,
  ],
  [
    "{secretRef: {name: broken, key: line}}",
    /^spec\.policies\.auth\.secretRef: entry line of Secret broken has a character/,
  ],
  [
    "{cloudA: {region: eu-west-1, secretRef: {name: broken}}}",
    /^spec\.policies\.auth\.cloudA\.secretRef: entry accessKey of Secret broken has a character/,
  ],
  [
    "{credentials: [{location: {cookie: {name: c}}, secretRef: {name: broken, key: cookie}}]}",
    /^spec\.policies\.auth\.credentials\[0\]\.secretRef: entry cookie of Secret broken has a semicolon/,
  ],
  [
    '{key: s3cret, location: {header: {name: x-key, prefix: "P\\nx-evil: 1"}}}',
    /^spec\.policies\.auth\.location\.header\.prefix: the prefix has a character/,
  ],
  ...["Host", "content-length", "Transfer-Encoding", "connection"].map(
    (name) =>
      [
        inHeader(name),
        new RegExp(
          `^spec\\.policies\\.auth\\.credentials\\[0\\]\\.location\\.header\\.name: the proxy writes the header ${name} itself`,
        ),
      ] as const,
  ),
];

prove([], "a credential that a request cannot hold lets none out, and status names what is wrong", async (context) => {
  for (const [auth, report] of UNWRITABLE) {
    const { gateway, echo } = await serveAuth(context, INLINE_AUTH, auth, BROKEN);
    assert.equal((await call(gateway.url(), client("of-the-client"))).status, 500, auth);
    assert.equal(echo.seen.length, 0, auth);
    const messages = gateway.translator.diagnostics().map(({ path, message }) => `${path}: ${message}`);
    assert.ok(
      messages.some((message) => report.test(message)),
      `${auth}: ${messages.join("\n")}`,
    );
    assert.doesNotMatch(messages.join(), /s3cret|evil/);
  }
});

prove([], "a token that would end the cookie that it is written to lets no request out", async (context) => {
  const server = await startTokenServer(context);
  const auth = `{oauthTokenExchange: {url: "${server.url}", location: {cookie: {name: session}}}}`;
  const { gateway, echo } = await serveAuth(context, INLINE_AUTH, auth);
  server.reply = () => ({ members: { access_token: "minted;admin=1" } });
  assert.equal((await call(gateway.url(), client("t"))).status, 500);
  assert.equal(echo.seen.length, 0);
  server.reply = () => ({});
  assert.equal((await call(gateway.url(), client("another"))).status, 200);
  assert.match(echo.seen[0]?.headers["cookie"] ?? "", /^session=[^;]+$/);
});
