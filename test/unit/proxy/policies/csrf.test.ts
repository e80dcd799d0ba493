import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { CsrfSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../src/lib/errors.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { csrf } from "../../../../src/proxy/policies/csrf.ts";
import { makeDeps, makeExchange, makeReply } from "../../../support/gateway/exchange.ts";

const LISTED = ["https://app.example", "http://dev.example:8080", "chrome-extension://abcdef"];

function passes(headers: readonly string[], method = "POST", host = "shop.example"): boolean {
  const policy = csrf.compile(create(CsrfSchema, { additionalOrigins: LISTED }), makeDeps());
  try {
    void policy(makeExchange({ method, host, headers }), () => makeReply());
    return true;
  } catch (error) {
    assert.ok(error instanceof ProxyError && error.code === "csrf_rejected");
    return false;
  }
}

test("methods that change nothing pass from everywhere", () => {
  for (const method of ["GET", "HEAD", "OPTIONS"])
    assert.ok(passes(["sec-fetch-site", "cross-site", "origin", "https://evil.example"], method));
  for (const method of ["POST", "PUT", "PATCH", "DELETE", "get"])
    assert.ok(!passes(["sec-fetch-site", "cross-site", "origin", "https://evil.example"], method), method);
});

test("what a browser calls same-origin or its own passes, everything else only from a listed origin", () => {
  assert.ok(passes(["sec-fetch-site", "same-origin"]));
  assert.ok(passes(["sec-fetch-site", "none"]));
  for (const site of ["same-site", "cross-site", "", "SAME-ORIGIN"]) {
    assert.ok(!passes(["sec-fetch-site", site]), site);
    assert.ok(!passes(["sec-fetch-site", site, "origin", "http://shop.example"]), site);
    assert.ok(passes(["sec-fetch-site", site, "origin", "https://app.example"]), site);
  }
});

test("without fetch metadata no origin passes, the own one passes, a listed one passes", () => {
  assert.ok(passes([]));
  assert.ok(passes(["origin", "http://shop.example"]));
  assert.ok(passes(["origin", "http://shop.example:80"]));
  assert.ok(passes(["origin", "http://dev.example:8080"]));
  assert.ok(passes(["origin", "chrome-extension://abcdef"]));
  for (const origin of ["null", "https://shop.example", "http://shop.example:8080", "http://evil.example", ""])
    assert.ok(!passes(["origin", origin]), origin);
});

test("a host that cannot be read is nobody's own origin, nor is an origin that cannot be read", () => {
  for (const host of ["", "a b", "a/b", "user@shop.example", "[::1", "shop.example:port", "shop.example:123456"]) {
    assert.ok(passes([], "POST", host), "no browser says where it comes from");
    for (const origin of ["null", "", "http://", `http://${host}`, "http://shop.example", "about:blank"])
      assert.ok(!passes(["origin", origin], "POST", host), `${host} ${origin}`);
    assert.ok(!passes(["sec-fetch-site", "cross-site", "origin", "null"], "POST", host));
  }
});

test("a header that was smuggled in a second time does not help", () => {
  assert.ok(!passes(["sec-fetch-site", "cross-site", "sec-fetch-site", "same-origin"]));
  assert.ok(!passes(["origin", "http://evil.example", "origin", "http://shop.example"]));
  assert.ok(
    !passes(["sec-fetch-site", "cross-site", "origin", "https://app.example", "origin", "http://evil.example"]),
  );
});

test("the own origin is the host that the client asked for, whatever a policy made of it", () => {
  const policy = csrf.compile(create(CsrfSchema), makeDeps());
  const exchange = makeExchange({ method: "POST", host: "shop.example", headers: ["origin", "http://evil.example"] });
  exchange.host = "evil.example";
  assert.throws(() => policy(exchange, () => makeReply()), ProxyError);
});

test("a listed origin that is none is a configuration error", () => {
  for (const origin of ["null", "app.example", "https://a.example/path"])
    assert.throws(() => csrf.compile(create(CsrfSchema, { additionalOrigins: [origin] }), makeDeps()), ConfigError);
});
