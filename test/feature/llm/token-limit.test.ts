/** traffic.rateLimit with tokens through real sockets: the request that crosses the budget succeeds, the next does not. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { type Answer, call } from "../../support/clients/http.ts";
import { errorMessageOf, mockBackend, startMockProvider } from "../../support/gateway/mock-provider.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

const LOCAL = "GwPolicy spec.traffic.rateLimit.local[]";
const CONDITIONAL = "GwPolicy spec.traffic.rateLimit.conditional[].policy.local[]";
const JSON_TYPE = { "content-type": "application/json" };
/** Costs two tokens of input and four of output. */
const CHAT = { model: "mock", messages: [{ role: "user", content: "hello there" }] };

/** @param rateLimit YAML flow */
function limited(context: ProofContext, key: "llma" | "llme", port: number, rateLimit: string): Promise<TestGateway> {
  const backend = mockBackend(port, key);
  const policy = routePolicy("limit", "ai", `  traffic: {rateLimit: ${rateLimit}}`);
  return startGateway(context, documents(GATEWAY, backend, route("ai", "ai"), policy));
}

function chat(gateway: TestGateway, more: object = {}, headers: Record<string, string> = {}): Promise<Answer> {
  const body = JSON.stringify({ ...CHAT, ...more });
  return call(`${gateway.url()}/v1/chat/completions`, { method: "POST", headers: { ...JSON_TYPE, ...headers }, body });
}

for (const key of ["llma", "llme"] as const)
  for (const stream of [false, true])
    prove(
      [`${LOCAL}.tokens`, `${LOCAL}.unit`],
      `a ${stream ? "streamed" : "plain"} answer that crosses the budget succeeds, the next request is not forwarded (${key})`,
      async (context) => {
        const provider = await startMockProvider(context);
        const gateway = await limited(context, key, provider.port, "{local: [{tokens: 7, unit: Hours}]}");
        const first = await chat(gateway, { stream });
        assert.equal(first.status, 200);
        assert.equal(first.headers["x-ratelimit-limit"], "7");
        assert.equal((await chat(gateway, { stream })).status, 200);
        const refused = await chat(gateway, { stream });
        assert.equal(refused.status, 429);
        assert.match(String(refused.headers["retry-after"]), /^[1-9][0-9]*$/);
        assert.equal(errorMessageOf(refused), "rate limit exceeded");
        assert.equal(refused.headers["x-ratelimit-remaining"], "0");
        assert.ok(Number(refused.headers["x-ratelimit-reset"]) > 60, "seven an hour are fewer than one a minute");
        assert.equal(provider.served(), 2);
      },
    );

prove(
  `${LOCAL}.tokens`,
  "each value of the key has a budget of its own, and refused requests cost nothing",
  async (context) => {
    const provider = await startMockProvider(context);
    const rule = `{local: [{tokens: 1, unit: Hours, key: 'request.headers["x-user"]'}]}`;
    const gateway = await limited(context, "llma", provider.port, rule);
    const statuses: number[] = [];
    for (const user of ["a", "b", "a", "b"]) statuses.push((await chat(gateway, {}, { "x-user": user })).status);
    assert.deepEqual(statuses, [200, 200, 429, 429]);
    assert.equal(provider.served(), 2);
  },
);

prove(
  [`${CONDITIONAL}.tokens`, `${CONDITIONAL}.unit`, `${CONDITIONAL}.key`],
  "the entry whose condition holds decides which budget is charged",
  async (context) => {
    const provider = await startMockProvider(context);
    const free = `{condition: 'request.headers["x-tier"] == "free"', policy: {local: [{tokens: 1, unit: Hours, key: 'request.headers["x-user"]'}]}}`;
    const gateway = await limited(context, "llma", provider.port, `{conditional: [${free}]}`);
    const answers: Answer[] = [];
    for (const [tier, user] of [
      ["free", "a"],
      ["free", "a"],
      ["free", "b"],
      ["paid", "a"],
      ["paid", "a"],
    ] as const)
      answers.push(await chat(gateway, {}, { "x-tier": tier, "x-user": user }));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 429, 200, 200, 200],
    );
    assert.ok(Number(answers[1]?.headers["x-ratelimit-reset"]) > 60, "one an hour is fewer than one a minute");
    // Without the header that the condition reads the limit counts.
    const untold = [
      (await chat(gateway, {}, { "x-user": "c" })).status,
      (await chat(gateway, {}, { "x-user": "c" })).status,
    ];
    assert.deepEqual(untold, [200, 429]);
  },
);

prove(`${CONDITIONAL}.burst`, "a burst adds to the budget of an entry", async (context) => {
  const provider = await startMockProvider(context);
  const entry = `{condition: "true", policy: {local: [{tokens: 1, unit: Hours, burst: 6}]}}`;
  const gateway = await limited(context, "llma", provider.port, `{conditional: [${entry}]}`);
  const statuses: number[] = [];
  for (let turn = 0; turn < 3; turn++) statuses.push((await chat(gateway)).status);
  assert.deepEqual(statuses, [200, 200, 429]);
});

prove(
  `${LOCAL}.tokens`,
  "a client that goes away in the middle of a stream is charged for what was used",
  async (context) => {
    const provider = await startEndless(context);
    const gateway = await limited(context, "llma", provider.port, "{local: [{tokens: 5, unit: Hours}]}");
    const outgoing = request(`${gateway.url()}/v1/chat/completions`, {
      method: "POST",
      headers: JSON_TYPE,
      agent: false,
    });
    outgoing.on("error", () => undefined);
    outgoing.end(JSON.stringify({ ...CHAT, stream: true }));
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.on("error", () => undefined);
    assert.equal(response.statusCode, 200);
    await once(response, "data");
    response.destroy();
    await provider.left;
    assert.equal((await chat(gateway)).status, 429);
    assert.equal(provider.requests(), 1);
  },
);

prove(
  `${LOCAL}.tokens`,
  "a client that leaves before the usage comes is charged for the text that came",
  async (context) => {
    const provider = await startEndless(context, { prompt_tokens: null });
    const gateway = await limited(context, "llma", provider.port, "{local: [{tokens: 3, unit: Hours}]}");
    const outgoing = request(`${gateway.url()}/v1/chat/completions`, {
      method: "POST",
      headers: JSON_TYPE,
      agent: false,
    });
    outgoing.on("error", () => undefined);
    outgoing.end(JSON.stringify({ ...CHAT, stream: true, stream_options: { include_usage: false } }));
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.on("error", () => undefined);
    assert.equal(response.statusCode, 200);
    await once(response, "data");
    response.destroy();
    await provider.left;
    assert.equal((await chat(gateway)).status, 429);
    assert.equal(provider.requests(), 1);
  },
);

/** A provider whose first stream tells the usage at once and then never ends; `left` resolves when it was cut. */
async function startEndless(
  context: ProofContext,
  usage: object | undefined = { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 },
): Promise<{ port: number; left: Promise<void>; requests(): number }> {
  let requests = 0;
  const { promise: left, resolve } = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    requests++;
    response.on("close", () => resolve());
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(
      `data: ${JSON.stringify({ model: "m", choices: [{ index: 0, delta: { content: "a" } }], usage })}\n\n`,
    );
    if (requests > 1) response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, left, requests: () => requests };
}
