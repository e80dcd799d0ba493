import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { AuthenticationMode, BasicAuthenticationSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../src/lib/errors.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { basicAuthentication } from "../../../../src/proxy/policies/basic-authentication.ts";
import type { PolicyDeps } from "../../../../src/proxy/policies/policy.ts";
import { makeDeps, makeExchange, makeReply, type TestExchange } from "../../../support/gateway/exchange.ts";
import { HTPASSWD } from "../../../support/fixtures/htpasswd.ts";

const SHA = "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=";

interface Guard {
  /** @returns "passed" or the code of the refusal */
  call(...headers: readonly string[]): Promise<string>;
  last(): TestExchange;
  /** How often a hash was computed. */
  asked(): number;
}

function guard(
  spec: Omit<MessageInitShape<typeof BasicAuthenticationSchema>, "$typeName" | "location"> = {},
  check?: PolicyDeps["passwords"]["check"],
): Guard {
  const real = makeDeps();
  let asked = 0;
  const passwords: PolicyDeps["passwords"] = {
    check(password, hash, asker) {
      asked++;
      return (check ?? real.passwords.check)(password, hash, asker);
    },
  };
  const users = [{ name: "ann", passwordHash: SHA }];
  const complete = { mode: AuthenticationMode.STRICT, realm: "Restricted", users, ...spec };
  const location = { location: { case: "header", value: { name: "Authorization", prefix: "Basic " } } } as const;
  const policy = basicAuthentication.compile(
    create(BasicAuthenticationSchema, { location, ...complete }),
    makeDeps({ passwords }),
  );
  let exchange = makeExchange();
  return {
    asked: () => asked,
    last: () => exchange,
    async call(...headers) {
      exchange = makeExchange({ headers });
      try {
        await policy(exchange, () => makeReply());
        return "passed";
      } catch (error) {
        assert.ok(error instanceof ProxyError);
        return error.code;
      }
    },
  };
}

function basic(user: string, password: string): [string, string] {
  return ["authorization", `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`];
}

test("a known password passes, is taken out and names the user for expressions", async () => {
  const one = guard();
  assert.equal(await one.call(...basic("ann", "secret"), "accept", "*/*"), "passed");
  assert.deepEqual(one.last().requestHeaders.raw, ["accept", "*/*"]);
  assert.equal(makeDeps().expression("basicAuth.username", "request").evaluate(one.last()), "ann");
});

test("every form of hash lets its password in", async () => {
  const users = HTPASSWD.filter(({ password }) => password.length < 100).map(({ hash, password }, at) => ({
    name: `user${at}`,
    passwordHash: hash,
    password,
  }));
  const all = guard({ users: users.map(({ name, passwordHash }) => ({ name, passwordHash })) });
  for (const { name, password } of users) {
    assert.equal(await all.call(...basic(name, password)), "passed", name);
    assert.equal(await all.call(...basic(name, `x${password}`)), "basic_invalid", name);
  }
});

test("a refusal names the realm, with quotes and backslashes escaped, and nothing else", async () => {
  const one = guard({ realm: String.raw`the "inner" \ ring` });
  assert.equal(await one.call(), "basic_missing");
  assert.equal(one.last().queuedHeaders.get("www-authenticate"), String.raw`Basic realm="the \"inner\" \\ ring"`);
  assert.equal(await one.call(...basic("ann", "wrong")), "basic_invalid");
  assert.throws(() => guard({ realm: "a\r\nb" }), ConfigError);
});

test("malformed credentials are wrong ones and cost nothing", async () => {
  const one = guard();
  const values = ["YW5u", "!!!!", "YW5uOnNlY3JldA==x", "a b", "YW5uOnNlY3JldA===", Buffer.alloc(2000, "x").toString()];
  for (const value of values) assert.equal(await one.call("authorization", `Basic ${value}`), "basic_invalid", value);
  const two = [...basic("ann", "secret"), ...basic("ann", "other")];
  assert.equal(await one.call(...two), "basic_invalid");
  assert.equal(one.asked(), 0);
  assert.equal(await one.call("authorization", "Bearer YW5uOnNlY3JldA=="), "basic_missing");
});

test("an unknown user costs what a known one costs, and nobody's password lets him in", async () => {
  const one = guard();
  assert.equal(await one.call(...basic("eve", "secret")), "basic_invalid");
  assert.equal(await one.call(...basic("", "secret")), "basic_invalid");
  assert.equal(await one.call(...basic("__proto__", "secret")), "basic_invalid");
  assert.equal(one.asked(), 3);
});

test("what was judged once is remembered, right or wrong, and asked once by many at a time", async () => {
  const one = guard();
  await Promise.all([one.call(...basic("ann", "secret")), one.call(...basic("ann", "secret"))]);
  for (let at = 0; at < 3; at++) {
    assert.equal(await one.call(...basic("ann", "secret")), "passed");
    assert.equal(await one.call(...basic("ann", "wrong")), "basic_invalid");
  }
  assert.equal(one.asked(), 2);
});

test("guesses do not drive out those who know their password", async () => {
  const one = guard({}, (password) => Promise.resolve(Buffer.from(password).equals(Buffer.from("secret"))));
  await one.call(...basic("ann", "secret"));
  for (let at = 0; at < 3000; at++) await one.call(...basic("ann", `guess ${at}`));
  const before = one.asked();
  assert.equal(await one.call(...basic("ann", "secret")), "passed");
  assert.equal(one.asked(), before);
});

test("when too many passwords wait nobody is let in, and nothing is remembered", async () => {
  let busy = true;
  const one = guard({}, () => Promise.resolve(busy ? "overloaded" : true));
  assert.equal(await one.call(...basic("ann", "secret")), "basic_overloaded");
  busy = false;
  assert.equal(await one.call(...basic("ann", "secret")), "passed");
});

test("optional lets a request without credentials pass, and refuses wrong ones", async () => {
  const one = guard({ mode: AuthenticationMode.OPTIONAL });
  assert.equal(await one.call(), "passed");
  assert.equal(await one.call(...basic("ann", "wrong")), "basic_invalid");
});

test("without users everybody is refused", async () => {
  const one = guard({ users: [] });
  assert.equal(await one.call(...basic("ann", "secret")), "basic_invalid");
});
