/** traffic.csrf through real sockets. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import { routePolicy, startWeb } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";

prove(
  "GwPolicy spec.traffic.csrf.additionalOrigins[]",
  "a change that a page of another site asks for is refused unless its origin is listed",
  async (context) => {
    const echo = await startEcho(context);
    const policy = routePolicy("pages", "web", "  traffic: {csrf: {additionalOrigins: [https://app.example]}}");
    const gateway = await startWeb(context, echo.port, policy);
    const post = (headers: Readonly<Record<string, string>>) => call(gateway.url(), { method: "POST", headers });
    const refused = await post({ origin: "https://evil.test", "sec-fetch-site": "cross-site" });
    assert.equal(refused.status, 403);
    assert.equal(refused.body, "CSRF validation failed");
    assert.equal((await post({ origin: "https://evil.test" })).status, 403);
    assert.equal((await post({ origin: gateway.url() })).status, 200);
    assert.equal((await post({ origin: "https://app.example", "sec-fetch-site": "cross-site" })).status, 200);
    assert.equal((await post({})).status, 200);
    assert.equal((await call(gateway.url(), { headers: { "sec-fetch-site": "cross-site" } })).status, 200);
    assert.equal(echo.seen.length, 4);
  },
);
