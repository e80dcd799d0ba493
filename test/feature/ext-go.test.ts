/** External servers that others wrote: Go programs on the public control-plane library. */
import assert from "node:assert/strict";
import { echoed, startEcho } from "../support/echo.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../support/gateway.ts";
import { call } from "../support/http.ts";
import { prove } from "../support/prove.ts";
import { startExtServer } from "../testbed/services.ts";

prove(
  ["GwPolicy spec.traffic.extAuth.url", "GwPolicy spec.traffic.extAuth.forwardBody.maxSize"],
  "an authorization server in Go reads our checks and is obeyed",
  async (context) => {
    const port = await startExtServer(context);
    const echo = await startEcho(context);
    const auth = `{url: "http://127.0.0.1:${port}", grpc: {}, forwardBody: {maxSize: 1Ki}}`;
    const gateway = await startGateway(
      context,
      documents(
        GATEWAY,
        staticBackend("web", echo.port),
        route("web", "web"),
        routePolicy("auth", "web", `  traffic: {extAuth: ${auth}}`),
        routePolicy(
          "show",
          "web",
          `  traffic: {transformation: {request: {set: [{name: x-user, value: extauthz.user}]}}}`,
        ),
      ),
    );
    const passed = await call(`${gateway.url()}/a?b=c`, {
      method: "POST",
      body: "hello",
      headers: { "x-secret": "s", "x-go-seen": "forged" },
    });
    assert.equal(passed.status, 200);
    assert.equal(passed.headers["x-go-checked"], "yes");
    const { url, headers, body } = echoed(passed.body);
    assert.equal(url, "/a?b=c&checked=by%20go");
    assert.equal(headers["x-go-seen"], "POST /a?b=c from 127.0.0.1, 5 bytes");
    assert.equal(headers["x-user"], "gopher");
    assert.equal(headers["x-secret"], undefined);
    assert.equal(body, "hello");
    const denied = await call(gateway.url(), { headers: { "x-deny": "too many" } });
    assert.deepEqual(
      [denied.status, denied.body, denied.headers["x-go-denied"]],
      [429, "denied: too many", "too many"],
    );
  },
);
