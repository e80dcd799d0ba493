/** Token counts of Bedrock: the wrapped body, and answers of any shape. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import type { JsonObject } from "../../../../src/proxy/llm/shared/json.ts";
import { tokenCount } from "../../../../src/proxy/llm/providers/bedrock/token-count.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

const CONTEXT = { request: {}, model: "m", headers: new HeaderList() };

test("the body is wrapped without its model, with a limit and the version", () => {
  const messages = [{ role: "user", content: "hällo" }];
  const printed = tokenCount.printRequest({ model: "m", stream: true, messages, system: "s" }, "m");
  const { body } = (printed["input"] as { invokeModel: { body: string } }).invokeModel;
  assert.deepEqual(JSON.parse(Buffer.from(body, "base64").toString()), {
    messages,
    system: "s",
    anthropic_version: "bedrock-2023-05-31",
    max_tokens: 1,
  });
});

test("any answer is a count or cannot be used", () => {
  assert.deepEqual(tokenCount.readAnswer({ inputTokens: 7 }, CONTEXT), { input_tokens: 7 });
  assertProperty(
    fc.property(fc.dictionary(fc.constantFrom("inputTokens", "x"), fc.jsonValue()), (answer) => {
      try {
        tokenCount.readAnswer(answer as JsonObject, CONTEXT);
      } catch (error) {
        assert.ok(error instanceof ProxyError && error.code === "llm_response_invalid");
      }
    }),
  );
});
