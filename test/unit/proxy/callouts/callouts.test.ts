import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ServerCredentials } from "@grpc/grpc-js";
import {
  Authorization,
  CheckRequestSchema,
} from "../../../../generated/proto/envoy/service/auth/v3/external_auth_pb.ts";
import {
  BackendTlsSchema,
  ExternalServiceSchema,
  type ExternalService,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { createAuthority, createLeaf } from "../../../../src/lib/certificates/x509.ts";
import { connectionOf } from "../../../../src/proxy/upstream/dial/connection-settings.ts";
import { DestinationGuard } from "../../../../src/proxy/upstream/dial/destination-guard.ts";
import { createResolver } from "../../../../src/proxy/upstream/dial/dns.ts";
import { createUpstream } from "../../../../src/proxy/upstream/client/client.ts";
import type { CallTarget } from "../../../../src/proxy/upstream/upstream.ts";
import { CalloutError, type Caller } from "../../../../src/proxy/callouts/callout.ts";
import { createCallouts, type Callouts } from "../../../../src/proxy/callouts/callouts.ts";
import { MAX_IN_FLIGHT } from "../../../../src/proxy/callouts/grpc-channels.ts";
import type { Abortable } from "../../../../src/proxy/exchange/exchange.ts";
import { compileAuth, keyAuth } from "../../../support/gateway/key-auth.ts";
import { ALLOW, startAuthServer } from "../../../support/servers/auth-server.ts";
import { deadPort, startSocket } from "../../../support/servers/grpc.ts";
import { validNow } from "../../../support/servers/tls-upstream.ts";

const UNCALLED: Caller = { onAbort: () => undefined };
const REQUEST = create(CheckRequestSchema, {});
const LIMIT_BYTES = 1000;

interface Health {
  readonly samples: (boolean | undefined)[];
  /** Resolves with the first sample. */
  readonly first: Promise<void>;
}

/** Callouts whose one backend is the callee. */
function open(
  t: TestContext,
  callee: Partial<CallTarget> & Pick<CallTarget, "target">,
): { callouts: Callouts; health: Health } {
  const resolver = createResolver();
  const guard = new DestinationGuard();
  const upstream = createUpstream({ resolver, guard, connectTimeoutMs: 5_000 });
  const samples: (boolean | undefined)[] = [];
  const first = Promise.withResolvers<void>();
  const callouts = createCallouts({
    upstream,
    names: resolver,
    guard,
    bodyLimitBytes: LIMIT_BYTES,
    pickCallTarget: () => ({
      authority: "auth.example:9000",
      auth: undefined,
      http: undefined,
      begin: () => (healthy) => {
        samples.push(healthy);
        first.resolve();
      },
      ...callee,
    }),
  });
  t.after(() => {
    callouts.close();
    upstream.close();
    resolver.close();
  });
  return { callouts, health: { samples, first: first.promise } };
}

const at = (port: number, tls?: MessageInitShape<typeof BackendTlsSchema>) => ({
  target: {
    ...connectionOf(tls === undefined ? {} : { tls: create(BackendTlsSchema, tls) }),
    host: "127.0.0.1",
    port,
    unixPath: "",
  },
});

const BACKEND: ExternalService = create(ExternalServiceSchema, { place: { case: "backend", value: "backend/a/b" } });

const check = (callouts: Callouts, caller: Caller = UNCALLED) =>
  callouts.open(BACKEND, "ExtAuthz").unary(Authorization.method.check, REQUEST, caller);

test("many calls share one connection, and each says how the service did", async (t) => {
  const server = await startAuthServer(t);
  const { callouts, health } = open(t, at(server.port));
  await Promise.all(Array.from({ length: 50 }, () => check(callouts)));
  assert.equal(server.seen.length, 50);
  assert.deepEqual(new Set(health.samples), new Set([true]));
  assert.equal(server.peers.size, 1);
});

test("a call ends with the exchange, with the same error, and counts for nothing", async (t) => {
  const asked = Promise.withResolvers<void>();
  const server = await startAuthServer(t, () => {
    asked.resolve();
    return undefined;
  });
  const { callouts, health } = open(t, at(server.port));
  const abortables: Abortable[] = [];
  const pending = check(callouts, { onAbort: (target) => void abortables.push(target) });
  await asked.promise;
  const gone = new Error("the client went away");
  abortables[0]?.abort(gone);
  await assert.rejects(pending, gone);
  await health.first;
  assert.deepEqual(health.samples, [undefined]);
});

test("an exchange that is over already asks nobody", async (t) => {
  const server = await startAuthServer(t);
  const { callouts } = open(t, at(server.port));
  const gone = new Error("the client went away");
  await assert.rejects(check(callouts, { onAbort: (target) => target.abort(gone) }), gone);
  assert.equal(server.seen.length, 0);
});

test("TLS is checked as for every other upstream: trusted authority, name, and an address as name", async (t) => {
  const authority = createAuthority("ext", validNow());
  const { certificate, key } = createLeaf(authority, ["auth.example"], validNow());
  const credentials = ServerCredentials.createSsl(null, [
    { cert_chain: Buffer.from(certificate), private_key: Buffer.from(key) },
  ]);
  const server = await startAuthServer(t, () => ALLOW, { credentials });
  const caPem = authority.certificate;
  await check(open(t, at(server.port, { caPem, sni: "auth.example" })).callouts);
  assert.equal(server.seen.length, 1);
  for (const tls of [
    { sni: "auth.example" },
    { caPem, sni: "other.example" },
    { caPem },
    { caPem, trustNothing: true },
  ])
    await assert.rejects(check(open(t, at(server.port, tls)).callouts), CalloutError, JSON.stringify(tls));
  await assert.rejects(check(open(t, at(server.port)).callouts), CalloutError, "plain text to a TLS port");
  assert.equal(server.seen.length, 1);
});

test("the credential of the backend goes with the call, and one for a query has no place in gRPC", async (t) => {
  const server = await startAuthServer(t);
  const auth = compileAuth(keyAuth("s3cret"));
  await check(open(t, { ...at(server.port), auth }).callouts);
  assert.deepEqual(server.metadata[0]?.get("authorization"), "Bearer s3cret");
  const inQuery = compileAuth(keyAuth("s3cret", { location: { case: "queryParameter", value: "key" } }));
  await assert.rejects(
    check(open(t, { ...at(server.port), auth: inQuery }).callouts),
    (error: unknown) => error instanceof CalloutError && error.misconfigured,
  );
});

test("an answer that is larger than may be held is a failure", async (t) => {
  const server = await startAuthServer(t, () => ({ dynamicMetadata: { much: "x".repeat(1_100_000) } }));
  await assert.rejects(check(open(t, at(server.port)).callouts), /external service failed/);
});

test("a connection on which nothing comes back is replaced", async (t) => {
  let connections = 0;
  const port = await startSocket(t, () => connections++);
  const { callouts } = open(t, at(port));
  await Promise.all([1, 2, 3].map(() => assert.rejects(check(callouts), CalloutError)));
  assert.equal(connections, 1);
  await assert.rejects(check(callouts), CalloutError);
  assert.equal(connections, 2);
});

test("HTTP: an answer without an end, or larger than the limit, is a failure; a dead port is one at once", async (t) => {
  const speak = (text: string) => startSocket(t, (socket) => socket.write(text));
  const long = await speak(`HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n${"x".repeat(2000)}`);
  const cut = await startSocket(t, (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nx"));
  for (const port of [long, cut, await deadPort()]) {
    const { callouts, health } = open(t, at(port));
    const request = { method: "GET", path: "/", authority: undefined, headers: new HeaderList(), body: null };
    await assert.rejects(callouts.open(BACKEND, "ExtAuthz").http(request, UNCALLED), CalloutError);
    assert.deepEqual(health.samples, [false]);
  }
});

test("a service that could not be resolved says so and cannot be asked", async (t) => {
  const { callouts } = open(t, at(1));
  const service = callouts.open(create(ExternalServiceSchema, { invalidReason: "not found" }), "ExtAuthz");
  assert.equal(service.invalidReason, "not found");
  await assert.rejects(
    service.unary(Authorization.method.check, REQUEST, UNCALLED),
    (error: unknown) => error instanceof CalloutError && error.misconfigured,
  );
});

test("a service that hangs is not given calls without end", async (t) => {
  const { callouts, health } = open(t, at(await startSocket(t)));
  const abortables: Abortable[] = [];
  const caller: Caller = { onAbort: (target) => void abortables.push(target) };
  const waiting = Array.from({ length: MAX_IN_FLIGHT }, () => check(callouts, caller));
  const settled = Promise.allSettled(waiting);
  await assert.rejects(
    check(callouts),
    (error: unknown) => error instanceof CalloutError && /in flight/.test(error.detail ?? ""),
  );
  // Whoever counts calls under way hears of the end of this one, which says nothing about the service.
  assert.deepEqual(health.samples, [undefined]);
  for (const abortable of abortables) abortable.abort(new Error("over"));
  assert.ok((await settled).every(({ status }) => status === "rejected"));
});
