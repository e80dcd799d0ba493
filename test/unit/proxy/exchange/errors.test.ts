import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { PROXY_ERRORS, ProxyError, type ProxyErrorCode } from "../../../../src/proxy/exchange/errors.ts";
import { printError } from "../../../../src/proxy/exchange/print-error.ts";

/** By the status of HTTP. */
const GRPC: Readonly<Record<number, number>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  429: 14,
  502: 14,
  503: 14,
  504: 14,
};
const UNKNOWN = 2;
/** What says more than its status does. */
const OWN: Readonly<Partial<Record<ProxyErrorCode, number>>> = {
  backend_invalid: 14,
  grpc_timeout: 4,
};
/** The errors of the reference page, with what one status can say. */
const TEXTS: readonly (readonly [number, ...string[]])[] = [
  [400, "invalid request"],
  [401, "authentication failure: no bearer token found", "api key authentication failure: no API Key found"],
  [403, "authorization failed", "external authorization failed", "CSRF validation failed"],
  [404, "bind not found", "listener not found", "route not found"],
  [405, "method not allowed"],
  [421, "misdirected request"],
  [429, "rate limit exceeded"],
  [431, ""],
  [500, "no valid backends", "invalid backend type", "ext_proc failed", "rate limit failed"],
  [502, "request upgrade failed"],
  [503, "no healthy backends", "upstream call failed", "processing failed"],
  [504, "request timeout", "upstream call timeout"],
];

// Every key of the table is a code.
const CODES = Object.keys(PROXY_ERRORS) as ProxyErrorCode[];

test("gRPC is told what the status of HTTP stands for", () => {
  for (const code of CODES) {
    const { status, grpc } = PROXY_ERRORS[code];
    assert.equal(grpc, OWN[code] ?? GRPC[status] ?? UNKNOWN, code);
  }
});

test("clients get the sentences that are promised", () => {
  const said = CODES.map((code) => `${PROXY_ERRORS[code].status} ${PROXY_ERRORS[code].text}`);
  for (const [status, ...texts] of TEXTS)
    for (const text of texts) assert.ok(said.includes(`${status} ${text}`), `${status} ${text}`);
});

test("what failed inside is in no answer", () => {
  const error = new ProxyError("upstream_unreachable", {
    detail: "connect ECONNREFUSED 10.1.2.3:443",
    cause: new Error("10.1.2.3"),
  });
  for (const grpc of [false, true]) {
    const { headers, body } = printError(error, grpc);
    assert.doesNotMatch(`${headers.raw.join()} ${String(body)}`, /10\.1\.2\.3|ECONN/);
  }
});

test("a refusal of gRPC is trailers alone, with its message in percent form", () => {
  const { status, headers, body } = printError(new ProxyError("rate_limited", { text: "50% of ü" }), true);
  assert.deepEqual([status, body], [200, null]);
  assert.deepEqual(
    headers,
    new HeaderList(["content-type", "application/grpc", "grpc-status", "14", "grpc-message", "50%25 of %C3%BC"]),
  );
});
