/** Secrets of every kind of `auth` on a real API server: none is in a status, in an Event, or in what the processes print. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { call } from "../support/clients/http.ts";
import { setEnvironment } from "../support/fixtures/environment.ts";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { SEED } from "../support/fixtures/seed.ts";
import { Secrets, secretBlocks } from "../support/gateway/auth-secrets.ts";
import { documents, gatewayOf, route } from "../support/gateway/gateway.ts";
import { eventually } from "../support/gateway/process.ts";
import { startCluster, startController, startPlane } from "../support/kubernetes/cluster.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { startEcho } from "../support/servers/echo.ts";
import { startTokenServer } from "../support/servers/token-endpoint.ts";

interface Stored {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
    readonly message?: string;
  }[];
}

test("no secret of an auth block is in a status, an Event or a log of a cluster", async (t) => {
  const context = contextOf(t);
  const secrets = new Secrets(SEED);
  const echo = await startEcho(context);
  const server = await startTokenServer(context);
  const { auth, objects, broken } = secretBlocks(secrets, server.url);
  // The data plane cannot listen on this port, and its refusal becomes an Event.
  const taken = createServer().listen(0, "127.0.0.1");
  context.after(() => void taken.close());
  await once(taken, "listening");
  const { port: second } = taken.address() as AddressInfo; // a TCP server has a port
  const [port = 0, xds = 0] = await freePorts(2);
  const backends = Object.entries(auth).map(
    ([name, block]) => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {static: {host: 127.0.0.1, port: ${echo.port}}, policies: {auth: ${block}}}
`,
  );
  const listeners = [port, second].map((at) => `{name: l${at}, port: ${at}, protocol: HTTP}`);
  const routes = Object.keys(auth).map((name) => route(name, name, `/${name}`));
  const cluster = await startCluster(context);
  const controller = await startController(context, cluster, xds, { more: ["--log-level", "trace"] });
  // Server-side, so that no annotation repeats the objects.
  await cluster.kubectl(
    ["apply", "--server-side", "-f", "-"],
    documents(gatewayOf(listeners), ...objects, ...backends, ...routes),
  );
  setEnvironment(context, { AZURE_AUTHORITY_HOST: server.url });
  const plane = startPlane(context, xds);
  const get = async (kind: string): Promise<Stored> =>
    JSON.parse(await cluster.kubectl(["get", kind, "-A", "-o", "json"])) as Stored;

  const statuses = await eventually(async () => {
    const { items } = await get("gwbackends");
    const unaccepted = items.filter(({ status }) =>
      status?.conditions?.some(({ type, status: value }) => type === "Accepted" && value === "False"),
    );
    assert.deepEqual(unaccepted.map(({ metadata }) => metadata.name).sort(), [...broken].sort());
    return items.map(({ status }) => status);
  });
  const events = await eventually(async () => {
    const { items } = await get("events");
    assert.ok(items.some(({ message = "" }) => message.startsWith("a data plane refused")));
    return items;
  });
  for (const name of Object.keys(auth)) {
    const headers = { authorization: `Bearer ${secrets.make(`token of the client of ${name}`)}` };
    const { status } = await eventually(() => call(`http://127.0.0.1:${port}/${name}`, { headers }));
    assert.equal(status === 500, broken.includes(name) || name === "crossed", `${name}: ${status}`);
  }
  const routeStatuses = (await get("httproutes")).items.map(({ status }) => status);
  const places = {
    statuses: JSON.stringify([statuses, routeStatuses]),
    events: JSON.stringify(events),
    "log of the controller": controller.output(),
    "log of the data plane": plane.output(),
  };
  for (const [place, text] of Object.entries(places)) {
    assert.ok(text.length > 2, `${place} is empty`);
    assert.deepEqual(secrets.findIn(text), [], place);
  }
  assert.match(places.statuses, /is not an unencrypted private key/, "a broken key is reported without its text");
});
