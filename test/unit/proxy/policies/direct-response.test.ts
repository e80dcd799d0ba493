import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { DirectResponseChoiceSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../src/lib/errors.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import type { Reply } from "../../../../src/proxy/exchange/exchange.ts";
import { directResponse } from "../../../../src/proxy/policies/direct-response.ts";
import { makeDeps, makeExchange, makeReply, readAll } from "../../../support/gateway/exchange.ts";

type Branches = NonNullable<MessageInitShape<typeof DirectResponseChoiceSchema>["branches"]>;
const UPSTREAM = makeReply();

async function answer(branches: Branches, target = "/a"): Promise<Reply> {
  const spec = create(DirectResponseChoiceSchema, { branches });
  return directResponse.compile(spec, makeDeps())(makeExchange({ target }), () => UPSTREAM);
}

test("a fixed answer is given with its status, headers and body", async () => {
  const headers = [{ name: "x-path", expression: "request.path" }];
  const reply = await answer([{ response: { status: 418, body: "short and stout", headers } }]);
  assert.equal(reply.status, 418);
  assert.equal(reply.upstream, false);
  assert.deepEqual(reply.headers.raw, ["x-path", "/a"]);
  assert.equal((await readAll(reply.body)).toString(), "short and stout");
});

test("a computed body is text as it is and JSON for everything else", async () => {
  const body = async (bodyExpression: string): Promise<string> =>
    (await readAll((await answer([{ response: { status: 200, bodyExpression } }])).body)).toString();
  assert.equal(await body('"at " + request.path'), "at /a");
  assert.equal(await body('{"path": request.path, "n": [1, 2.5, null]}'), '{"path":"/a","n":[1,2.5,null]}');
});

test("a body that fails is a 500 and a header that fails is left out", async () => {
  await assert.rejects(answer([{ response: { status: 200, bodyExpression: "jwt.sub" } }]), (error) => {
    return error instanceof ProxyError && error.code === "expression_failed" && error.status === 500;
  });
  const headers = [
    { name: "x-bad", expression: "jwt.sub" },
    { name: "x-split", expression: '"a\\r\\nset-cookie: x=1"' },
  ];
  const reply = await answer([{ response: { status: 200, headers } }]);
  assert.deepEqual(reply.headers.raw, []);
});

test("the first branch that holds answers, and none lets the request go on", async () => {
  const branches = [
    { condition: 'request.path == "/a"', response: { status: 201 } },
    { condition: "jwt.sub == 1", response: { status: 202 } },
    { condition: 'request.path.startsWith("/b")', response: { status: 203 } },
  ];
  assert.equal((await answer(branches, "/a")).status, 201);
  assert.equal((await answer(branches, "/b")).status, 203);
  assert.equal(await answer(branches, "/c"), UPSTREAM);
});

test("a branch without a response is a configuration error", async () => {
  await assert.rejects(answer([{ condition: "true" }]), ConfigError);
});
