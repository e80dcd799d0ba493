/** traffic.rateLimit.global with tokens, and with envoyproxy/ratelimit as the service, through real sockets. */
import assert from "node:assert/strict";
import { RateLimitResponse_Code as Code } from "../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import { proveForms } from "../../support/proofs/forms.ts";
import { deadPort } from "../../support/servers/grpc.ts";
import { call } from "../../support/clients/http.ts";
import { prove } from "../../support/proofs/prove.ts";
import { asked, BY_PATH, limited, limitedModel } from "../../support/gateway/rate-limited.ts";
import { startRateServer } from "../../support/servers/rate-server.ts";
import { startRateLimitService } from "../../testbed/services.ts";

proveForms(
  "rateLimit",
  ["global.descriptors[].unit"],
  "tokens are asked for before the request is sent and charged when the answer is complete, streamed or not",
  async (context, form) => {
    const server = await startRateServer(context);
    const tokens = "{entries: [{name: model, expression: '\"m\"'}], unit: Tokens}";
    const { ask } = await limitedModel(
      context,
      form(`{global: {url: "http://127.0.0.1:${server.port}", domain: d, descriptors: [${BY_PATH}, ${tokens}]}}`),
    );
    for (const stream of [false, true]) {
      const before = server.seen.length;
      assert.equal((await ask({ stream })).status, 200);
      const [first, second] = server.seen.slice(before).map(asked);
      assert.deepEqual([first, second], [["path=/v1/chat/completions"], ["model=m (0)"]]);
      await server.asked(before + 3);
      assert.deepEqual(server.seen.slice(before + 2).map(asked), [["model=m (6)"]]);
    }
  },
);

proveForms(
  "rateLimit",
  ["global.descriptors[].cost"],
  "what an answer costs may be computed from its usage and its status",
  async (context, form) => {
    const server = await startRateServer(context);
    const cost = "llm.outputTokens * 100 + response.code";
    const tokens = `{entries: [{name: model, expression: '"m"'}], unit: Tokens, cost: "${cost}"}`;
    const { ask } = await limitedModel(
      context,
      form(`{global: {url: "http://127.0.0.1:${server.port}", domain: d, descriptors: [${tokens}]}}`),
    );
    assert.equal((await ask()).status, 200);
    await server.asked(2);
    assert.deepEqual(server.seen.map(asked), [["model=m (0)"], ["model=m (600)"]]);
  },
);

prove(
  "GwPolicy spec.traffic.rateLimit.global.url",
  "a budget of tokens that is used up gets 429 and the model is not asked; a broken service follows the failure mode",
  async (context) => {
    const tokens = "descriptors: [{entries: [{name: m, expression: '\"m\"'}], unit: Tokens}], domain: d";
    const strict = await startRateServer(context, () => ({
      overallCode: Code.OVER_LIMIT,
      statuses: [{ limitRemaining: 0, currentLimit: { requestsPerUnit: 3 } }],
    }));
    const used = await limitedModel(context, `{global: {url: "http://127.0.0.1:${strict.port}", ${tokens}}}`);
    const refused = await used.ask();
    assert.deepEqual([refused.status, refused.headers["x-ratelimit-remaining"]], [429, "0"]);
    assert.match(String(refused.headers["retry-after"]), /^[1-9][0-9]*$/);
    assert.equal(used.served(), 0);
    const dead = `url: "http://127.0.0.1:${await deadPort()}"`;
    assert.equal((await (await limitedModel(context, `{global: {${dead}, ${tokens}}}`)).ask()).status, 500);
    const open = await limitedModel(context, `{global: {${dead}, ${tokens}, failureMode: FailOpen}}`);
    assert.equal((await open.ask()).status, 200);
  },
);

const REAL = `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 3}
  - key: model
    rate_limit: {unit: hour, requests_per_unit: 10}
`;

prove(
  [
    "GwPolicy spec.traffic.rateLimit.global.domain",
    "GwPolicy spec.traffic.rateLimit.global.descriptors[].entries[].name",
    "GwPolicy spec.traffic.rateLimit.global.descriptors[].entries[].expression",
  ],
  "two data planes share the limits of envoyproxy/ratelimit",
  async (context) => {
    const { port } = await startRateLimitService(context, REAL);
    const user = `{entries: [{name: user, expression: 'request.headers["x-user"]'}]}`;
    const limit = `{global: {url: "http://127.0.0.1:${port}", domain: shop, descriptors: [${user}]}}`;
    const planes = [await limited(context, limit), await limited(context, limit)];
    const statuses: number[] = [];
    for (const at of [0, 1, 0, 1, 0])
      statuses.push((await call(planes[at]?.url ?? "", { headers: { "x-user": "alice" } })).status);
    assert.deepEqual(statuses, [200, 200, 200, 429, 429]);
    const other = await call(planes[1]?.url ?? "", { headers: { "x-user": "bob" } });
    assert.equal(other.status, 200);
    assert.deepEqual([other.headers["x-ratelimit-limit"], other.headers["x-ratelimit-remaining"]], ["3", "2"]);
    const reset = Number(other.headers["x-ratelimit-reset"]);
    assert.ok(reset > 0 && reset <= 3600, String(reset));
  },
);

prove(
  [
    "GwPolicy spec.traffic.rateLimit.global.descriptors[].limitOverride",
    "GwPolicy spec.traffic.rateLimit.global.descriptors[].cost",
  ],
  "envoyproxy/ratelimit takes costs and limits of the request's own",
  async (context) => {
    const { port } = await startRateLimitService(context, REAL);
    const descriptor = `{entries: [{name: user, expression: '"u"'}], cost: "4", limitOverride: '{"unit": "minute", "requestsPerUnit": 8}'}`;
    const limit = `{global: {url: "http://127.0.0.1:${port}", domain: shop, descriptors: [${descriptor}]}}`;
    const { url } = await limited(context, limit);
    const answers = [await call(url), await call(url), await call(url)];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 429],
    );
    assert.equal(answers[0]?.headers["x-ratelimit-limit"], "8");
    assert.equal(answers[0]?.headers["x-ratelimit-remaining"], "4");
  },
);

prove(
  "GwPolicy spec.traffic.rateLimit.global.domain",
  "envoyproxy/ratelimit counts tokens: the answer that crosses the budget still comes, later ones do not",
  async (context) => {
    const { port } = await startRateLimitService(context, REAL);
    const tokens = "{entries: [{name: model, expression: '\"m\"'}], unit: Tokens}";
    const { ask, served } = await limitedModel(
      context,
      `{global: {url: "http://127.0.0.1:${port}", domain: shop, descriptors: [${tokens}]}}`,
    );
    const statuses = [(await ask()).status];
    // The charge is made after the answer, and nobody waits for it: ask on until it has arrived.
    while (statuses.at(-1) === 200 && statuses.length < 200) statuses.push((await ask()).status);
    assert.equal(statuses.at(-1), 429);
    assert.ok(statuses.length >= 3, "twelve tokens of ten were used by the second answer");
    assert.equal(served(), statuses.length - 1);
  },
);
