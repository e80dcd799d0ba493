/** gRPC end to end: a client and a server of another make on either side of the gateway. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import {
  credentials,
  makeGenericClientConstructor,
  Metadata,
  Server,
  ServerCredentials,
  status,
  type Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientWritableStream,
  type handleUnaryCall,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerWritableStream,
  type ServiceDefinition,
  type ServiceError,
  type StatusObject,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { deadPort } from "../../support/servers/grpc.ts";
import { contextOf } from "../../support/proofs/prove.ts";

const text = (message: string): Buffer => Buffer.from(message);
const parse = (bytes: Buffer): string => bytes.toString();

function method(path: string, requestStream: boolean, responseStream: boolean) {
  return {
    path,
    requestStream,
    responseStream,
    requestSerialize: text,
    requestDeserialize: parse,
    responseSerialize: text,
    responseDeserialize: parse,
  };
}

const SERVICE = {
  unary: method("/echo.Echo/Unary", false, false),
  download: method("/echo.Echo/Download", false, true),
  upload: method("/echo.Echo/Upload", true, false),
  chat: method("/echo.Echo/Chat", true, true),
} satisfies ServiceDefinition;

interface EchoClient extends Client {
  unary(
    message: string,
    metadata: Metadata,
    options: { deadline?: number },
    callback: (error: ServiceError | null, answer: string) => void,
  ): ReturnType<Client["makeUnaryRequest"]>;
  download(message: string): ClientReadableStream<string>;
  upload(callback: (error: ServiceError | null, answer: string) => void): ClientWritableStream<string>;
  chat(): ClientDuplexStream<string, string>;
}

const unary: handleUnaryCall<string, string> = ({ request, metadata }, callback) => {
  if (request === "hang") return;
  const trailers = new Metadata();
  trailers.set("x-trailer", `of ${request}`);
  if (request.startsWith("fail")) {
    callback({ code: status.FAILED_PRECONDITION, details: "not today: é", metadata: trailers });
    return;
  }
  callback(null, `${request} ${String(metadata.get("x-name")[0] ?? "")}`, trailers);
};

const HANDLERS = {
  unary,
  download(call: ServerWritableStream<string, string>): void {
    for (let at = 0; at < Number(call.request); at++) call.write(`part ${at}`);
    call.end();
  },
  upload(call: ServerReadableStream<string, string>, callback: sendUnaryData<string>): void {
    const parts: string[] = [];
    call.on("data", (part: string) => parts.push(part));
    call.on("end", () => callback(null, parts.join("+")));
  },
  chat(call: ServerDuplexStream<string, string>): void {
    call.on("data", (part: string) => {
      if (part === "fail") call.emit("error", { code: status.ABORTED, details: "as asked" });
      else call.write(`re: ${part}`);
    });
    call.on("end", () => call.end());
  },
};

async function startServer(t: TestContext): Promise<number> {
  const server = new Server();
  server.addService(SERVICE, HANDLERS);
  t.after(() => server.forceShutdown());
  return new Promise((resolve, reject) => {
    const plain = ServerCredentials.createInsecure();
    server.bindAsync("127.0.0.1:0", plain, (error, port) => (error === null ? resolve(port) : reject(error)));
  });
}

interface Setup {
  readonly client: EchoClient;
  readonly url: string;
}

/** A client that reaches the server, or a given port, through a gateway. */
async function setUp(t: TestContext, options: { port?: number; policies?: readonly string[] } = {}): Promise<Setup> {
  const port = options.port ?? (await startServer(t));
  const objects = documents(GATEWAY, staticBackend("echo", port), route("echo", "echo"), ...(options.policies ?? []));
  const gateway = await startGateway(contextOf(t), objects);
  const client = connectTo(t, gateway.url());
  return { client, url: gateway.url() };
}

function connectTo(t: TestContext, url: string): EchoClient {
  const Constructor = makeGenericClientConstructor(SERVICE, "Echo");
  // The constructor makes one method per entry of SERVICE.
  const client = new Constructor(url.slice("http://".length), credentials.createInsecure()) as unknown as EchoClient;
  t.after(() => client.close());
  return client;
}

interface Answer {
  readonly error: ServiceError | null;
  readonly answer: string | undefined;
  readonly trailers: Metadata | undefined;
}

function ask(
  client: EchoClient,
  message: string,
  metadata: Metadata = new Metadata(),
  deadline?: number,
): Promise<Answer> {
  return new Promise((resolve) => {
    let trailers: Metadata | undefined;
    const done = (error: ServiceError | null, answer?: string): void => {
      setImmediate(() => resolve({ error, answer, trailers: trailers ?? error?.metadata }));
    };
    const call = client.unary(message, metadata, deadline === undefined ? {} : { deadline }, done);
    call.on("status", (end) => (trailers = end.metadata));
  });
}

test("a unary call carries metadata one way and trailers the other, and an error keeps its code and details", async (t) => {
  const { client } = await setUp(t);
  const metadata = new Metadata();
  metadata.set("x-name", "ada");
  const { answer, trailers } = await ask(client, "hello", metadata);
  assert.equal(answer, "hello ada");
  assert.deepEqual(trailers?.get("x-trailer"), ["of hello"]);
  const failed = await ask(client, "fail");
  assert.equal(failed.error?.code, status.FAILED_PRECONDITION);
  assert.equal(failed.error.details, "not today: é");
  assert.deepEqual(failed.trailers?.get("x-trailer"), ["of fail"]);
  const many = await Promise.all(Array.from({ length: 200 }, (_, at) => ask(client, `n${at}`)));
  assert.deepEqual(
    many.map(({ answer: one }) => one),
    Array.from({ length: 200 }, (_, at) => `n${at} `),
  );
});

test("streams run in either direction and in both at once", async (t) => {
  const { client } = await setUp(t);
  const parts: string[] = [];
  for await (const part of client.download("500")) parts.push(String(part));
  assert.deepEqual([parts.length, parts[0], parts[499]], [500, "part 0", "part 499"]);
  const joined = await new Promise<string>((resolve, reject) => {
    const call = client.upload((error, answer) => (error === null ? resolve(answer) : reject(error)));
    for (const part of ["a", "b", "c"]) call.write(part);
    call.end();
  });
  assert.equal(joined, "a+b+c");
  const chat = client.chat();
  for (const word of ["one", "two", "three"]) {
    chat.write(word);
    assert.deepEqual(await once(chat, "data"), [`re: ${word}`]);
  }
  chat.end();
  const [end] = (await once(chat, "status")) as [{ code: number }];
  assert.equal(end.code, status.OK);
});

test("a server that fails in the middle of a stream ends it with its own status, the client's side open or not", async (t) => {
  const { client } = await setUp(t);
  const chat = client.chat();
  const ended = new Promise<StatusObject>((resolve) => void chat.on("status", resolve));
  chat.on("error", () => undefined);
  chat.write("one");
  await once(chat, "data");
  chat.write("fail");
  const { code, details } = await ended;
  assert.deepEqual([code, details], [status.ABORTED, "as asked"]);
});

test("a call that is cancelled is cancelled at the server", async (t) => {
  const cancelled = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  const hangs: handleUnaryCall<string, string> = (call) => {
    call.on("cancelled", cancelled.resolve);
    arrived.resolve();
  };
  const server = new Server();
  server.addService(SERVICE, { ...HANDLERS, unary: hangs });
  t.after(() => server.forceShutdown());
  const port = await new Promise<number>((resolve) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (_error, bound) => resolve(bound));
  });
  const { client } = await setUp(t, { port });
  const failed = new Promise<ServiceError | null>((resolve) => {
    const call = client.unary("hello", new Metadata(), {}, resolve);
    void arrived.promise.then(() => call.cancel());
  });
  assert.equal((await failed)?.code, status.CANCELLED);
  await cancelled.promise;
});

test("the caller's deadline holds at the gateway: DEADLINE_EXCEEDED, without a client that gives up first", async (t) => {
  const { client, url } = await setUp(t);
  assert.equal((await ask(client, "hang", new Metadata(), Date.now() + 200)).error?.code, status.DEADLINE_EXCEEDED);
  const session = await connectHttp2(url);
  t.after(() => session.destroy());
  const head = { ":method": "POST", ":path": "/echo.Echo/Unary", ":authority": "a.test", te: "trailers" };
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0, 4]), Buffer.from("hang")]);
  const timed = { ...head, "content-type": "application/grpc", "grpc-timeout": "50m" };
  const { status: code, headers } = await sendHttp2(session, timed, { body: message });
  assert.deepEqual([code, headers["grpc-status"], headers["grpc-message"]], [200, "4", "deadline exceeded"]);
});

test("what the gateway says itself comes as a gRPC status", async (t) => {
  const { client } = await setUp(t, { port: await deadPort() });
  const { error } = await ask(client, "hello");
  assert.deepEqual([error?.code, error?.details], [status.UNAVAILABLE, "upstream call failed"]);
  const denied = await setUp(t, {
    policies: [
      routePolicy("deny", "echo", `  traffic: {authorization: {action: Deny, policy: {matchExpressions: ["true"]}}}`),
    ],
  });
  assert.equal((await ask(denied.client, "hello")).error?.code, status.PERMISSION_DENIED);
  const limited = await setUp(t, {
    policies: [routePolicy("limit", "echo", "  traffic: {rateLimit: {local: [{requests: 1, unit: Hours}]}}")],
  });
  assert.equal((await ask(limited.client, "one")).error, null);
  assert.equal((await ask(limited.client, "two")).error?.code, status.UNAVAILABLE);
});

const GRPC_ROUTE = `
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: echo}
spec:
  parentRefs: [{name: gw}]
  rules:
    - name: named
      matches: [{method: {service: echo.Echo, method: Unary}, headers: [{name: x-tenant, value: a}]}]
      filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-name, value: exact}]}}]
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: echo}]
    - name: pattern
      matches: [{method: {type: RegularExpression, service: "echo\\\\..*", method: "Un.*"}}]
      filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-name, value: regex}]}}]
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: echo, weight: 1}, {name: missing, port: 1, weight: 0}]
`;

test("a GRPCRoute matches by service, method and header, and takes policies on itself and on its rules", async (t) => {
  const policy = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: deny}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: GRPCRoute, name: echo, sectionName: named}]
  traffic: {authorization: {action: Deny, policy: {matchExpressions: ["'x-deny' in request.headers"]}}}
`;
  const objects = documents(GATEWAY, staticBackend("echo", await startServer(t)), GRPC_ROUTE, policy);
  const gateway = await startGateway(contextOf(t), objects);
  const client = connectTo(t, gateway.url());
  const tenant = new Metadata();
  tenant.set("x-tenant", "a");
  assert.equal((await ask(client, "hello", tenant)).answer, "hello exact");
  assert.equal((await ask(client, "hello")).answer, "hello regex");
  const [first] = await once(client.download("1"), "error").then((errors: unknown[]) => errors as ServiceError[]);
  assert.equal(first?.code, status.UNIMPLEMENTED, "a method that no rule takes");
  tenant.set("x-deny", "yes");
  assert.equal((await ask(client, "hello", tenant)).error?.code, status.PERMISSION_DENIED);
});
