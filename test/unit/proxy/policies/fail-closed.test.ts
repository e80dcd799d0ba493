import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { FailClosedSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { failClosed } from "../../../../src/proxy/policies/fail-closed.ts";
import { makeDeps, makeExchange, makeReply } from "../../../support/gateway/exchange.ts";

test("a refused policy closes its route with a fixed text and keeps the reason for the log", () => {
  const middleware = failClosed.compile(
    create(FailClosedSchema, { reason: "spec.traffic.cors: unknown field" }),
    makeDeps(),
  );
  assert.throws(
    () => middleware(makeExchange(), () => makeReply()),
    (error) => {
      assert.ok(error instanceof ProxyError);
      assert.equal(error.status, 500);
      assert.equal(error.text, "this route is closed by an invalid policy");
      assert.equal(error.detail, "spec.traffic.cors: unknown field");
      return true;
    },
  );
});
