import assert from "node:assert/strict";
import { test } from "node:test";
import { createDocumentStore } from "../../../../src/sources/kubernetes/document-store.ts";
import { startScriptedApi, type ScriptedApi } from "../../../support/servers/scripted-api.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";

const WANTED = { key: "abc", url: "https://keys.test/", tls: undefined, addresses: [], cacheMs: 1 };
const OPTIONS = { namespace: "system", fieldManager: "test" };

async function withApi(body: (api: ScriptedApi) => Promise<void>): Promise<void> {
  const api = await startScriptedApi();
  try {
    await body(api);
  } finally {
    await api.stop();
  }
}

test("documents are read by their label, and what was spoiled by hand counts as absent", () =>
  withApi(async (api) => {
    const { log } = recordingLog();
    const loading = createDocumentStore(api.client, { ...OPTIONS, log }).load();
    const request = await api.next();
    assert.equal(request.path, "/api/v1/namespaces/system/configmaps");
    assert.equal(request.query.get("labelSelector"), "app.kubernetes.io/component=jwks-store");
    const entry = (name: string, data: unknown) => ({ metadata: { name }, data });
    const fetchedAt = "2026-01-01T00:00:00.000Z";
    request.reply({
      items: [
        entry("jwks-store-abc", { fetchedAt, document: "text" }),
        entry("jwks-store-def", { fetchedAt: "yesterday", document: "text" }),
        entry("jwks-store-ghi", { fetchedAt }),
        entry("other", { fetchedAt, document: "text" }),
        {},
      ],
    });
    assert.deepEqual([...(await loading)], [["abc", { text: "text", fetchedAtMs: Date.parse(fetchedAt) }]]);
  }));

test("a list that is refused is logged, and nothing is known", () =>
  withApi(async (api) => {
    const { log, lines } = recordingLog();
    const loading = createDocumentStore(api.client, { ...OPTIONS, log }).load();
    (await api.next()).reply({ kind: "Status", message: "forbidden", code: 403 }, 403);
    assert.equal((await loading).size, 0);
    assert.match(lines.join(""), /stored JWKS cannot be read.*forbidden/);
  }));

test("writes follow one another, and one that fails does not stop the next", () =>
  withApi(async (api) => {
    const { log, lines } = recordingLog();
    const store = createDocumentStore(api.client, { ...OPTIONS, log });
    store.save(WANTED, { text: "first", fetchedAtMs: 0 });
    store.save(WANTED, { text: "second", fetchedAtMs: 1000 });
    store.remove("abc");
    const first = await api.next();
    assert.equal(first.method, "PATCH");
    assert.equal(first.path, "/api/v1/namespaces/system/configmaps/jwks-store-abc");
    first.reply({ kind: "Status", message: "no room", code: 507 }, 507);
    const second = await api.next();
    const { metadata, data } = JSON.parse(second.body) as { metadata: { labels: object }; data: object };
    assert.deepEqual(metadata.labels, {
      "app.kubernetes.io/component": "jwks-store",
      "app.kubernetes.io/name": "gwproxy",
    });
    assert.deepEqual(data, { url: "https://keys.test/", fetchedAt: "1970-01-01T00:00:01.000Z", document: "second" });
    second.reply({});
    const third = await api.next();
    assert.equal(third.method, "DELETE");
    third.reply({ kind: "Status", code: 404 }, 404);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /cannot be stored.*no room/);
  }));
