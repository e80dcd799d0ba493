import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, request } from "node:https";
import { type TestContext, test } from "node:test";
import { connect as connectPlain } from "node:net";
import { connect } from "node:tls";
import { type ReviewAnswer, answerReview } from "../../../src/admission/answer.ts";
import { Certificates, type CertificateStore, type Pem, renew } from "../../../src/admission/certificates.ts";
import {
  type ReviewThreads,
  type ReviewThreadsOptions,
  startReviewThreads,
} from "../../../src/admission/review-threads.ts";
import { type WebhookServer, startWebhookServer } from "../../../src/admission/server.ts";
import type { Violation } from "../../../src/admission/violation.ts";
import type { Clock } from "../../../src/lib/time/clock.ts";
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

const review = async (body: Uint8Array): Promise<ReviewAnswer> => answerReview(body, validate);

async function started(t: TestContext): Promise<{ server: WebhookServer; pem: Pem }> {
  const pem = renew(undefined, NAMES, Date.now());
  const server = await startWebhookServer({ host: "127.0.0.1", port: 0, certificate: pem.leaf, review, log });
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

/** A review that is under way for as long as the gate is shut. */
async function startGated(
  t: TestContext,
  options: Partial<ReviewThreadsOptions> = {},
): Promise<{ gate: Int32Array; threads: ReviewThreads }> {
  const gate = new Int32Array(new SharedArrayBuffer(8));
  const entry = new URL("../../support/fixtures/gated-review.ts", import.meta.url);
  const threads = await startReviewThreads({ log, entry, workerData: gate, ...options });
  t.after(() => threads.close());
  return { gate, threads };
}

function open(gate: Int32Array): void {
  Atomics.store(gate, 0, 1);
  Atomics.notify(gate, 0);
}

/** Resolves when so many threads wait at the gate. */
async function arrived(gate: Int32Array, count: number): Promise<void> {
  for (let seen = Atomics.load(gate, 1); seen < count; seen = Atomics.load(gate, 1)) {
    const { value } = Atomics.waitAsync(gate, 1, seen);
    await value;
  }
}

test("health is answered while reviews are under way, and what is too much is refused at once", async (t) => {
  const { gate, threads } = await startGated(t, { maxThreads: 2, maxWaiting: 1 });
  const pem = renew(undefined, NAMES, Date.now());
  const server = await startWebhookServer({
    host: "127.0.0.1",
    port: 0,
    certificate: pem.leaf,
    review: (body) => threads.review(body),
    log,
  });
  t.after(() => server.stop());
  const ca = pem.authority.certificate;
  const ask = (): Promise<{ status: number; text: string }> =>
    send(server, ca, { path: "/validate", method: "POST", body: reviewOf({}) });
  const underWay = [ask(), ask()];
  await arrived(gate, 2);
  const third = ask();
  // Of two more at least one comes when another one waits already.
  const fourth = ask();
  const first = await Promise.race([third, fourth]);
  assert.equal(first.status, 503);
  assert.match(first.text, /too many reviews are waiting/);
  for (let asked = 0; asked < 20; asked++) {
    assert.equal((await send(server, ca, { path: "/healthz", method: "GET" })).text, "ok");
  }
  open(gate);
  for (const { status } of await Promise.all(underWay)) assert.equal(status, 200);
  assert.deepEqual((await Promise.all([third, fourth])).map(({ status }) => status).sort(), [200, 503]);
});

test("a review that does not end costs its thread and nothing else", async (t) => {
  const { gate, threads } = await startGated(t, { maxThreads: 1, timeoutMs: 1_500 });
  const stuck = await threads.review(new Uint8Array(1));
  assert.equal(stuck.kind === "unanswerable" && stuck.status, 500);
  open(gate);
  assert.equal((await threads.review(new Uint8Array(1))).kind, "verdict");
});

test("a thread that breaks refuses its review, and the next one has a thread again", async (t) => {
  const { gate, threads } = await startGated(t, { maxThreads: 1 });
  open(gate);
  const broken = await threads.review(new TextEncoder().encode("break"));
  assert.equal(broken.kind === "unanswerable" && broken.status, 500);
  assert.equal((await threads.review(new Uint8Array(1))).kind, "verdict");
});

/** Reviews as an attacker sends them, and how each is answered. */
const HEAVY: readonly (readonly [name: string, object: string, allowed: boolean, causes: number])[] = [
  ["60,000 wrong items", `{"targetRefs":[${"1,".repeat(59_999)}1]}`, false, 100],
  ["4,000 unknown fields", `{${Array.from({ length: 4_000 }, (_, at) => `"k${at}":1`).join()}}`, false, 100],
  [
    "lists in lists and a long text",
    `{"targetRefs":${"[".repeat(90)}${"]".repeat(90)},"x":${JSON.stringify("y".repeat(1_000_000))}}`,
    false,
    2,
  ],
];

test("heavy reviews are answered by the real threads with a bounded list", async (t) => {
  const threads = await startReviewThreads({ log });
  t.after(() => threads.close());
  for (const [name, spec, allowed, causes] of HEAVY) {
    const object = `{"apiVersion":"gwproxy.dev/v1alpha1","kind":"GwPolicy","metadata":{"name":"a"},"spec":${spec}}`;
    const body = reviewOf(null).replace('"object":null', `"object":${object}`);
    const answer = await threads.review(new TextEncoder().encode(body));
    assert.equal(answer.kind, "verdict", name);
    if (answer.kind !== "verdict") return;
    assert.equal(answer.allowed, allowed, name);
    assert.equal(JSON.parse(answer.text).response.status.details.causes.length, causes, name);
  }
});

/** What a client sends and then waits: each is ended when the limit is over. */
const SLOW: Readonly<Record<string, string>> = {
  nothing: "",
  "half a head": "POST /validate HTTP/1.1\r\nhost: x\r\n",
  "half a body": "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{",
  "an open end of chunks": "POST /validate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
};

for (const [name, bytes] of Object.entries(SLOW)) {
  test(`a client that sends ${name} is let go`, async (t) => {
    const pem = renew(undefined, NAMES, Date.now());
    const options = { host: "127.0.0.1", port: 0, certificate: pem.leaf, review, log, requestTimeoutMs: 200 };
    const server = await startWebhookServer(options);
    t.after(() => server.stop());
    const ca = pem.authority.certificate;
    const socket = connect({ host: "127.0.0.1", port: server.address.port, ca, servername: "localhost" });
    socket.on("error", () => undefined);
    await once(socket, "secureConnect");
    socket.write(bytes);
    socket.resume();
    await once(socket, "close");
  });
}

test("a client that does not begin its handshake is let go, and idle connections make room for new ones", async (t) => {
  const pem = renew(undefined, NAMES, Date.now());
  const options = { host: "127.0.0.1", port: 0, certificate: pem.leaf, review, log };
  const server = await startWebhookServer({ ...options, requestTimeoutMs: 200, maxConnections: 2 });
  t.after(() => server.stop());
  const { port } = server.address;
  const silent = connectPlain({ host: "127.0.0.1", port });
  silent.on("error", () => undefined);
  await once(silent.resume(), "close");
  const agents = [new Agent({ keepAlive: true }), new Agent({ keepAlive: true })];
  t.after(() => agents.forEach((agent) => agent.destroy()));
  const ca = pem.authority.certificate;
  for (const agent of agents) await send(server, ca, { path: "/healthz", method: "GET", agent });
  // The third one is refused, and with it goes what holds the places.
  await assert.rejects(send(server, ca, { path: "/healthz", method: "GET" }));
  assert.equal((await send(server, ca, { path: "/healthz", method: "GET" })).text, "ok");
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
    review,
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
