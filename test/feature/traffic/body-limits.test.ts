/** What traffic.buffer means to those who read bodies: its place in the order, and the limit that it sets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startEcho } from "../../support/servers/echo.ts";
import { withTraffic } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";

test("an answer is measured before a transformation replaces it", async (t) => {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const shorten = `transformation: {response: {body: '"short"'}}`;
  const gateway = await withTraffic(context, echo.port, `{buffer: {response: {maxBytes: 1000}}, ${shorten}}`);
  assert.equal((await call(gateway.url())).body, "short");
  // The text of the refusal is an answer of the gateway, and transformed like any other.
  assert.equal((await call(gateway.url(), { method: "POST", body: "x".repeat(1000) })).status, 502);
});

test("expressions see a request body up to the limit of the buffer, above and below the usual one", async (t) => {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const size = `transformation: {response: {set: [{name: x-size, value: 'string(size(request.body))'}]}}`;
  const gateway = await withTraffic(context, echo.port, `{buffer: {request: {maxBytes: 3Mi}}, ${size}}`);
  const sizeOf = async (bytes: number) => {
    const { status, headers } = await call(gateway.url(), { method: "POST", body: "x".repeat(bytes) });
    return [status, headers["x-size"]];
  };
  assert.deepEqual(await sizeOf(3 * 1024 * 1024), [200, String(3 * 1024 * 1024)]);
  assert.deepEqual(await sizeOf(3 * 1024 * 1024 + 1), [413, undefined]);
});
