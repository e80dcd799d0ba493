import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { HostRewriteSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { hostRewrite } from "../../../../src/proxy/policies/host-rewrite.ts";
import { makeDeps, makeExchange, makeReply } from "../../../support/gateway/exchange.ts";

for (const [auto, choice] of [
  [true, "auto"],
  [false, "keep"],
] as const)
  test(`the mode ${auto ? "Auto" : "None"} chooses the host of the ${auto ? "destination" : "client"}`, () => {
    const exchange = makeExchange({ host: "shop.example" });
    const reply = makeReply();
    const policy = hostRewrite.compile(create(HostRewriteSchema, { auto }), makeDeps());
    assert.equal(
      policy(exchange, () => {
        assert.equal(exchange.hostChoice, choice, "the choice is made before the next policy runs");
        return reply;
      }),
      reply,
    );
    assert.equal(exchange.host, "shop.example", "later policies still see the host that the client named");
  });
