/** JWKS on a real API server: fetched by the controller, kept in ConfigMaps, and not fetched again after a restart. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startCluster, startController, startPlane } from "../support/kubernetes/cluster.ts";
import { startEcho } from "../support/servers/echo.ts";
import { documents, GATEWAY, route, routePolicy, staticBackend } from "../support/gateway/gateway.ts";
import { call } from "../support/clients/http.ts";
import { startKeyServer } from "../support/servers/key-server.ts";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { eventually } from "../support/gateway/process.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { createIssuer, keySet } from "../support/fixtures/tokens.ts";

const NAME = "https://issuer.test";

test("the controller fetches a JWKS once, keeps it, and a restarted one serves it without a fetch", async (t) => {
  const context = contextOf(t);
  const server = await startCluster(context);
  const issuer = await createIssuer(NAME);
  const keys = await startKeyServer(context, { path: "/keys", body: keySet(issuer.jwk) });
  const echo = await startEcho(context);
  const [port = 0, xds = 0] = await freePorts(2);

  const url = `http://127.0.0.1:${port}/`;
  const send = async () => call(url, { headers: { authorization: `Bearer ${await issuer.token()}` } });
  const passes = async (): Promise<void> => assert.equal((await send()).status, 200);

  const controller = await startController(context, server, xds);
  const plane = startPlane(context, xds);
  const providers = `[{issuer: "${NAME}", jwks: {remote: {url: "http://127.0.0.1:${keys.port}/keys"}}}]`;
  const policy = routePolicy("tokens", "web", `  traffic: {jwtAuthentication: {providers: ${providers}}}`);
  const gateway = GATEWAY.replace("port: 8080", `port: ${port}`);
  const objects = documents(gateway, staticBackend("web", echo.port), route("web", "web"), policy);
  await server.kubectl(["apply", "-f", "-"], objects);
  await eventually(passes);
  assert.equal((await call(url)).status, 401);
  const kept = async (): Promise<string> => {
    const find = ["get", "configmap", "-n", "gwproxy-system", "-l", "app.kubernetes.io/component=jwks-store"];
    return server.kubectl([...find, "-o", "jsonpath={.items[*].data.document}"]);
  };
  await eventually(async () => assert.equal(await kept(), keySet(issuer.jwk)));

  await controller.kill();
  await plane.kill();
  await startController(context, server, xds);
  startPlane(context, xds);
  await eventually(passes);
  assert.deepEqual(keys.asked, ["/keys"], "one fetch for both lives of the controller");

  await server.kubectl(["delete", "gwpolicy", "tokens"]);
  await eventually(async () => assert.equal(await kept(), ""));
});
