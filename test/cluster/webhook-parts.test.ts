/** What the webhook and the discovery server keep or ask in a cluster: a Secret, a caBundle, a token. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createCertificateStore } from "../../src/sources/kubernetes/certificate-store.ts";
import { createKubernetesClient, type KubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { createSecretStore } from "../../src/sources/kubernetes/secret-store.ts";
import { reviewToken } from "../../src/sources/kubernetes/token-review.ts";
import { setCaBundle } from "../../src/sources/kubernetes/webhook-configuration.ts";
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

test("the caBundle of a webhook configuration is set once and leaves the rest alone", async () => {
  assert.equal(await setCaBundle(client, "absent", "PEM"), "missing");
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
  await server.kubectl(["apply", "-f", "-"], JSON.stringify(configuration));
  const pem = await server.kubectl([
    "get",
    "configmap",
    "-n",
    "kube-system",
    "extension-apiserver-authentication",
    "-o",
    "jsonpath={.data.client-ca-file}",
  ]);
  assert.equal(await setCaBundle(client, "gwproxy", pem), "written");
  assert.equal(await setCaBundle(client, "gwproxy", pem), "unchanged");
  const stored = JSON.parse(
    await server.kubectl(["get", "validatingwebhookconfiguration", "gwproxy", "-o", "json"]),
  ) as { webhooks: { clientConfig: { caBundle: string; url: string } }[] };
  assert.equal(stored.webhooks[0]?.clientConfig.url, webhook.clientConfig.url);
  assert.equal(Buffer.from(stored.webhooks[0].clientConfig.caBundle, "base64").toString(), pem);
});

test("a token is known for the audience it was made for and for no other", async () => {
  await server.kubectl(["create", "serviceaccount", "proxy"]);
  const token = (await server.kubectl(["create", "token", "proxy", "--audience=gwproxy"])).trim();
  assert.deepEqual(await reviewToken(client, token, "gwproxy"), { username: "system:serviceaccount:default:proxy" });
  assert.equal(await reviewToken(client, token, "another"), undefined);
  assert.equal(await reviewToken(client, "not-a-token", "gwproxy"), undefined);
});
