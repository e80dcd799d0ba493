/** Routes change under load: what did not change is not touched, on the wire or in traffic. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, GATEWAY, route, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";
import { startSteadyLoad } from "../../support/gateway/steady-load.ts";

const CHANGES = 200;
const CONNECTIONS = 4;

prove([], "200 changes of one route cost the others no request and no connection", async (context) => {
  const [left, right] = await Promise.all([startEcho(context, { tag: "left" }), startEcho(context, { tag: "right" })]);
  const manifests = (version: number): string =>
    documents(
      GATEWAY,
      staticBackend("left", left.port),
      staticBackend("right", right.port),
      route("steady-left", "left", "/left"),
      route("steady-right", "right", "/right"),
      route("changing", upstreamOf(version), `/changing/${version}`),
    );
  const gateway = await startGateway(context, manifests(0));
  const promised = ["left", "right"].map((upstream) => ({ path: `/${upstream}`, upstream }));
  const load = startSteadyLoad(gateway.url(), promised, CONNECTIONS);
  context.after(async () => void (await load.stop()));

  for (let version = 1; version <= CHANGES; version += 1) {
    await gateway.change(manifests(version));
    const answer = await call(`${gateway.url()}/changing/${version}`);
    assert.deepEqual([answer.status, answer.headers["x-upstream"]], [200, upstreamOf(version)]);
    assert.equal((await call(`${gateway.url()}/changing/${version - 1}`)).status, 404);
    await load.turned();
  }

  const { answers, opened } = await load.stop();
  assert.ok(answers >= CHANGES * CONNECTIONS, `only ${answers} requests`);
  assert.equal(opened, CONNECTIONS, "a change closed a connection");
  const [, ...changes] = gateway.updates;
  assert.equal(changes.length, CHANGES);
  const key = changes[0]?.set[0]?.key;
  assert.match(key ?? "", /changing/);
  for (const { set, removed } of changes) {
    assert.deepEqual(
      set.map((resource) => [resource.type, resource.key]),
      [["HttpRoute", key]],
    );
    assert.deepEqual(removed, []);
  }
});

/** The route goes to the two upstreams in turn. */
function upstreamOf(version: number): string {
  return version % 2 === 0 ? "left" : "right";
}
