/** External servers that others wrote: Go programs on the public control-plane library. */
import assert from "node:assert/strict";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  startWeb,
  staticBackend,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";
import { startExtServer } from "../../testbed/services.ts";

prove(
  ["GwPolicy spec.traffic.extAuth.url", "GwPolicy spec.traffic.extAuth.forwardBody.maxSize"],
  "an authorization server in Go reads our checks and is obeyed",
  async (context) => {
    const port = await startExtServer(context);
    const echo = await startEcho(context);
    const auth = `{url: "http://127.0.0.1:${port}", grpc: {}, forwardBody: {maxSize: 1Ki}}`;
    const gateway = await startWeb(
      context,
      echo.port,
      routePolicy("auth", "web", `  traffic: {extAuth: ${auth}}`),
      routePolicy(
        "show",
        "web",
        `  traffic: {transformation: {request: {set: [{name: x-user, value: extauthz.user}]}}}`,
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

prove(
  [
    "GwPolicy spec.traffic.extProc.url",
    "GwPolicy spec.traffic.extProc.processingOptions.requestBodyMode",
    "GwPolicy spec.traffic.extProc.processingOptions.responseBodyMode",
  ],
  "a processor in Go reads our messages and is obeyed in every mode",
  async (context) => {
    const port = await startExtServer(context);
    const echo = await startEcho(context);
    const modes = ["None", "Buffered", "BufferedPartial", "FullDuplexStreamed"];
    const manifests = modes.map((mode) => {
      const options = `processingOptions: {requestBodyMode: ${mode}, responseBodyMode: ${mode}}`;
      const policy = `  traffic: {extProc: {url: "http://127.0.0.1:${port}", ${options}}}`;
      const name = mode.toLowerCase();
      return [route(name, "web", `/${name}`), routePolicy(name, name, policy)];
    });
    const gateway = await startGateway(
      context,
      documents(GATEWAY, staticBackend("web", echo.port), ...manifests.flat()),
    );
    for (const mode of modes) {
      const path = `/${mode.toLowerCase()}`;
      const answer = await call(gateway.url() + path, { method: "POST", body: "hello".repeat(30_000) });
      assert.equal(answer.status, 200, mode);
      assert.equal(answer.headers["x-go-response"], "200");
      const seen = echo.seen.at(-1);
      assert.equal(seen?.headers["x-go-request"], path);
      assert.equal(seen?.body, (mode === "None" ? "hello" : "HELLO").repeat(30_000));
      assert.equal(answer.body.includes("HEADERS"), mode !== "None");
      const atOnce = await call(gateway.url() + path, { headers: { "x-immediate": "1" } });
      assert.deepEqual([atOnce.status, atOnce.body, atOnce.headers["x-go-immediate"]], [409, "at once", "yes"]);
    }
  },
);
