import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { HeaderModifiersSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { headerModifiers } from "../../../../src/proxy/policies/header-modifiers.ts";
import { makeDeps, makeExchange, makeReply } from "../../../support/gateway/exchange.ts";

const CHANGE = {
  set: [{ name: "X-Set", value: "new" }],
  add: [
    { name: "X-Add", value: "2" },
    { name: "X-Gone", value: "3" },
  ],
  remove: ["X-Gone"],
};

test("request headers are set, added and then removed", () => {
  const middleware = headerModifiers.compile(create(HeaderModifiersSchema, { request: CHANGE }), makeDeps());
  const exchange = makeExchange({ headers: ["x-set", "a", "x-set", "b", "X-Add", "1", "x-gone", "1"] });
  void middleware(exchange, () => makeReply());
  assert.deepEqual(exchange.requestHeaders.raw, ["x-set", "new", "X-Add", "1", "X-Add", "2"]);
});

test("response headers are edited whether the answer comes at once or later", async () => {
  const middleware = headerModifiers.compile(create(HeaderModifiersSchema, { response: CHANGE }), makeDeps());
  for (const next of [
    (reply: ReturnType<typeof makeReply>) => reply,
    async (reply: ReturnType<typeof makeReply>) => reply,
  ]) {
    const exchange = makeExchange({ headers: ["x-gone", "1"] });
    const reply = await middleware(exchange, () => next(makeReply({ headers: HeaderList.of({ "x-gone": "1" }) })));
    assert.deepEqual(reply.headers.raw, ["X-Set", "new", "X-Add", "2"]);
    assert.deepEqual(exchange.requestHeaders.raw, ["x-gone", "1"]);
  }
});

test("setting Host changes the authority that is sent", () => {
  const request = { set: [{ name: "Host", value: "other.test" }] };
  const exchange = makeExchange({ host: "example.test", headers: ["Host", "example.test"] });
  void headerModifiers.compile(create(HeaderModifiersSchema, { request }), makeDeps())(exchange, () => makeReply());
  assert.equal(exchange.host, "other.test");
  assert.deepEqual(exchange.requestHeaders.raw, ["Host", "other.test"]);
});
