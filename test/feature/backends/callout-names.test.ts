/** Names of services that policies ask over gRPC: looked up as those of any other upstream (ADR 8). */
import assert from "node:assert/strict";
import { startAuthServer } from "../../support/servers/auth-server.ts";
import { startDnsServer, useDnsServer } from "../../support/servers/dns-server.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { routePolicy, startWeb } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";

prove(
  [],
  "a gRPC service is found by the name servers that were set, and looked up again until it is",
  async (context) => {
    const names = await startDnsServer(context);
    useDnsServer(context, names);
    const auth = await startAuthServer(context);
    const echo = await startEcho(context);
    const decides = `  traffic: {extAuth: {url: "http://auth.test:${auth.port}", grpc: {}}}`;
    const gateway = await startWeb(context, echo.port, routePolicy("auth", "web", decides));
    // Nobody knows the name yet: the policy refuses.
    assert.equal((await call(gateway.url())).status, 403);
    names.zone.set("auth.test", { addresses: ["127.0.0.1"], ttl: 60 });
    let status = 0;
    while (status !== 200) ({ status } = await call(gateway.url()));
    assert.ok(names.asked.includes("auth.test"));
    assert.equal(auth.seen.length, 1);
  },
);
