/** gRPC's interoperability cases with grpc-js on both sides and a GRPCRoute in between, on plain text and behind TLS. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { create, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import {
  compressionAlgorithms,
  credentials,
  makeGenericClientConstructor,
  Metadata,
  status,
  type CallOptions,
  type ChannelCredentials,
  type Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  type ServiceError,
  type StatusObject,
} from "@grpc/grpc-js";
import {
  EmptySchema,
  SimpleRequestSchema,
  StreamingInputCallRequestSchema,
  StreamingOutputCallRequestSchema,
  TestService,
  UnimplementedService,
  type SimpleResponse,
  type StreamingInputCallResponse,
  type StreamingOutputCallResponse,
} from "../../../generated/proto/grpc/testing/test_pb.ts";
import { serviceDefinition } from "../../../src/lib/grpc.ts";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { documents, pemObject, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import {
  INITIAL,
  interopObjects,
  interopServer,
  TRAILING,
  type InteropServer,
} from "../../support/servers/grpc-interop.ts";
import { startGrpc } from "../../support/servers/grpc.ts";
import { eventually } from "../../support/gateway/process.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";

const OBJECTS = interopObjects("matches: [{method: {service: grpc.testing.TestService}}], ");

type Done<T> = (error: ServiceError | null, answer?: T) => void;

/** What grpc-js makes of the service's table of methods. */
interface TestClient extends Client {
  emptyCall(request: Message, options: CallOptions, done: Done<Message>): ClientUnaryCall;
  unaryCall(request: Message, metadata: Metadata, done: Done<SimpleResponse>): ClientUnaryCall;
  streamingOutputCall(request: Message): ClientReadableStream<StreamingOutputCallResponse>;
  streamingInputCall(done: Done<StreamingInputCallResponse>): ClientWritableStream<Message>;
  fullDuplexCall(metadata?: Metadata, options?: CallOptions): ClientDuplexStream<Message, StreamingOutputCallResponse>;
  unimplementedCall(request: Message, done: Done<Message>): ClientUnaryCall;
}

interface Stage {
  readonly client: TestClient;
  /** Of a service that nobody serves. */
  readonly other: TestClient;
  readonly server: InteropServer;
}

async function stage(t: TestContext, tls: boolean, options: Record<string, number> = {}): Promise<Stage> {
  const server = interopServer();
  const { port } = await startGrpc(contextOf(t), TestService, server.handlers);
  const authority = createAuthority("test", validNow());
  const { certificate, key } = createLeaf(authority, ["interop.test"], validNow());
  const secret = pemObject("Secret", "a", { "tls.crt": certificate, "tls.key": key });
  const gateway = await startGateway(contextOf(t), documents(OBJECTS, secret, staticBackend("interop", port)));
  assert.deepEqual(gateway.problems(), []);
  const trust: ChannelCredentials = tls
    ? credentials.createSsl(Buffer.from(authority.certificate))
    : credentials.createInsecure();
  const address = new URL(gateway.url(tls ? 8443 : 8080)).host;
  const connect = (service: typeof TestService | typeof UnimplementedService): TestClient => {
    const Made = makeGenericClientConstructor(serviceDefinition(service), "interop");
    const made = new Made(address, trust, { "grpc.ssl_target_name_override": "interop.test", ...options });
    t.after(() => made.close());
    return made as unknown as TestClient; // the methods are made from the same descriptor
  };
  return { client: connect(TestService), other: connect(UnimplementedService), server };
}

function unary<T>(ask: (done: Done<T>) => ClientUnaryCall): Promise<{ error: ServiceError | null; answer?: T }> {
  return new Promise((resolve) => {
    ask((error, answer) => resolve(answer === undefined ? { error } : { error, answer }));
  });
}

const simple = (init: MessageInitShape<typeof SimpleRequestSchema>): Message => create(SimpleRequestSchema, init);
const output = (sizes: readonly number[], sent = 0): Message =>
  create(StreamingOutputCallRequestSchema, {
    responseParameters: sizes.map((size) => ({ size })),
    payload: { body: new Uint8Array(sent) },
  });
const input = (size: number): Message =>
  create(StreamingInputCallRequestSchema, { payload: { body: new Uint8Array(size) } });
const failing = (message: string) => ({ responseStatus: { code: status.UNKNOWN, message } });

async function statusOf(stream: {
  once(event: string, heard: (...args: never[]) => void): unknown;
}): Promise<StatusObject> {
  return new Promise((resolve) => void stream.once("status", resolve));
}

const CASES: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  async "an empty message"({ client }) {
    const { error, answer } = await unary((done) => client.emptyCall(create(EmptySchema), {}, done));
    assert.equal(error, null);
    assert.ok(answer);
  },
  async "a large message both ways"({ client }) {
    const request = simple({ responseSize: 314_159, payload: { body: new Uint8Array(271_828) } });
    const { answer } = await unary<SimpleResponse>((done) => client.unaryCall(request, new Metadata(), done));
    assert.equal(answer?.payload?.body.length, 314_159);
  },
  async "a stream of requests"({ client }) {
    const { promise, resolve } = Promise.withResolvers<StreamingInputCallResponse | undefined>();
    const call = client.streamingInputCall((_error, answer) => resolve(answer));
    for (const size of [27_182, 8, 1_828, 45_904]) call.write(input(size));
    call.end();
    assert.equal((await promise)?.aggregatedPayloadSize, 74_922);
  },
  async "a stream of answers"({ client }) {
    const sizes: number[] = [];
    for await (const { payload } of client.streamingOutputCall(output([31_415, 9, 2_653, 58_979])))
      sizes.push(payload?.body.length ?? -1);
    assert.deepEqual(sizes, [31_415, 9, 2_653, 58_979]);
  },
  async "ping and pong"({ client }) {
    const call = client.fullDuplexCall();
    const ended = statusOf(call);
    for (const [sent, wanted] of [
      [27_182, 31_415],
      [8, 9],
      [1_828, 2_653],
      [45_904, 58_979],
    ] as const) {
      call.write(output([wanted], sent));
      const [{ payload }] = (await once(call, "data")) as [StreamingOutputCallResponse]; // the event of this stream
      assert.equal(payload?.body.length, wanted);
    }
    call.end();
    call.resume();
    assert.equal((await ended).code, status.OK);
  },
  async "an empty stream"({ client }) {
    const call = client.fullDuplexCall();
    call.on("data", () => assert.fail("an answer to nothing"));
    call.end();
    assert.equal((await statusOf(call)).code, status.OK);
  },
  async "a deadline on a server that sleeps"({ client }) {
    const call = client.fullDuplexCall(new Metadata(), { deadline: Date.now() + 100 });
    call.on("error", () => undefined);
    call.write(output([], 27_182));
    call.resume();
    assert.equal((await statusOf(call)).code, status.DEADLINE_EXCEEDED);
  },
  async "a cancel before the first message"({ client }) {
    const call = client.streamingInputCall(() => undefined);
    call.on("error", () => undefined);
    const ended = statusOf(call);
    call.cancel();
    assert.equal((await ended).code, status.CANCELLED);
  },
  async "a cancel after the first answer reaches the server"({ client, server }) {
    const before = server.cancelled();
    const call = client.fullDuplexCall();
    call.on("error", () => undefined);
    call.write(output([31_415], 27_182));
    await once(call, "data");
    const ended = statusOf(call);
    call.cancel();
    assert.equal((await ended).code, status.CANCELLED);
    await eventually(async () => assert.ok(server.cancelled() > before));
  },
  async "a status and its message"({ client }) {
    const message = "test status message";
    const request = simple(failing(message));
    const { error } = await unary((done) => client.unaryCall(request, new Metadata(), done));
    assert.deepEqual([error?.code, error?.details], [status.UNKNOWN, message]);
    const call = client.fullDuplexCall();
    call.on("error", () => undefined);
    call.resume();
    call.write(create(StreamingOutputCallRequestSchema, failing(message)));
    call.end();
    const { code, details } = await statusOf(call);
    assert.deepEqual([code, details], [status.UNKNOWN, message]);
  },
  async "a message of many scripts and blanks"({ client }) {
    const message = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
    const { error } = await unary((done) => client.unaryCall(simple(failing(message)), new Metadata(), done));
    assert.deepEqual([error?.code, error?.details], [status.UNKNOWN, message]);
  },
  async "metadata at the start and at the end, bytes included"({ client }) {
    const metadata = new Metadata();
    metadata.set(INITIAL, "test_initial_metadata_value");
    metadata.set(TRAILING, Buffer.from([0xab, 0xab, 0xab, 0]));
    const { promise, resolve } = Promise.withResolvers<Metadata>();
    const ended = Promise.withResolvers<StatusObject>();
    const call = client.unaryCall(simple({ responseSize: 1 }), metadata, () => undefined);
    call.on("metadata", resolve);
    call.on("status", ended.resolve);
    assert.deepEqual((await promise).get(INITIAL), ["test_initial_metadata_value"]);
    assert.deepEqual((await ended.promise).metadata.get(TRAILING), [Buffer.from([0xab, 0xab, 0xab, 0])]);
    const stream = client.fullDuplexCall(metadata);
    stream.resume();
    const begun = once(stream, "metadata") as Promise<[Metadata]>; // as the event is declared
    const over = statusOf(stream);
    stream.end(output([1]));
    assert.deepEqual((await begun)[0].get(INITIAL), ["test_initial_metadata_value"]);
    assert.deepEqual((await over).metadata.get(TRAILING), [Buffer.from([0xab, 0xab, 0xab, 0])]);
  },
  async "a method that the server does not have"({ client }) {
    const { error } = await unary((done) => client.unimplementedCall(create(EmptySchema), done));
    assert.equal(error?.code, status.UNIMPLEMENTED);
  },
  async "a service that no route takes"({ other }) {
    const { error } = await unary((done) => other.unimplementedCall(create(EmptySchema), done));
    assert.equal(error?.code, status.UNIMPLEMENTED);
  },
};

for (const tls of [false, true])
  test(`the interoperability cases of gRPC hold ${tls ? "behind TLS" : "on plain text"}`, async (t) => {
    const staged = await stage(t, tls);
    for (const [name, body] of Object.entries(CASES)) await t.test(name, () => body(staged));
  });

test("compressed messages pass as they are", async (t) => {
  const { client } = await stage(t, false, { "grpc.default_compression_algorithm": compressionAlgorithms.gzip });
  const request = simple({ responseSize: 314_159, payload: { body: new Uint8Array(271_828) } });
  const { error, answer } = await unary<SimpleResponse>((done) => client.unaryCall(request, new Metadata(), done));
  assert.equal(error, null);
  assert.equal(answer?.payload?.body.length, 314_159);
});
