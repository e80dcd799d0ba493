/** A sample of policies on a real API server: plain kubectl apply, a controller and a data plane as two processes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startCluster, startController, startPlane } from "../support/kubernetes/cluster.ts";
import { startEcho } from "../support/servers/echo.ts";
import { documents, GATEWAY, gatewayPolicy, route, routePolicy, staticBackend } from "../support/gateway/gateway.ts";
import { call, type Answer, type Call } from "../support/clients/http.ts";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { POOL_ROUTE } from "../support/gateway/inference-pool.ts";
import { eventually } from "../support/gateway/process.ts";
import { contextOf } from "../support/proofs/prove.ts";

/** `openssl passwd -apr1 -salt saltsalt secret` */
const USERS = `
apiVersion: v1
kind: Secret
metadata: {name: users}
stringData: {.htaccess: "alice:$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0"}
`;

const POOL = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: pool}
spec:
  ai:
    provider:
      custom:
        formats: [{type: Completions}]
        backendRef: {group: inference.networking.k8s.io, kind: InferencePool, name: pool}
`;

test("policies of all kinds work on a cluster as they do from files", async (t) => {
  const context = contextOf(t);
  const server = await startCluster(context);
  const echo = await startEcho(context);
  const [port = 0, xds = 0] = await freePorts(2);
  await startController(context, server, xds);
  const plane = startPlane(context, xds);

  const apply = (...objects: string[]) => server.kubectl(["apply", "-f", "-"], documents(...objects));
  const send = (more: Call = {}): Promise<Answer> => call(`http://127.0.0.1:${port}/`, more);
  const becomes = (status: number, more: Call = {}) =>
    eventually(async () => assert.equal((await send(more)).status, status));
  const attached = (policy: string) =>
    eventually(async () => {
      const path = `{.status.ancestors[0].conditions[?(@.type=="Attached")].status}`;
      assert.equal(await server.kubectl(["get", "gwpolicy", policy, "-o", `jsonpath=${path}`]), "True");
    });
  await apply(GATEWAY.replace("port: 8080", `port: ${port}`), staticBackend("web", echo.port), route("web", "web"));
  await plane.printed(`listening on 127.0.0.1:${port} for Gateway default/gw`);
  await becomes(200);

  await t.test("authentication by a Secret, which denies at once when the Secret is gone", async () => {
    await apply(USERS, gatewayPolicy("users", "  traffic: {basicAuthentication: {secretRef: {name: users}}}"));
    const alice = { headers: { authorization: `Basic ${Buffer.from("alice:secret").toString("base64")}` } };
    await becomes(401);
    await becomes(200, alice);
    await attached("users");
    await server.kubectl(["delete", "secret", "users"]);
    await becomes(401, alice);
    await server.kubectl(["delete", "gwpolicy", "users"]);
    await becomes(200);
  });

  await t.test("a request is rewritten before routing and answered for the browser that sent it", async () => {
    const origin = { headers: { origin: "https://shop.test" } };
    await apply(
      gatewayPolicy("early", `  traffic: {phase: PreRouting, cors: {allowOrigins: ["https://shop.test"]}}`),
      routePolicy(
        "late",
        "web",
        `  traffic: {transformation: {response: {set: [{name: x-seen, value: request.method}]}}}`,
      ),
    );
    await eventually(async () => {
      const { headers } = await send(origin);
      assert.equal(headers["access-control-allow-origin"], "https://shop.test");
      assert.equal(headers["x-seen"], "GET");
    });
    await server.kubectl(["delete", "gwpolicy", "early", "late"]);
  });

  await t.test(
    "an external service that cannot be reached closes what it guards, and says so nowhere but in the log",
    async () => {
      await apply(routePolicy("ask", "web", `  traffic: {extAuth: {url: "http://127.0.0.1:1", http: {}}}`));
      await becomes(403);
      await attached("ask");
      await server.kubectl(["delete", "gwpolicy", "ask"]);
      await becomes(200);
    },
  );

  await t.test("a policy that loses everything to an older one says so while the older one is there", async () => {
    const overridden = async (): Promise<string> => {
      const path = `{.status.ancestors[*].conditions[?(@.type=="Overridden")]['status','message']}`;
      return await server.kubectl(["get", "gwpolicy", "b-young", "-o", `jsonpath=${path}`]);
    };
    await apply(routePolicy("a-old", "web", "  traffic: {timeouts: {request: 8s}}"));
    await apply(routePolicy("b-young", "web", "  traffic: {timeouts: {request: 9s}}"));
    await attached("b-young");
    await eventually(async () => {
      assert.equal(await overridden(), "True everything that it sets is set by GwPolicy default/a-old");
    });
    await server.kubectl(["delete", "gwpolicy", "a-old"]);
    await eventually(async () => assert.equal(await overridden(), ""));
    await server.kubectl(["delete", "gwpolicy", "b-young"]);
  });

  await t.test(
    "what this version does not enforce is in the status with its path, and closes what it would protect",
    async () => {
      await apply(POOL, route("web", "pool"));
      await becomes(500);
      await eventually(async () => {
        const path = `{.status.conditions[?(@.type=="Accepted")].message}`;
        const message = await server.kubectl(["get", "gwbackend", "pool", "-o", `jsonpath=${path}`]);
        assert.match(message, /spec\.ai\.provider\.custom\.backendRef.* GWPROXY_ENABLE_INFERENCE/);
      });
      await apply(POOL_ROUTE);
      await eventually(async () => {
        const path = `{.status.parents[0].conditions[?(@.type=="ResolvedRefs")]['reason','message']}`;
        const text = await server.kubectl(["get", "httproute", "web", "-o", `jsonpath=${path}`]);
        assert.match(text, /^InvalidKind .*GWPROXY_ENABLE_INFERENCE/);
      });
    },
  );
});
