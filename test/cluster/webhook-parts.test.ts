/** What the webhook and the discovery server keep or ask in a cluster: a Secret, a caBundle, a token. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createCertificateStore } from "../../src/sources/kubernetes/certificate-store.ts";
import { createKubernetesClient, type KubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { createSecretStore } from "../../src/sources/kubernetes/secret-store.ts";
import { reviewToken } from "../../src/sources/kubernetes/token-review.ts";
import { findOwner } from "../../src/sources/kubernetes/owner.ts";
import { keepCaBundle } from "../../src/sources/kubernetes/webhook-configuration.ts";
import { eventually } from "../support/gateway/process.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { testClock } from "../support/gateway/test-clock.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

let server: ApiServer;
let client: KubernetesClient;

before(async () => {
  server = await startApiServer();
  client = await createKubernetesClient(server.kubeconfig);
});

after(async () => {
  client?.close();
  await server?.stop();
});

const SECRET = { namespace: "default", name: "kept", type: "Opaque" };

test("a Secret is made, read back and replaced only over the version that was read", async () => {
  const store = createSecretStore(client, SECRET);
  assert.equal(await store.read(), undefined);
  assert.equal(await store.write({ "tls.key": "grüße" }, undefined), "written");
  assert.equal(await store.write({ "tls.key": "again" }, undefined), "conflict", "it exists by now");
  const first = await store.read();
  assert.deepEqual(first?.data, { "tls.key": "grüße" });
  assert.equal(await store.write({ "tls.key": "second" }, first.resourceVersion), "written");
  assert.equal(await store.write({ "tls.key": "third" }, first.resourceVersion), "conflict");
  assert.deepEqual((await store.read())?.data, { "tls.key": "second" });
});

test("a Secret that the server refuses leaves no value in the error", async () => {
  const store = createSecretStore(client, { ...SECRET, name: "invalid", type: "kubernetes.io/tls" });
  await assert.rejects(store.write({ other: "top-secret" }, undefined), (error: Error) => {
    return /refuses the Secret/.test(error.message) && !error.message.includes("top-secret");
  });
});

test("certificates survive in their Secret, and a second writer is told", async () => {
  const pem = (word: string): Parameters<ReturnType<typeof createCertificateStore>["write"]>[0] => ({
    authority: { certificate: `${word} ca`, key: `${word} ca key` },
    leaf: { certificate: `${word} leaf`, key: `${word} leaf key` },
    previousAuthority: "",
  });
  const open = (): ReturnType<typeof createCertificateStore> =>
    createCertificateStore(createSecretStore(client, { ...SECRET, name: "certificates" }));
  const [one, two] = [open(), open()];
  assert.equal(await one.read(), undefined);
  assert.equal(await two.read(), undefined);
  await one.write(pem("first"));
  await assert.rejects(two.write(pem("second")), /meanwhile/);
  assert.deepEqual(await two.read(), pem("first"));
});

test("what a process keeps is owned by its Deployment, which has to exist", async () => {
  await assert.rejects(findOwner(client, "default", "nobody"), /there is no Deployment default\/nobody/);
  assert.equal(await findOwner(client, "default", undefined), undefined);
  await server.kubectl(["create", "deployment", "keeper", "--image=none"]);
  const uid = await server.kubectl(["get", "deployment", "keeper", "-o", "jsonpath={.metadata.uid}"]);
  const owner = await findOwner(client, "default", "keeper");
  const store = createSecretStore(client, { ...SECRET, name: "owned", owner });
  await store.write({ one: "1" }, undefined);
  await store.write({ one: "2" }, (await store.read())?.resourceVersion);
  const owners = await server.kubectl(["get", "secret", "owned", "-o", "jsonpath={.metadata.ownerReferences}"]);
  assert.deepEqual(JSON.parse(owners), [{ apiVersion: "apps/v1", kind: "Deployment", name: "keeper", uid }]);
});

test("the caBundle of a rendered webhook configuration is filled in, and the rest is left alone", async () => {
  const clock = testClock();
  const { log, lines } = recordingLog();
  const keeper = keepCaBundle({ client, name: "gwproxy", clock, log });
  const webhook = {
    name: "validate.example.com",
    clientConfig: { url: "https://127.0.0.1:9443/validate" },
    rules: [{ apiGroups: ["example.com"], apiVersions: ["*"], operations: ["CREATE"], resources: ["widgets"] }],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
  };
  const configuration = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: "gwproxy" },
    webhooks: [webhook],
  };
  const bundles = async (): Promise<string[]> => {
    const text = await server.kubectl(["get", "validatingwebhookconfiguration", "gwproxy", "-o", "json"]);
    const { webhooks } = JSON.parse(text) as { webhooks: { clientConfig: { caBundle?: string; url: string } }[] };
    assert.deepEqual(
      webhooks.map(({ clientConfig }) => clientConfig.url),
      [webhook.clientConfig.url],
    );
    return webhooks.map(({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? "", "base64").toString());
  };
  const pem = await server.kubectl([
    "get",
    "configmap",
    "-n",
    "kube-system",
    "extension-apiserver-authentication",
    "-o",
    "jsonpath={.data.client-ca-file}",
  ]);
  await keeper.publish(pem);
  assert.match(lines.join(""), /the webhook is not registered.*it does not exist/);
  await server.kubectl(["apply", "-f", "-"], JSON.stringify(configuration));
  const filled = (expected: string): Promise<void> =>
    eventually(async () => {
      await clock.advance(5_000);
      assert.deepEqual(await bundles(), [expected]);
    });
  await filled(pem);
  await server.kubectl(["replace", "-f", "-"], JSON.stringify(configuration));
  await filled(pem);
  const next = `${pem}${pem}`;
  await keeper.publish(next);
  assert.deepEqual(await bundles(), [next]);
  // Another replica has rotated: this one must not put the older bundle back before it has read the Secret.
  const other = keepCaBundle({ client, name: "gwproxy", clock: testClock(), log });
  await other.publish(pem);
  await clock.advance(5_000);
  await eventually(async () => assert.equal(clock.waiting().length, 1));
  assert.deepEqual(await bundles(), [pem]);
  keeper.stop();
  other.stop();
  assert.deepEqual(clock.waiting(), []);
});

test("a token is known for the audience it was made for and for no other", async () => {
  await server.kubectl(["create", "serviceaccount", "proxy"]);
  const token = (await server.kubectl(["create", "token", "proxy", "--audience=gwproxy"])).trim();
  assert.deepEqual(await reviewToken(client, token, "gwproxy"), { username: "system:serviceaccount:default:proxy" });
  assert.equal(await reviewToken(client, token, "another"), undefined);
  assert.equal(await reviewToken(client, "not-a-token", "gwproxy"), undefined);
});
