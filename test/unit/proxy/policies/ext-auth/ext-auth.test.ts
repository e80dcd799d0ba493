import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  CheckResponseSchema,
  type CheckRequest,
} from "../../../../../generated/proto/envoy/service/auth/v3/external_auth_pb.ts";
import {
  ExtAuthCacheSchema,
  ExtAuthChoiceSchema,
  ExtAuthSchema,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Secret } from "../../../../../src/cel/values.ts";
import { ConfigError } from "../../../../../src/lib/errors.ts";
import { CalloutError, type Callout } from "../../../../../src/proxy/callouts/callout.ts";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import type { RoutedExchange } from "../../../../../src/proxy/exchange/exchange.ts";
import { extAuth } from "../../../../../src/proxy/policies/ext-auth/ext-auth.ts";
import { makeDeps, makeExchange, makeReply } from "../../../../support/gateway/exchange.ts";

type Spec = MessageInitShape<typeof ExtAuthSchema>;
type Answer = MessageInitShape<typeof CheckResponseSchema>;

const GRPC = { case: "grpc", value: {} } as const;

interface Asked {
  readonly requests: CheckRequest[];
  readonly run: (exchange: RoutedExchange) => Promise<number>;
}

/** The policy over a service that answers as told. @param answer thrown when it is an error */
function compile(spec: Spec, answer: Answer | Error, invalidReason?: string): Asked {
  const requests: CheckRequest[] = [];
  const service = {
    path: "",
    invalidReason,
    unary(_method: unknown, request: CheckRequest) {
      requests.push(request);
      if (answer instanceof Error) return Promise.reject(answer);
      return Promise.resolve(create(CheckResponseSchema, answer));
    },
  };
  // Only gRPC checks are made here, and they only ever call `unary`.
  const deps = makeDeps({ callout: () => service as unknown as Callout });
  const middleware = extAuth.compile(create(ExtAuthChoiceSchema, { branches: [{ extAuth: spec }] }), deps);
  return {
    requests,
    async run(exchange) {
      const reply = await middleware(exchange, () => makeReply());
      return reply.status;
    },
  };
}

test("the claims of a token are sent under both names that servers read, and the token itself is not", async () => {
  const { requests, run } = compile({ protocol: GRPC }, {});
  const exchange = makeExchange();
  exchange.setRoot("jwt", { sub: "alice", groups: ["a"], rawToken: new Secret("secret") });
  await run(exchange);
  const claims = { jwt_payload: { sub: "alice", groups: ["a"] } };
  assert.deepEqual(requests[0]?.attributes?.metadataContext?.filterMetadata, {
    "ext.filters.http.jwt_authn": claims,
    "envoy.filters.http.jwt_authn": claims,
  });
});

test("metadata of one's own replace the claims", async () => {
  const { requests, run } = compile({ protocol: { case: "grpc", value: { requestMetadata: {} } } }, {});
  const exchange = makeExchange();
  exchange.setRoot("jwt", { sub: "alice" });
  await run(exchange);
  assert.deepEqual(requests[0]?.attributes?.metadataContext?.filterMetadata, {});
});

test("repeated headers are joined, and bytes that are no UTF-8 do not break the message", async () => {
  const { requests, run } = compile({ protocol: GRPC }, {});
  const headers = ["Accept", "a", "accept", "b", "cookie", "x=1", "cookie", "y=2", "x-odd", "\xff\xfe", "x-utf", "Ã¼"];
  await run(makeExchange({ headers }));
  const seen = requests[0]?.attributes?.request?.http?.headers;
  assert.equal(seen?.["accept"], "a, b");
  assert.equal(seen?.["cookie"], "x=1; y=2");
  assert.equal(seen?.["x-odd"], "��");
  assert.equal(seen?.["x-utf"], "ü");
});

test("a body that is text is sent as text, any other as bytes", async () => {
  for (const [body, field] of [
    [Buffer.from("grün"), "body"],
    [Buffer.from([0xff, 0x00]), "rawBody"],
  ] as const) {
    const { requests, run } = compile({ protocol: GRPC, forwardBodyBytes: 10 }, {});
    await run(makeExchange({ method: "POST", body }));
    const http = requests[0]?.attributes?.request?.http;
    assert.deepEqual(Buffer.from(http?.[field] ?? ""), body);
    assert.equal(http?.size, BigInt(body.length));
  }
});

test("an answer that denies and yet speaks of what to do when it is allowed denies", async () => {
  const { run } = compile({ protocol: GRPC }, { status: { code: 5 }, httpResponse: { case: "okResponse", value: {} } });
  await assert.rejects(run(makeExchange()), isDenial);
});

test("a value that no header can hold removes what it was meant to replace", async () => {
  const option = (key: string, more: object) => ({ header: { key, rawValue: Buffer.from("a\nb") }, ...more });
  const headers = [option("x-set", {}), option("x-append", { append: true }), option("content-length", {})];
  const ok = { case: "okResponse", value: { headers } } as const;
  const { run } = compile({ protocol: GRPC }, { status: { code: 0 }, httpResponse: ok });
  const exchange = makeExchange({ headers: ["x-set", "forged", "x-append", "a", "content-length", "0"] });
  await run(exchange);
  assert.deepEqual(exchange.requestHeaders.raw, ["x-append", "a", "content-length", "0"]);
});

test("a status outside of HTTP's is read as 403", async () => {
  for (const code of [0, 99, 1_000_000]) {
    const denied = { case: "deniedResponse", value: { status: { code } } } as const;
    const { run } = compile({ protocol: GRPC }, { status: { code: 7 }, httpResponse: denied });
    assert.equal(await run(makeExchange()), 403);
  }
});

test("fail open covers a service that fails, not one that is wrongly configured", async () => {
  const open = { protocol: GRPC, failOpen: true };
  assert.equal(await compile(open, new CalloutError("down")).run(makeExchange()), 200);
  await assert.rejects(compile(open, new CalloutError("gone", { misconfigured: true })).run(makeExchange()), isDenial);
  await assert.rejects(compile(open, {}, "not found").run(makeExchange()), isDenial);
  await assert.rejects(compile({ protocol: GRPC }, new CalloutError("down")).run(makeExchange()), isDenial);
});

test("a request that is given up while the service thinks ends as it was given up", async () => {
  const late = new ProxyError("request_timeout");
  const { run } = compile({ protocol: GRPC, failOpen: true }, late);
  await assert.rejects(run(makeExchange()), late);
});

test("a service that could not be asked leaves nothing in the cache", async () => {
  const cache = create(ExtAuthCacheSchema, { key: ["1"], ttl: { case: "ttlMs", value: 1000n }, maxEntries: 9 });
  const { requests, run } = compile({ protocol: GRPC, failOpen: true, cache }, new CalloutError("unavailable"));
  for (let round = 0; round < 2; round++) assert.equal(await run(makeExchange()), 200);
  assert.equal(requests.length, 2);
});

test("a condition that does not compile refuses: to pass over it would open what its policy closes", async () => {
  const services: string[] = [];
  const deps = makeDeps({
    callout: (service) => {
      services.push(service?.invalidReason ?? "");
      return { path: "", invalidReason: "nobody" } as unknown as Callout; // never asked
    },
  });
  const branch = { condition: "request.path ==", extAuth: { protocol: GRPC } };
  const middleware = extAuth.compile(create(ExtAuthChoiceSchema, { branches: [branch] }), deps);
  assert.throws(
    () => middleware(makeExchange(), () => makeReply()),
    (error) => error instanceof ProxyError && error.code === "policy_refused",
  );
  const failing = { ...branch, condition: "request.headers['none'] == 'x'" };
  const chosen = extAuth.compile(create(ExtAuthChoiceSchema, { branches: [failing] }), deps);
  await assert.rejects(
    async () => chosen(makeExchange(), () => makeReply()),
    (error) => error instanceof ProxyError && error.code === "ext_auth_failed" && error.detail === "nobody",
  );
  assert.equal((await chosen(makeExchange({ headers: ["none", "y"] }), () => makeReply())).status, 200);
  assert.equal(services.length, 2);
});

test("a check without a protocol, or a cache without a time to live, is a configuration error", () => {
  assert.throws(() => compile({}, {}), ConfigError);
  assert.throws(() => compile({ protocol: GRPC, cache: { key: ["1"] } }, {}), ConfigError);
});

test("every plain value is a key of its own, and a list is none", async () => {
  const asksTwice = async (key: string): Promise<boolean> => {
    const cache = create(ExtAuthCacheSchema, { key: [key], ttl: { case: "ttlMs", value: 1000n }, maxEntries: 5 });
    const { requests, run } = compile({ protocol: GRPC, cache }, {});
    await run(makeExchange());
    await run(makeExchange());
    return requests.length === 2;
  };
  for (const key of ["1", '"1"', "1u", "1.5", "true", "null", 'b"1"']) assert.equal(await asksTwice(key), false, key);
  for (const key of ["[1]", '{"a": 1}', "1 / 0"]) assert.equal(await asksTwice(key), true, key);
  const mixed = 'request.method == "GET" ? "1" : 1';
  const cache = create(ExtAuthCacheSchema, { key: [mixed], ttl: { case: "ttlMs", value: 1000n }, maxEntries: 5 });
  const { requests, run } = compile({ protocol: GRPC, cache }, {});
  await run(makeExchange({ method: "GET" }));
  await run(makeExchange({ method: "PUT" }));
  assert.equal(requests.length, 2, "text and number never meet");
});

function isDenial(error: unknown): boolean {
  return error instanceof ProxyError && error.code === "ext_auth_failed" && error.status === 403;
}
