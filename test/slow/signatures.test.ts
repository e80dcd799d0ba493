/** Signatures of `auth.cloudA` next to those of botocore: on generated requests, and on what leaves a gateway. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { ReadableStream } from "node:stream/web";
import { test } from "node:test";
import fc from "fast-check";
import { HeaderList } from "../../src/lib/header-list.ts";
import { signRequest } from "../../src/proxy/backends/auth/cloud-a/sigv4.ts";
import { SEED } from "../support/fixtures/seed.ts";
import { INLINE_AUTH, secret } from "../support/gateway/backend-auth.ts";
import { documents, GATEWAY, route, startGateway } from "../support/gateway/gateway.ts";
import { contextOf, type ProofContext } from "../support/proofs/prove.ts";
import { signWithBotocore, type RequestToSign } from "../testbed/botocore.ts";

const REQUESTS = 2_000;
const KEYS = { accessKeyId: "AKIDSTATIC", secretAccessKey: "secret/of+static", sessionToken: "session/of+static==" };

const encoded = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
const text = fc.string({ unit: "grapheme", maxLength: 12 });
const segment = fc.oneof(text.map(encoded), fc.constantFrom("", ".", "..", "~a", "a+b", "%2F", "a:b@c,d;e=f"));
const pair = fc.oneof(
  fc.tuple(text, text).map(([name, value]) => `${encoded(name)}=${encoded(value)}`),
  text.filter((name) => name !== "").map(encoded),
);
const visible = fc.string({ unit: fc.constantFrom(...' abcXYZ019,;="/\t'), maxLength: 20 });
const header = fc.tuple(
  fc.constantFrom("content-type", "x-amz-target", "x-amz-Meta-A", "x-amzn-b", "X-Amz-Acl"),
  visible,
);

const request = fc.record({
  method: fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"),
  host: fc.constantFrom("bedrock-runtime.eu-west-1.amazonaws.com", "127.0.0.1:8443", "own.test"),
  segments: fc.array(segment, { maxLength: 5 }),
  pairs: fc.array(pair, { maxLength: 5 }),
  headers: fc.uniqueArray(header, { maxLength: 4, selector: ([name]) => name.toLowerCase() }),
  body: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  hasSession: fc.boolean(),
  scope: fc.constantFrom(
    { region: "eu-west-1", service: "bedrock" },
    { region: "us-gov-west-1", service: "execute-api" },
    { region: "eu-central-1", service: "s3" },
  ),
  second: fc.integer({ min: 1_400_000_000, max: 1_900_000_000 }),
});

test(`signatures of ${REQUESTS} generated requests are those of botocore`, async () => {
  const requests: RequestToSign[] = [];
  const ours: string[] = [];
  for (const { segments, pairs, hasSession, scope, second, ...rest } of fc.sample(request, {
    numRuns: REQUESTS,
    seed: SEED,
  })) {
    const path = `/${segments.join("/")}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`;
    const keys = { ...KEYS, sessionToken: hasSession ? KEYS.sessionToken : "" };
    const headers = new HeaderList(["host", rest.host, ...rest.headers.flat()]);
    signRequest({ method: rest.method, path, headers, body: rest.body }, keys, scope, second * 1000);
    ours.push(headers.get("authorization") ?? "");
    requests.push({ ...rest, ...keys, ...scope, path, time: headers.get("x-amz-date") ?? "" });
  }
  const theirs = await signWithBotocore(requests);
  assert.equal(theirs.length, REQUESTS);
  for (const [at, signature] of theirs.entries()) assert.equal(ours[at], signature, JSON.stringify(requests[at]));
});

interface Arrived {
  readonly request: RequestToSign;
  readonly authorization: string;
}

/** An upstream that keeps what arrives, in the form that botocore signs. */
async function startWitness(context: ProofContext): Promise<{ readonly port: number; readonly arrived: Arrived[] }> {
  const arrived: Arrived[] = [];
  const scope = { region: "eu-west-1", service: "execute-api" };
  const server = createServer((message, response) => {
    const { method = "", url: path = "", headers } = message;
    const time = String(headers["x-amz-date"]);
    const covered = Object.entries(headers).filter(([name]) => /^(?:content-type|x-amz(?:n?)-.*)$/.test(name));
    void buffer(message).then((body) => {
      const signed = covered.map(([name, value]) => [name, String(value)] as const);
      const seen = { method, path, host: headers.host ?? "", headers: signed, body, time, ...KEYS, ...scope };
      arrived.push({ request: seen, authorization: headers.authorization ?? "" });
      return response.end();
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, arrived };
}

test("requests with chunked and slow bodies leave a gateway as botocore would sign them", async (t) => {
  const context = contextOf(t);
  const witness = await startWitness(context);
  const auth = "{cloudA: {secretRef: {name: aws}, region: eu-west-1, serviceName: execute-api}}";
  const { accessKeyId: accessKey, secretAccessKey: secretKey, sessionToken } = KEYS;
  const objects = [INLINE_AUTH.objects(witness.port, auth), secret("aws", { accessKey, secretKey, sessionToken })];
  const gateway = await startGateway(context, documents(GATEWAY, route("web", "web"), ...objects));
  async function* slowly(parts: number): AsyncGenerator<string> {
    for (let part = 0; part < parts; part++) {
      await new Promise(setImmediate);
      yield `part ${part} `.repeat(part * 100 + 1);
    }
  }
  for (let turn = 0; turn < 30; turn++) {
    const isEmpty = turn % 5 === 0;
    const init = {
      method: isEmpty ? "GET" : "POST",
      headers: { "content-type": "text/plain;  charset=utf-8", "x-amz-target": `T${turn}`, authorization: "Bearer x" },
      ...(isEmpty ? {} : { body: ReadableStream.from(slowly(turn)), duplex: "half" }),
    };
    const answer = await fetch(`${gateway.url()}/a%20b/${turn}?z=1&a=%2F${turn}&z=0`, init as RequestInit);
    assert.equal(answer.status, 200);
  }
  const theirs = await signWithBotocore(witness.arrived.map(({ request: each }) => each));
  assert.equal(theirs.length, 30);
  for (const [at, signature] of theirs.entries()) assert.equal(witness.arrived[at]?.authorization, signature);
});
