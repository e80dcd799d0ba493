/** The bundle for clusters without webhooks, on a real API server: what it refuses, what it warns of, what it lets pass. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { defineOurKinds } from "../support/kubernetes/cluster.ts";
import { eventually } from "../support/gateway/process.ts";
import { type ApiServer, startApiServer } from "../testbed/api-server.ts";

const BUNDLE = join(import.meta.dirname, "../../generated/admission-policy.yaml");
let server: ApiServer;

before(async () => {
  server = await startApiServer();
  await defineOurKinds(server);
  await server.kubectl(["apply", "-f", BUNDLE]);
});

after(async () => {
  await server?.stop();
});

function policy(name: string, users: readonly string[]): string {
  return JSON.stringify({
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwPolicy",
    metadata: { name, namespace: "default" },
    spec: {
      targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" }],
      traffic: { basicAuthentication: { users } },
    },
  });
}

const create = (object: string): Promise<string> => server.kubectl(["create", "--dry-run=server", "-f", "-"], object);

test("a name that is listed twice is refused with its place, and sound lists are taken", async () => {
  // The API server takes up new policies within a second or two.
  await eventually(() =>
    assert.rejects(
      create(policy("twice", ["ann:{SHA}x", "bob:{SHA}y", "ann:{SHA}z"])),
      /spec\.traffic\.basicAuthentication\.users: each line must be a name, a colon and a hash, and no two may have the same name/,
    ),
  );
  await assert.rejects(create(policy("bare", ["no-colon"])), /each line must be a name/);
  assert.match(await create(policy("sound", ["ann:{SHA}x", "anna:{SHA}y"])), /created/);
  const largest = Array.from({ length: 256 }, (_, at) => `user${at}:{SHA}${"x".repeat(40)}`);
  assert.match(await create(policy("largest", largest)), /created/);
});

test("a pattern that RE2 does not have is refused, and one that it has is taken", async () => {
  const backend = (pattern: string): string =>
    JSON.stringify({
      apiVersion: "gwproxy.dev/v1alpha1",
      kind: "GwBackend",
      metadata: { name: "guarded", namespace: "default" },
      spec: {
        ai: { provider: { llma: {} } },
        policies: { ai: { promptGuard: { request: [{ regex: { matches: [pattern] } }] } } },
      },
    });
  await eventually(() => assert.rejects(create(backend("(?=x)")), /gwbackends\.gwproxy\.dev.*denied request/s));
  assert.match(await create(backend("[0-9]{3}")), /created/);
});

test("every policy of the bundle refuses where it cannot decide", async () => {
  const text = await server.kubectl(["get", "validatingadmissionpolicies", "-o", "json"]);
  const { items } = JSON.parse(text) as { items: { spec: { validations: unknown[]; failurePolicy: string } }[] };
  assert.ok(items.length > 0);
  for (const { spec } of items) assert.equal(spec.failurePolicy, "Fail");
});
