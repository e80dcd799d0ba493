/** Key sets on a real API server: fetched by the controller, kept in ConfigMaps, and not fetched again after a restart. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { gatewayApiCrds } from "../support/gateway-api-crds.ts";
import { startEcho } from "../support/echo.ts";
import { documents, GATEWAY, route, routePolicy, staticBackend } from "../support/gateway.ts";
import { call } from "../support/http.ts";
import { startKeyServer } from "../support/key-server.ts";
import { eventually, freePorts, startGwproxy, type GwproxyProcess } from "../support/process.ts";
import { createIssuer, keySet } from "../support/tokens.ts";
import { startApiServer } from "../testbed/api-server.ts";

const CRDS = join(import.meta.dirname, "../../crds");
const NAME = "https://issuer.test";

test("the controller fetches a key set once, keeps it, and a restarted one serves it without a fetch", async (t) => {
  const context = { after: (clean: () => void | Promise<void>) => t.after(clean), dropped: undefined };
  const server = await startApiServer();
  context.after(() => server.stop());
  await server.kubectl(["apply", "-f", await gatewayApiCrds()]);
  await server.kubectl(["apply", "-f", CRDS]);
  await server.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  await server.kubectl(["create", "namespace", "gwproxy-system"]);
  const issuer = await createIssuer(NAME);
  const keys = await startKeyServer(context, { path: "/keys", body: keySet(issuer.jwk) });
  const echo = await startEcho(context);
  const [port = 0, xds = 0] = await freePorts(2);

  const startController = async (): Promise<GwproxyProcess> => {
    const addresses = ["--xds-address", `127.0.0.1:${xds}`, "--health-address", "127.0.0.1:0"];
    const args = ["controller", "-k", server.kubeconfig, "--namespace", "gwproxy-system", ...addresses];
    const controller = startGwproxy(context, args);
    await controller.printed("serving data planes");
    return controller;
  };
  const startPlane = (): GwproxyProcess => {
    const own = ["--admin-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0"];
    const place = ["--bind-address", "127.0.0.1", "--readiness-address", "127.0.0.1:0", ...own];
    return startGwproxy(context, [
      "proxy",
      "--xds-address",
      `http://127.0.0.1:${xds}`,
      "--gateway",
      "default/gw",
      ...place,
    ]);
  };
  const url = `http://127.0.0.1:${port}/`;
  const send = async () => call(url, { headers: { authorization: `Bearer ${await issuer.token()}` } });
  const passes = async (): Promise<void> => assert.equal((await send()).status, 200);

  const controller = await startController();
  const plane = startPlane();
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
  await startController();
  startPlane();
  await eventually(passes);
  assert.deepEqual(keys.asked, ["/keys"], "one fetch for both lives of the controller");

  await server.kubectl(["delete", "gwpolicy", "tokens"]);
  await eventually(async () => assert.equal(await kept(), ""));
});
