import assert from "node:assert/strict";
import fc from "fast-check";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { before, test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { exportSPKI, importJWK, SignJWT } from "jose";

import {
  AuthenticationMode,
  JwtAuthenticationSchema,
  type JwtProviderSchema,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import { jwtAuthentication } from "../../../../../src/proxy/policies/jwt-authentication/jwt-authentication.ts";
import type { Middleware } from "../../../../../src/proxy/policies/policy.ts";
import {
  type ExchangeParts,
  makeDeps,
  makeExchange,
  makeReply,
  type TestExchange,
} from "../../../../support/gateway/exchange.ts";
import { createIssuer, nowSeconds, type Issuer } from "../../../../support/fixtures/tokens.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

type Spec = MessageInitShape<typeof JwtAuthenticationSchema>;
type Provider = MessageInitShape<typeof JwtProviderSchema>;

let issuer: Issuer;
before(async () => {
  issuer = await createIssuer("https://issuer.test");
});

function providerOf({ name, jwk }: Issuer, more: Provider = {}): Provider {
  const keys = [{ id: jwk.kid ?? "", algorithm: jwk.alg ?? "", jwkJson: JSON.stringify(jwk) }];
  return { issuer: name, keys, requiredClaims: ["exp"], ...more };
}

function compile(spec: Spec = {}): Middleware {
  const complete = { mode: AuthenticationMode.STRICT, providers: [providerOf(issuer)], ...spec };
  return jwtAuthentication.compile(create(JwtAuthenticationSchema, complete), makeDeps());
}

async function pass(policy: Middleware, token: string, parts: ExchangeParts = {}): Promise<TestExchange> {
  const exchange = makeExchange({ headers: ["Authorization", `Bearer ${token}`], ...parts });
  const reply = makeReply();
  assert.equal(await policy(exchange, () => reply), reply);
  return exchange;
}

async function refused(policy: Middleware, token: string | undefined, parts: ExchangeParts = {}): Promise<string> {
  const headers = token === undefined ? [] : ["authorization", `Bearer ${token}`];
  const exchange = makeExchange({ headers, ...parts });
  try {
    await policy(exchange, () => makeReply());
  } catch (error) {
    assert.ok(error instanceof ProxyError, String(error));
    assert.equal(error.status, 401);
    assert.ok(exchange.queuedHeaders.get("www-authenticate")?.startsWith("Bearer"));
    assert.ok(
      token === undefined || token.length < 20 || !JSON.stringify({ ...error, cause: error.cause }).includes(token),
    );
    assert.equal(exchange.roots.has("jwt"), false);
    return error.code;
  }
  return "passed";
}

function encode(value: unknown): string {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
}

test("a good token is taken out and its claims are there for expressions, the token itself redacted", async () => {
  const token = await issuer.token({ group: "eng", __proto__x: 1 });
  const exchange = await pass(compile(), token, {
    headers: ["Authorization", `Bearer ${token}`, "Accept", "*/*"],
  });
  assert.deepEqual(exchange.requestHeaders.raw, ["Accept", "*/*"]);
  const { expression } = makeDeps();
  assert.equal(expression("jwt.group", "request").evaluate(exchange), "eng");
  assert.equal(expression("jwt.sub", "request").evaluate(exchange), "ann");
  assert.equal(expression("jwt.rawToken", "request").evaluate(exchange), "<redacted>");
  assert.equal(expression("jwt.rawToken.unredacted()", "request").evaluate(exchange), token);
  assert.ok(!JSON.stringify(exchange.root("jwt")).includes(token));
});

test("a token that was seen passes at once, and a claim named like the raw token does not replace it", async () => {
  const policy = compile();
  const token = await issuer.token({ rawToken: "forged" });
  await pass(policy, token);
  const exchange = makeExchange({ headers: ["authorization", `Bearer ${token}`] });
  const reply = makeReply();
  assert.equal(
    policy(exchange, () => reply),
    reply,
    "no promise",
  );
  assert.equal(makeDeps().expression("jwt.rawToken.unredacted()", "request").evaluate(exchange), token);
});

test("a seen token stops passing when it expires", async (t) => {
  const policy = compile();
  // The clock stands still between the steps, so that none of them depends on how long another takes.
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const token = await issuer.token({ exp: nowSeconds() + 10 });
  await pass(policy, token);
  t.mock.timers.setTime(Date.now() + 69_000);
  await pass(policy, token);
  t.mock.timers.setTime(Date.now() + 3_000);
  assert.equal(await refused(policy, token), "jwt_invalid");
});

test("each family of keys is used with its own algorithms", async () => {
  for (const alg of ["RS256", "RS512", "PS256", "PS384", "ES256", "ES384", "EdDSA"]) {
    const one = await createIssuer("https://issuer.test", { alg });
    await pass(compile({ providers: [providerOf(one)] }), await one.token());
  }
});

test("a key that names its algorithm is used with that one alone", async () => {
  const one = await createIssuer("https://issuer.test", { alg: "RS256" });
  const provider = providerOf({ ...one, jwk: { ...one.jwk, alg: "PS256" } });
  assert.equal(await refused(compile({ providers: [provider] }), await one.token()), "jwt_invalid");
});

test("no signature, a symmetric one over the public key, and a key that the token brings along are refused", async () => {
  const rsa = await createIssuer("https://issuer.test", { alg: "RS256" });
  const policy = compile({ providers: [providerOf(rsa)] });
  const claims = { iss: rsa.name, exp: nowSeconds() + 3600 };
  const none = encode({ alg: "none", kid: "key-1" });
  for (const signature of ["", "x", encode("x")])
    assert.equal(await refused(policy, `${none}.${encode(claims)}.${signature}`), "jwt_invalid");
  const publicKey = await importJWK(rsa.jwk, "RS256", { extractable: true });
  const secrets = [JSON.stringify(rsa.jwk), rsa.jwk.n ?? "", ""];
  if (!(publicKey instanceof Uint8Array)) secrets.push(await exportSPKI(publicKey));
  const symmetric = `${encode({ alg: "HS256", kid: "key-1" })}.${encode(claims)}`;
  for (const secret of secrets) {
    const signature = createHmac("sha256", secret).update(symmetric).digest("base64url");
    assert.equal(await refused(policy, `${symmetric}.${signature}`), "jwt_invalid");
  }
  const mallory = await createIssuer(rsa.name, { alg: "RS256" });
  for (const header of [{ jwk: mallory.jwk }, { jku: "http://127.0.0.1/keys" }, { x5c: ["AAAA"] }])
    assert.equal(await refused(policy, await mallory.token({}, header)), "jwt_invalid");
});

test("a signature with an algorithm of another family, or an extension that must be understood, is refused", async () => {
  const policy = compile();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const claims = encode({ iss: issuer.name, exp: nowSeconds() + 60 });
  for (const header of [
    { alg: "ES384" },
    { alg: "RS256" },
    { alg: ["ES256"] },
    { alg: "ES256", crit: ["b64"], b64: false },
  ]) {
    const input = `${encode({ kid: "key-1", ...header })}.${claims}`;
    const signature = sign("sha256", Buffer.from(input), { key: privateKey, dsaEncoding: "ieee-p1363" });
    assert.equal(await refused(policy, `${input}.${signature.toString("base64url")}`), "jwt_invalid");
  }
  const own = new SignJWT({ iss: issuer.name, exp: nowSeconds() + 60 });
  const critical = await own
    .setProtectedHeader({ alg: "ES256", kid: "key-1", crit: ["x"], x: 1 })
    .sign(issuer.privateKey, { crit: { x: true } });
  assert.equal(await refused(policy, critical), "jwt_invalid");
});

test("claims are checked: issuer, times with a minute's grace, audience, and those that must be there", async () => {
  const policy = compile();
  const now = nowSeconds();
  assert.equal(await refused(policy, await issuer.token({ iss: "https://other.test" })), "jwt_invalid");
  assert.equal(await refused(policy, await issuer.token({ iss: [issuer.name] as never })), "jwt_invalid");
  assert.equal(await refused(policy, await issuer.token({ exp: now - 90 })), "jwt_invalid");
  assert.equal(await refused(policy, await issuer.token({ exp: String(now + 90) as never })), "jwt_invalid");
  await pass(policy, await issuer.token({ exp: now - 30 }));
  assert.equal(await refused(policy, await issuer.token({ nbf: now + 90 })), "jwt_invalid");
  await pass(policy, await issuer.token({ nbf: now + 30 }));
  assert.equal(await refused(policy, await issuer.token({ exp: undefined as never })), "jwt_invalid");

  const audiences = compile({ providers: [providerOf(issuer, { audiences: ["a", "b"] })] });
  await pass(audiences, await issuer.token({ aud: "b" }));
  await pass(audiences, await issuer.token({ aud: ["x", "a"] }));
  assert.equal(await refused(audiences, await issuer.token({ aud: "c" })), "jwt_invalid");
  assert.equal(await refused(audiences, await issuer.token()), "jwt_invalid");

  const none = compile({ providers: [providerOf(issuer, { requiredClaims: [] })] });
  await pass(none, await issuer.token({ exp: undefined as never }));
  const all = compile({ providers: [providerOf(issuer, { requiredClaims: ["exp", "nbf", "aud", "sub"] })] });
  await pass(all, await issuer.token({ nbf: now, aud: "x" }));
  assert.equal(await refused(all, await issuer.token({ nbf: now })), "jwt_invalid");
});

test("what is wrong with a token is said without naming anything of it", async () => {
  const policy = compile();
  const good = await issuer.token();
  assert.equal(await refused(policy, undefined), "jwt_missing");
  for (const token of ["x", "a.b", "a.b.c.d", `${encode("[]")}.e30.x`, `${encode("{")}.e30.x`, "..", "=.=.="])
    assert.equal(await refused(policy, token), "jwt_header_malformed", token);
  assert.equal(await refused(policy, `${encode({ alg: "ES256" })}.e30.x`), "jwt_key_unnamed");
  assert.equal(await refused(policy, `${encode({ alg: "ES256", kid: 1 })}.e30.x`), "jwt_header_malformed");
  assert.equal(await refused(policy, `${encode({ alg: "ES256", kid: "key-2" })}.e30.x`), "jwt_key_unknown");
  assert.equal(await refused(policy, `${encode({ alg: "ES256", kid: "__proto__" })}.e30.x`), "jwt_key_unknown");
  assert.equal(await refused(policy, `${good.slice(0, -4)}AAAA`), "jwt_invalid");
  assert.equal(
    await refused(policy, good.replace(/\..*\./, `.${encode({ iss: issuer.name, admin: true })}.`)),
    "jwt_invalid",
  );
});

test("a giant token, two tokens, and a token with a space or a comma in it are refused", async () => {
  const policy = compile();
  const token = await issuer.token();
  assert.equal(await refused(policy, await issuer.token({ blob: "x".repeat(20_000) })), "jwt_invalid");
  const deep = `${encode({ alg: "ES256", kid: "key-1" })}.${encode("[".repeat(10_000))}.x`;
  assert.equal(await refused(policy, deep), "jwt_invalid");
  const two = ["authorization", `Bearer ${token}`, "authorization", "Bearer other"];
  assert.equal(await refused(policy, undefined, { headers: two }), "jwt_invalid");
  for (const value of [`${token}, Bearer x`, `${token} x`]) assert.notEqual(await refused(policy, value), "passed");
});

test("of two providers that name their keys alike, the one that the token names is asked", async () => {
  const other = await createIssuer("https://other.test");
  const policy = compile({ providers: [providerOf(issuer), providerOf(other)] });
  await pass(policy, await other.token());
  await pass(policy, await issuer.token());
  assert.equal(await refused(policy, await other.token({ iss: issuer.name })), "jwt_invalid");
  const audiences = [providerOf(issuer, { audiences: ["a"] }), providerOf(issuer, { audiences: ["b"] })];
  await pass(compile({ providers: audiences }), await issuer.token({ aud: "b" }));
});

test("the modes: optional lets a missing token pass, permissive everything, and only a good token identifies", async () => {
  const bad = `${await issuer.token()}x`;
  const optional = compile({ mode: AuthenticationMode.OPTIONAL });
  assert.equal(await refused(optional, undefined), "passed");
  assert.equal(await refused(optional, bad), "jwt_invalid");
  const permissive = compile({ mode: AuthenticationMode.PERMISSIVE });
  const exchange = await pass(permissive, bad);
  assert.equal(exchange.roots.has("jwt"), false);
  assert.ok(exchange.requestHeaders.has("authorization"));
  assert.equal(await refused(permissive, undefined), "passed");
  assert.ok((await pass(permissive, await issuer.token())).roots.has("jwt"));
});

test("a token stays where it is when it is to be preserved", async () => {
  const token = await issuer.token();
  const exchange = await pass(compile({ preserveToken: true }), token);
  assert.equal(exchange.requestHeaders.get("authorization"), `Bearer ${token}`);
});

test("without a provider every token is refused, and a key that cannot be used costs only its own tokens", async () => {
  assert.equal(await refused(compile({ providers: [] }), await issuer.token()), "jwt_key_unknown");
  const { jwk } = await createIssuer("x", { alg: "RS256" });
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
  const weak = publicKey.export({ format: "jwk" });
  const unusable = [
    { id: "broken", jwkJson: JSON.stringify({ kty: "EC", crv: "P-256", x: "AA", y: "AA" }) },
    { id: "weak", jwkJson: JSON.stringify(weak) },
    { id: "secret", jwkJson: JSON.stringify({ kty: "oct", k: "c2VjcmV0" }) },
    { id: "wrong", jwkJson: JSON.stringify(jwk), algorithm: "HS256" },
  ];
  const keys = [...unusable, ...(providerOf(issuer).keys ?? [])];
  const policy = compile({ providers: [providerOf(issuer, { keys })] });
  await pass(policy, await issuer.token());
  for (const { id } of unusable)
    assert.equal(await refused(policy, await issuer.token({}, { kid: id })), "jwt_key_unknown", id);
});

test("nothing but the token itself passes: whatever is changed in it, and whatever is made up", async () => {
  const policy = compile();
  const token = await issuer.token();
  const [header = "", claims = "", signature = ""] = token.split(".");
  const changed = fc.record({ at: fc.nat(token.length - 1), by: fc.constantFrom(..."AZaz09-_.") }).map(({ at, by }) => {
    return token.slice(0, at) + by + token.slice(at + 1);
  });
  const part = fc.oneof(fc.constantFrom(header, claims, signature, ""), fc.json().map(encode), fc.base64String());
  const madeUp = fc.tuple(part, part, part).map((parts) => parts.join("."));
  await assertProperty(
    fc.asyncProperty(fc.oneof(changed, madeUp, fc.string()), async (candidate) => {
      // The last digit of base64url may hold bits that nothing reads: the same bytes are the same signature.
      const bytes = (text: string): string => Buffer.from(text.split(".")[2] ?? "", "base64url").toString("hex");
      const isSame = candidate.startsWith(`${header}.${claims}.`) && bytes(candidate) === bytes(token);
      assert.ok(isSame || (await refused(policy, candidate)) !== "passed", candidate);
    }),
    { numRuns: 300 },
  );
});
