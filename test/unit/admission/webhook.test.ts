import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, request } from "node:https";
import { type TestContext, test } from "node:test";
import { connect } from "node:tls";
import { Certificates, type CertificateStore, type Pem, renew } from "../../../src/admission/certificates.ts";
import { type WebhookServer, startWebhookServer } from "../../../src/admission/server.ts";
import type { Violation } from "../../../src/admission/violation.ts";
import { webhookConfiguration } from "../../../src/admission/webhook-configuration.ts";
import type { Clock } from "../../../src/lib/clock.ts";
import { createLogger } from "../../../src/lib/log.ts";

const DAY_MS = 86_400_000;
const NAMES = ["localhost", "127.0.0.1"];
const log = createLogger({ level: "off", modules: new Map() }, () => {});

const REFUSAL: Violation = {
  path: "spec.traffik",
  severity: "error",
  reason: "FieldValueInvalid",
  message: 'unknown field "spec.traffik"',
  suggestion: "did you mean `traffic`?",
};
const WARNING: Violation = {
  path: "spec.a",
  severity: "warning",
  reason: "FieldValueInvalid",
  message: "old spelling",
  suggestion: "",
};

function validate(object: unknown): Violation[] {
  const { verdict } = object as { verdict: string };
  if (verdict === "crash") throw new Error("internal detail");
  return verdict === "refuse"
    ? [REFUSAL, { ...REFUSAL, path: "spec", message: "Required value", suggestion: "" }]
    : verdict === "warn"
      ? [WARNING]
      : [];
}

async function started(t: TestContext): Promise<{ server: WebhookServer; pem: Pem }> {
  const pem = renew(undefined, NAMES, Date.now());
  const server = await startWebhookServer({ host: "127.0.0.1", port: 0, certificate: pem.leaf, validate, log });
  t.after(() => server.stop());
  return { server, pem };
}

async function send(
  server: WebhookServer,
  ca: string,
  options: { path: string; method: string; body?: string; agent?: Agent },
): Promise<{ status: number; text: string }> {
  const { path, method, body, agent } = options;
  const call = request({
    host: "127.0.0.1",
    port: server.address.port,
    ca,
    path,
    method,
    agent: agent ?? false,
    headers: { "content-type": "application/json" },
  });
  call.end(body);
  const [response] = (await once(call, "response")) as [import("node:http").IncomingMessage];
  response.setEncoding("utf8");
  let text = "";
  for await (const part of response) text += part;
  return { status: response.statusCode ?? 0, text };
}

function reviewOf(object: unknown, operation = "CREATE"): string {
  return JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: { uid: "u-1", operation, kind: { kind: "GwPolicy" }, name: "keys", object, oldObject: null },
  });
}

test("a sound object is allowed over real HTTPS", async (t) => {
  const { server, pem } = await started(t);
  const { status, text } = await send(server, pem.authority.certificate, {
    path: "/validate?timeout=5s",
    method: "POST",
    body: reviewOf({ verdict: "allow" }),
  });
  assert.equal(status, 200);
  assert.deepEqual(JSON.parse(text), {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    response: { uid: "u-1", allowed: true },
  });
});

test("a refusal lists each path with its reason, as the API server words it", async (t) => {
  const { server, pem } = await started(t);
  const { text } = await send(server, pem.authority.certificate, {
    path: "/validate",
    method: "POST",
    body: reviewOf({ verdict: "refuse" }, "UPDATE"),
  });
  const { response } = JSON.parse(text);
  assert.equal(response.allowed, false);
  assert.equal(response.status.code, 422);
  assert.equal(
    response.status.message,
    'GwPolicy keys is invalid: [spec.traffik: unknown field "spec.traffik" (did you mean `traffic`?), spec: Required value]',
  );
  assert.deepEqual(response.status.details.causes[1], {
    reason: "FieldValueInvalid",
    message: "Required value",
    field: "spec",
  });
});

test("warnings are passed on, and deleting is always allowed", async (t) => {
  const { server, pem } = await started(t);
  const warned = await send(server, pem.authority.certificate, {
    path: "/validate",
    method: "POST",
    body: reviewOf({ verdict: "warn" }),
  });
  assert.deepEqual(JSON.parse(warned.text).response, { uid: "u-1", allowed: true, warnings: ["spec.a: old spelling"] });
  const deleted = await send(server, pem.authority.certificate, {
    path: "/validate",
    method: "POST",
    body: reviewOf(null, "DELETE"),
  });
  assert.equal(JSON.parse(deleted.text).response.allowed, true);
});

test("what is nested too deeply or too long is refused in words, before it is parsed", async (t) => {
  const { server, pem } = await started(t);
  const post = async (object: string): Promise<{ uid: string; message: string }> => {
    const body = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-7","operation":"CREATE","object":${object}}}`;
    const { status, text } = await send(server, pem.authority.certificate, { path: "/validate", method: "POST", body });
    assert.equal(status, 200);
    const { response } = JSON.parse(text);
    assert.equal(response.allowed, false);
    return { uid: response.uid, message: response.status.message };
  };
  // None of them is JSON to its end: a parser would have said so.
  const deep = await post('{"a":'.repeat(10_000));
  assert.deepEqual(deep, { uid: "u-7", message: "Too long: may not be nested deeper than 100 levels" });
  const long = await post(`{"a":"${"x".repeat(3 * 1024 * 1024)}",`);
  assert.equal(long.message, "Too long: may not be more than 2097152 bytes");
});

test("what is no review, too large, or cannot be checked is never allowed", async (t) => {
  const { server, pem } = await started(t);
  const post = (body: string): Promise<{ status: number; text: string }> =>
    send(server, pem.authority.certificate, { path: "/validate", method: "POST", body });
  assert.equal((await post("{")).status, 400);
  assert.equal((await post("{}")).status, 400);
  assert.equal((await post(reviewOf({}).replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1"))).status, 400);
  const crashed = await post(reviewOf({ verdict: "crash" }));
  assert.equal(crashed.status, 500);
  assert.doesNotMatch(crashed.text, /internal detail/);
  assert.equal((await post(" ".repeat(5 * 1024 * 1024))).status, 413);
  assert.equal((await send(server, pem.authority.certificate, { path: "/healthz", method: "GET" })).text, "ok");
  assert.equal(
    (await send(server, pem.authority.certificate, { path: "/other", method: "POST", body: "{}" })).status,
    404,
  );
});

/** A clock that stands still until told. */
class ManualClock implements Clock {
  at: number = Date.now() - 61 * DAY_MS;
  #pending: { due: number; run: () => void } | undefined;

  now(): number {
    return this.at;
  }

  after(delayMs: number, run: () => void): () => void {
    this.#pending = { due: this.at + delayMs, run };
    return () => (this.#pending = undefined);
  }

  pass(ms: number): void {
    this.at += ms;
    const { due, run } = this.#pending ?? { due: Number.POSITIVE_INFINITY, run: () => {} };
    if (due <= this.at) run();
  }
}

class MemoryStore implements CertificateStore {
  pem: Pem | undefined;
  writes = 0;

  async read(): Promise<Pem | undefined> {
    return this.pem;
  }

  async write(pem: Pem): Promise<void> {
    this.pem = pem;
    this.writes++;
  }
}

async function fingerprint(port: number, ca: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, ca, servername: "localhost" });
  await once(socket, "secureConnect");
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

test("a leaf that nears its end is replaced on the same socket while an open connection goes on", async (t) => {
  const clock = new ManualClock();
  const store = new MemoryStore();
  let bundle = "";
  const patchCaBundle = async (pem: string): Promise<void> => void (bundle = pem);
  const certificates = new Certificates({ store, names: NAMES, patchCaBundle, clock, log });
  const server = await startWebhookServer({
    host: "127.0.0.1",
    port: 0,
    certificate: await certificates.start(),
    validate,
    log,
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(async () => {
    certificates.stop();
    agent.destroy();
    await server.stop();
  });
  const { port } = server.address;
  const before = await fingerprint(port, bundle);
  const ask = { path: "/validate", method: "POST", body: reviewOf({ verdict: "allow" }), agent };
  assert.equal((await send(server, bundle, ask)).status, 200);
  const renewed = new Promise<void>((resolve) => {
    certificates.onRenewal((leaf) => {
      server.useCertificate(leaf);
      resolve();
    });
  });
  clock.pass(61 * DAY_MS);
  await renewed;
  assert.notEqual(await fingerprint(port, bundle), before);
  assert.equal((await send(server, bundle, ask)).status, 200);
  assert.equal(server.address.port, port);
  assert.equal(store.writes, 2);
});

test("certificates are kept while they are good and made anew for other names, broken storage or near their end", () => {
  const now = Date.now();
  const first = renew(undefined, NAMES, now);
  assert.equal(renew(first, NAMES, now + 59 * DAY_MS), first);
  const named = renew(first, [...NAMES, "webhook.gw.svc"], now);
  assert.equal(named.authority, first.authority);
  assert.notEqual(named.leaf.certificate, first.leaf.certificate);
  const broken = renew({ ...first, leaf: { certificate: "garbage", key: "" } }, NAMES, now);
  assert.equal(broken.authority, first.authority);
  assert.match(broken.leaf.certificate, /BEGIN CERTIFICATE/);
});

test("a new authority is announced together with the old one until the old one expires", () => {
  const now = Date.now();
  const first = renew(undefined, NAMES, now);
  const later = now + 3_500 * DAY_MS;
  const second = renew(first, NAMES, later);
  assert.notEqual(second.authority.certificate, first.authority.certificate);
  assert.equal(second.previousAuthority, first.authority.certificate);
  assert.equal(renew(second, NAMES, now + 3_540 * DAY_MS), second);
  assert.equal(renew(second, NAMES, now + 3_660 * DAY_MS).previousAuthority, "");
});

test("while a new authority is announced the leaf of the old one serves, and no longer than it can", () => {
  const now = Date.now();
  const first = renew(undefined, NAMES, now);
  // Without its key the authority can sign nothing more.
  const second = renew({ ...first, authority: { ...first.authority, key: "" } }, NAMES, now);
  assert.notEqual(second.authority.certificate, first.authority.certificate);
  assert.equal(second.leaf, first.leaf);
  assert.equal(renew(second, NAMES, now + DAY_MS), second);
  const third = renew(second, NAMES, now, true);
  assert.equal(third.authority, second.authority);
  assert.notEqual(third.leaf.certificate, first.leaf.certificate);
  assert.equal(renew(third, NAMES, now, true), third);
  // What the API server refuses anyway is not kept for it.
  assert.notEqual(renew(second, NAMES, now + 91 * DAY_MS).leaf.certificate, first.leaf.certificate);
  assert.notEqual(renew(second, [...NAMES, "other.gw.svc"], now).leaf.certificate, first.leaf.certificate);
});

test("the webhook is asked about our kinds alone and closes on failure", () => {
  const configuration = webhookConfiguration(
    "gwproxy",
    { service: { name: "hook", namespace: "gw" } },
    ["gwpolicies", "gwbackends"],
    "PEM",
  );
  const { webhooks } = configuration as { webhooks: Record<string, unknown>[] };
  assert.deepEqual(webhooks[0]?.["rules"], [
    {
      apiGroups: ["gwproxy.dev"],
      apiVersions: ["*"],
      operations: ["CREATE", "UPDATE"],
      resources: ["gwbackends", "gwpolicies"],
      scope: "*",
    },
  ]);
  assert.deepEqual(webhooks[0]?.["clientConfig"], {
    service: { name: "hook", namespace: "gw", path: "/validate", port: 443 },
    caBundle: "UEVN",
  });
  assert.equal(webhooks[0]?.["failurePolicy"], "Fail");
  assert.equal(webhooks[0]?.["timeoutSeconds"], 5);
  assert.equal(webhooks[0]?.["sideEffects"], "None");
});
