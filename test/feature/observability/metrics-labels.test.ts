/** `frontend.metrics` of a GwPolicy through real sockets: labels of users on everything that is counted for a request. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { createMeasured, type Measured } from "../../support/gateway/measured.ts";
import { gatewayRef, policy } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

const ADD = "GwPolicy spec.frontend.metrics.attributes.add[]";

interface Served extends Measured {
  readonly gateway: TestGateway;
  readonly port: number;
  change(labels: readonly string[]): Promise<void>;
}

/** @param labels flow YAML of each */
async function serve(context: ProofContext, ...labels: readonly string[]): Promise<Served> {
  const echo = await startEcho(context);
  const measured = createMeasured();
  const manifests = (wanted: readonly string[]): string =>
    documents(
      GATEWAY,
      staticBackend("web", echo.port),
      route("web", "web"),
      policy("p", { refs: gatewayRef(), says: `frontend: {metrics: {attributes: {add: [${wanted.join(", ")}]}}}` }),
    );
  const gateway = await startGateway(context, manifests(labels), { telemetry: { metrics: measured.metrics } });
  const change = (wanted: readonly string[]): Promise<void> => gateway.change(manifests(wanted));
  return { ...measured, gateway, port: echo.port, change };
}

const team = (name: string): { headers: Record<string, string> } => ({ headers: { "x-team": name } });
const TEAM = `{name: team, expression: 'request.headers["x-team"]'}`;

prove([`${ADD}.name`, `${ADD}.expression`], "what a request is counted by is what its policy says", async (context) => {
  const { gateway, counted, read } = await serve(
    context,
    TEAM,
    '{name: status-class, expression: "response.code / 100"}',
  );
  for (const name of ["red", "blue", "red"]) await call(gateway.url(), team(name));
  await counted("requests_total", 3);
  const by = read("requests_total").map(({ labels, value }) => [labels["team"], labels["status_class"], value]);
  assert.deepEqual(by.sort(), [
    ["blue", "2", 1],
    ["red", "2", 2],
  ]);
  const rest = ["response_bytes_total", "request_duration_seconds_count", "request_processing_seconds_count"];
  for (const name of [...rest, "response_processing_seconds_count"]) {
    const teams = read(name).map(({ labels }) => labels["team"]);
    assert.deepEqual(teams.sort(), ["blue", "red"], name);
  }
});

prove(
  `${ADD}.expression`,
  "one that fails, gives null or gives nothing is unknown, and a list is JSON",
  async (context) => {
    const { gateway, counted } = await serve(
      context,
      `{name: failed, expression: 'request.headers["x-none"]'}`,
      `{name: nothing, expression: "null"}`,
      `{name: empty, expression: "''"}`,
      `{name: list, expression: "[request.method, response.code]"}`,
      `{name: text, expression: 'request.headers["x-team"]'}`,
    );
    await call(gateway.url(), team('a "b" \\ c'));
    const [sample] = await counted("requests_total", 1);
    const { failed, nothing, empty, list, text } = sample?.labels ?? {};
    assert.deepEqual([failed, nothing, empty], ["unknown", "unknown", "unknown"]);
    assert.equal(list, '["GET",200]');
    assert.equal(text, 'a "b" \\ c');
  },
);

prove(`${ADD}.name`, "a name that the metrics have already is refused, and the other labels serve", async (context) => {
  const { gateway, counted } = await serve(context, `{name: route, expression: '"mine"'}`, TEAM);
  await call(gateway.url(), team("red"));
  const [sample] = await counted("requests_total", 1);
  assert.equal(sample?.labels["route"], "default/web");
  assert.equal(sample?.labels["team"], "red");
});

prove(`${ADD}.expression`, "a client that makes up values does not fill the memory", async (context) => {
  const { gateway, counted, read } = await serve(context, TEAM);
  const names = [...Array.from({ length: 1_010 }, (_none, at) => `team-${at}`), "x".repeat(1_000)];
  // One after the other, over connections that stay.
  for (const name of names) await (await fetch(gateway.url(), team(name))).text();
  await counted("requests_total", 1_011);
  const teams = new Set(read("requests_total").map(({ labels }) => labels["team"]));
  assert.equal(teams.size, 1_001);
  assert.ok(teams.has("other"));
});

prove(
  `${ADD}.expression`,
  "a change of labels begins series of its own, and old ones can still be read",
  async (context) => {
    const { gateway, counted, read, change } = await serve(context, TEAM);
    await call(gateway.url(), team("red"));
    await counted("requests_total", 1);
    await change([TEAM, `{name: agent, expression: '"a"'}`]);
    await call(gateway.url(), team("red"));
    await counted("requests_total", 2);
    assert.deepEqual(
      read("requests_total", { team: "red" }).map(({ labels }) => labels["agent"]),
      [undefined, "a"],
    );
  },
);

prove(`${ADD}.expression`, "a request that finds no route has its labels too", async (context) => {
  const { gateway, counted, port } = await serve(context, TEAM);
  await gateway.change(
    documents(
      GATEWAY,
      staticBackend("web", port),
      policy("p", { refs: gatewayRef(), says: `frontend: {metrics: {attributes: {add: [${TEAM}]}}}` }),
    ),
  );
  const { status } = await call(gateway.url(), team("red"));
  assert.equal(status, 404);
  const [sample] = await counted("requests_total", 1);
  assert.equal(sample?.labels["team"], "red");
  assert.equal(sample?.labels["reason"], "NotFound");
});

prove(`${ADD}.expression`, "a label can be read out of the bodies of a request and of its answer", async (context) => {
  const { gateway, counted } = await serve(
    context,
    `{name: asked, expression: json(request.body).tenant}`,
    `{name: answered, expression: json(response.body).method}`,
  );
  await call(gateway.url(), { method: "POST", body: '{"tenant": "red"}' });
  const [sample] = await counted("requests_total", 1);
  assert.deepEqual([sample?.labels["asked"], sample?.labels["answered"]], ["red", "POST"]);
});
