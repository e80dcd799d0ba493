import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ApiError } from "../../../../src/sources/kubernetes/api-error.ts";
import { createKubernetesClient } from "../../../../src/sources/kubernetes/client.ts";
import { createSecretStore } from "../../../../src/sources/kubernetes/secret-store.ts";
import { reviewToken } from "../../../../src/sources/kubernetes/token-review.ts";
import { startScriptedApi, type ScriptedApi } from "../../../support/servers/scripted-api.ts";

let api: ScriptedApi;

before(async () => {
  api = await startScriptedApi();
});

after(() => api.stop());

function rejection(work: Promise<unknown>): Promise<ApiError> {
  return work.then(
    () => assert.fail("it was accepted"),
    (error: unknown) => {
      assert.ok(error instanceof ApiError);
      return error;
    },
  );
}

test("a request carries our credentials, its query and its body", async () => {
  const answered = api.client.request({
    method: "PATCH",
    path: "/apis/example.com/v1/namespaces/a/widgets/b/status",
    query: { fieldManager: "gwproxy.dev/gwproxy" },
    contentType: "application/merge-patch+json",
    body: { status: { ok: true } },
  });
  const request = await api.next();
  assert.equal(request.method, "PATCH");
  assert.equal(request.query.get("fieldManager"), "gwproxy.dev/gwproxy");
  assert.equal(request.headers["content-type"], "application/merge-patch+json");
  assert.equal(request.headers["authorization"], "Bearer open-sesame");
  assert.deepEqual(JSON.parse(request.body), { status: { ok: true } });
  request.reply({ done: true });
  assert.deepEqual(await answered, { done: true });
});

test("a refusal keeps the status, the reason and the words of the server", async () => {
  const refused = rejection(api.client.request({ method: "GET", path: "/api/v1/secrets" }));
  (await api.next()).reply({ kind: "Status", code: 403, reason: "Forbidden", message: "secrets is forbidden" }, 403);
  const error = await refused;
  assert.deepEqual([error.status, error.reason], [403, "Forbidden"]);
  assert.match(error.message, /^GET \/api\/v1\/secrets: secrets is forbidden$/);
});

test("a refusal that is no Status object is known by its HTTP status", async () => {
  const refused = rejection(api.client.request({ method: "GET", path: "/api" }));
  const request = await api.next();
  request.reply("<html>bad gateway</html>", 502);
  assert.equal((await refused).status, 502);
});

test("a connection that breaks is an error without a status, and shows no credentials", async () => {
  const broken = rejection(api.client.request({ method: "GET", path: "/api" }));
  (await api.next()).cut();
  const error = await broken;
  assert.equal(error.status, 0);
  assert.ok(!JSON.stringify([error.message, error.detail]).includes("open-sesame"));
});

test("an answer that is cut short is an error, not a short answer", async () => {
  const broken = rejection(api.client.request({ method: "GET", path: "/api" }));
  const request = await api.next();
  request.sendText('{"items":[');
  request.cut();
  assert.equal((await broken).status, 0);
});

test("without a configured cluster the message says what to do", async () => {
  const directory = await mkdtemp(join(tmpdir(), "gwproxy-kubeconfig-"));
  const empty = join(directory, "empty");
  await writeFile(empty, JSON.stringify({ apiVersion: "v1", kind: "Config", clusters: [], users: [], contexts: [] }));
  await assert.rejects(createKubernetesClient(empty), /name a kubeconfig, or run in a pod/);
  await assert.rejects(createKubernetesClient(join(directory, "absent")), /the kubeconfig cannot be read/);
  await rm(directory, { recursive: true });
});

test("a Secret deleted between read and write is a conflict", async () => {
  const store = createSecretStore(api.client, { namespace: "a", name: "b", type: "Opaque" });
  const written = store.write({ key: "value" }, "7");
  const request = await api.next();
  assert.equal(request.method, "PUT");
  request.reply({ kind: "Status", code: 404, message: "not found" }, 404);
  assert.equal(await written, "conflict");
});

test("a token is refused when the server does not say that it is for our audience", async () => {
  const reviewed = reviewToken(api.client, "some-token", "gwproxy");
  (await api.next()).reply({ status: { authenticated: true, user: { username: "system:serviceaccount:a:b" } } }, 201);
  assert.equal(await reviewed, undefined);
});
