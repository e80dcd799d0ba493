import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ProcessingResponseSchema,
  type ProcessingRequest,
} from "../../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import {
  BodyMode,
  ExtProcChoiceSchema,
  ExtProcSchema,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../../src/lib/errors.ts";
import type { Callout, CalloutSink } from "../../../../../src/proxy/callouts/callout.ts";
import { CalloutError } from "../../../../../src/proxy/callouts/callout.ts";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import type { Body } from "../../../../../src/proxy/exchange/body.ts";
import type { Reply } from "../../../../../src/proxy/exchange/exchange.ts";
import { extProc } from "../../../../../src/proxy/policies/ext-proc/ext-proc.ts";
import {
  ChunkStream,
  makeDeps,
  makeExchange,
  makeReply,
  readAll,
  type TestExchange,
} from "../../../../support/gateway/exchange.ts";
import { outline, pass } from "../../../../support/servers/proc-server.ts";

type Answer = MessageInitShape<typeof ProcessingResponseSchema>;
type Decide = (message: ProcessingRequest, sink: CalloutSink<never>) => Answer | undefined;

interface Parts {
  /** Of the request. */
  readonly body?: Body;
  /** Of the upstream. */
  readonly answer?: Reply;
  readonly connectedAfterMs?: number;
}

interface Run {
  readonly seen: ProcessingRequest[];
  readonly exchange: TestExchange;
  readonly reply: Promise<Reply>;
  readonly isEnded: () => boolean;
}

const DUPLEX = { headers: true, body: BodyMode.FULL_DUPLEX_STREAMED, trailers: true };
const NONE = { headers: true, body: BodyMode.NONE, trailers: true };

/** The policy past a processor in this process. */
function run(
  spec: MessageInitShape<typeof ExtProcSchema>,
  decide: Decide,
  { body = null, answer = makeReply(), connectedAfterMs }: Parts = {},
): Run {
  const seen: ProcessingRequest[] = [];
  let ended = false;
  const service = {
    path: "",
    invalidReason: undefined,
    stream(_method: unknown, sink: CalloutSink<unknown>) {
      return {
        send(message: ProcessingRequest) {
          seen.push(message);
          queueMicrotask(() => {
            const said = decide(message, sink as CalloutSink<never>);
            if (said !== undefined) sink.message(create(ProcessingResponseSchema, said));
          });
          return true;
        },
        connected: () => (connectedAfterMs === undefined ? Promise.resolve() : delay(connectedAfterMs)),
        pause: () => undefined,
        resume: () => undefined,
        end: () => (ended = true),
        cancel: () => (ended = true),
      };
    },
  };
  // Only `stream` is ever called.
  const deps = makeDeps({ callout: () => service as unknown as Callout });
  const middleware = extProc.compile(create(ExtProcChoiceSchema, { branches: [{ extProc: spec }] }), deps);
  const exchange = makeExchange({ method: "POST", body });
  return { seen, exchange, reply: Promise.resolve(middleware(exchange, () => answer)), isEnded: () => ended };
}

test("pieces go to the processor as they come, and what it makes of them goes on with the trailers", async () => {
  const source = new ChunkStream(["one", "two"], ["x-t", "1"]);
  const { seen, exchange, reply, isEnded } = run(
    { request: DUPLEX, response: NONE },
    (message) => pass(message, true),
    {
      body: source,
    },
  );
  await reply;
  assert.equal((await readAll(exchange.requestBody)).toString(), "onetwo");
  assert.deepEqual(outline(seen), [
    "requestHeaders",
    "requestBody one",
    "requestBody two",
    "requestTrailers",
    "responseHeaders",
  ]);
  assert.equal(isEnded(), true);
});

test("an answer that the data plane made itself is not shown", async () => {
  const { seen, reply } = run({ request: NONE, response: DUPLEX }, (message) => pass(message), {
    answer: makeReply({ upstream: false, body: Buffer.from("x") }),
  });
  await reply;
  assert.deepEqual(outline(seen), ["requestHeaders"]);
});

test("replaced headers may bring a body along, and the rest of that side is not shown", async () => {
  const source = new ChunkStream(["original"]);
  const replace: Decide = (message) => {
    if (message.request.case !== "requestHeaders") return pass(message, true);
    const bodyMutation = { mutation: { case: "body", value: Buffer.from("new") } } as const;
    return { response: { case: "requestHeaders", value: { response: { status: 1, bodyMutation } } } };
  };
  const buffered = { headers: true, body: BodyMode.BUFFERED, trailers: true };
  const { seen, exchange, reply } = run({ request: buffered, response: NONE }, replace, { body: source });
  await reply;
  assert.equal((await readAll(exchange.requestBody)).toString(), "new");
  assert.equal(source.destroyed, true);
  assert.deepEqual(outline(seen), ["requestHeaders", "responseHeaders"]);
});

test("a stream that breaks before a byte was handed over lets the body pass when it fails open", async () => {
  const breaks: Decide = (_message, sink) => {
    sink.close(new CalloutError("broken"));
    return undefined;
  };
  const open = { failOpen: true, response: NONE };
  const buffered = { headers: true, body: BodyMode.BUFFERED, trailers: true };
  const first = run({ ...open, request: buffered }, breaks, { body: new ChunkStream(["a", "b"]) });
  assert.equal((await first.reply).status, 200);
  assert.equal((await readAll(first.exchange.requestBody)).toString(), "ab");
  const closed = run({ request: buffered, response: NONE }, breaks, { body: new ChunkStream(["a"]) });
  await assert.rejects(closed.reply, (error) => error instanceof ProxyError && error.status === 500);
});

test("a streamed answer of another kind, and metadata of no answer, are failures", async () => {
  const wrong: Decide = (message) =>
    message.request.case === "requestBody" ? { response: { case: "requestBody", value: {} } } : pass(message);
  const { exchange, reply } = run({ request: DUPLEX, response: NONE }, wrong, { body: new ChunkStream(["a"]) });
  await reply.catch(() => undefined);
  await assert.rejects(readAll(exchange.requestBody), CalloutError);
  const silent = run({ request: NONE, response: NONE }, () => ({ dynamicMetadata: { a: 1 } }));
  await assert.rejects(silent.reply, (error) => error instanceof ProxyError && error.code === "ext_proc_failed");
});

test("a processor without modes is a configuration error", () => {
  assert.throws(() => run({ request: NONE }, () => undefined), ConfigError);
  assert.throws(() => run({ request: NONE, response: { headers: true } }, () => undefined), ConfigError);
});

test("a stream that fails while its connection is still waited for fails the request and nothing else", async () => {
  const breaks: Decide = (_message, sink) => {
    sink.close(new CalloutError("refused"));
    return undefined;
  };
  const later = { connectedAfterMs: 20 };
  const closed = run({ request: DUPLEX, response: NONE }, breaks, { body: new ChunkStream(["a"]), ...later });
  await assert.rejects(closed.reply, (error) => error instanceof ProxyError && error.status === 500);
  const open = run({ request: DUPLEX, response: NONE, failOpen: true }, breaks, {
    body: new ChunkStream(["a"]),
    ...later,
  });
  assert.equal((await open.reply).status, 200);
  assert.equal((await readAll(open.exchange.requestBody)).toString(), "a");
});
