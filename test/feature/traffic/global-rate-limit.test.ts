/** traffic.rateLimit.global through real sockets. */
import assert from "node:assert/strict";
import { RateLimitResponse_Code as Code } from "../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import { RateLimitUnit } from "../../../generated/proto/envoy/type/v3/ratelimit_unit_pb.ts";
import { echoed } from "../../support/servers/echo.ts";
import { proveForms } from "../../support/proofs/forms.ts";
import { deadPort, startSocket } from "../../support/servers/grpc.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { asked, BY_PATH, limited, LIMITS } from "../../support/gateway/rate-limited.ts";
import { OVER, startRateServer, type Answer as Limits } from "../../support/servers/rate-server.ts";

proveForms(
  "rateLimit",
  [
    "global.backendRef.group",
    "global.backendRef.kind",
    "global.backendRef.name",
    "global.domain",
    "global.descriptors[].entries[].name",
    "global.descriptors[].entries[].expression",
  ],
  "all descriptors that can be read are asked for in one call; one that fails in part is left out",
  async (context, form) => {
    const broken = `{entries: [{name: ok, expression: '"1"'}, {name: user, expression: 'request.headers["x-user"]'}]}`;
    const several = `{entries: [{name: method, expression: request.method}, {name: num, expression: 1 + 1}]}`;
    const { url, seen } = await limited(
      context,
      form(`{global: {${LIMITS}, domain: shop, descriptors: [${BY_PATH}, ${broken}, ${several}]}}`),
    );
    assert.equal((await call(`${url}/a?x=1`)).status, 200);
    assert.equal((await call(url, { headers: { "x-user": "alice" } })).status, 200);
    assert.equal(seen[0]?.domain, "shop");
    assert.deepEqual(seen.map(asked), [
      ["path=/a", "method=GET,num=2"],
      ["path=/", "ok=1,user=alice", "method=GET,num=2"],
    ]);
  },
);

prove(
  "GwPolicy spec.traffic.rateLimit.global.descriptors[].entries[].expression",
  "when no descriptor can be read nobody is asked and the request passes",
  async (context) => {
    const broken = `{entries: [{name: user, expression: 'request.headers["x-user"]'}]}`;
    const { url, seen } = await limited(
      context,
      `{global: {${LIMITS}, domain: d, descriptors: [${broken}]}}`,
      () => OVER,
    );
    assert.equal((await call(url)).status, 200);
    assert.equal(seen.length, 0);
    assert.equal((await call(url, { headers: { "x-user": "a" } })).status, 429);
  },
);

const STATUSES = [
  { limitRemaining: 9, currentLimit: { requestsPerUnit: 10 }, durationUntilReset: { seconds: 5n } },
  { limitRemaining: 0, currentLimit: { requestsPerUnit: 3 }, durationUntilReset: { seconds: 41n, nanos: 1 } },
  { limitRemaining: 0 },
];
const TIGHT: Limits = { statuses: STATUSES, overallCode: Code.OVER_LIMIT };

proveForms(
  "rateLimit",
  ["global.url"],
  "over the limit is 429 with the numbers of the tightest status, or the service's own words",
  async (context, form) => {
    const answers: Limits[] = [
      TIGHT,
      {
        statuses: STATUSES,
        overallCode: Code.OVER_LIMIT,
        rawBody: Buffer.from("slow down"),
        responseHeadersToAdd: [
          { key: "x-ratelimit-limit", value: "3, 3;w=60" },
          { key: "x-envoy-ratelimited", value: "true" },
          { key: "content-length", value: "99" },
        ],
      },
      {
        statuses: STATUSES,
        overallCode: Code.OK,
        requestHeadersToAdd: [{ key: "x-quota", value: "low" }],
        responseHeadersToAdd: [{ key: "x-upstream", value: "limited" }],
      },
    ];
    const server = await startRateServer(context, () => answers.shift());
    const { url } = await limited(
      context,
      form(`{global: {url: "http://127.0.0.1:${server.port}", domain: d, descriptors: [${BY_PATH}]}}`),
    );
    const numbers = ({ headers }: Answer): unknown[] =>
      ["limit", "remaining", "reset"].map((name) => headers[`x-ratelimit-${name}`]);
    const plain = await call(url);
    assert.deepEqual([plain.status, plain.body], [429, "rate limit exceeded"]);
    assert.deepEqual(numbers(plain), ["3", "0", "42"]);
    assert.equal(plain.headers["retry-after"], "42");
    assert.equal(plain.headers["x-envoy-ratelimited"], undefined);
    const own = await call(url);
    assert.deepEqual([own.status, own.body], [429, "slow down"]);
    assert.match(String(own.headers["retry-after"]), /^[1-9][0-9]*$/);
    assert.deepEqual(numbers(own), ["3, 3;w=60", undefined, undefined]);
    assert.equal(own.headers["x-envoy-ratelimited"], "true");
    const passed = await call(url, { headers: { "x-quota": "mine" } });
    assert.equal(passed.status, 200);
    assert.equal(echoed(passed.body).headers["x-quota"], "low");
    assert.equal(passed.headers["x-upstream"], "limited");
    assert.deepEqual(numbers(passed), ["3", "0", "42"]);
  },
);

const TROUBLES: Readonly<Record<string, (context: ProofContext) => Promise<number>>> = {
  down: deadPort,
  slow: async (context) => (await startRateServer(context, () => undefined)).port,
  "half-open": (context) => startSocket(context),
  garbage: (context) => startSocket(context, (socket) => socket.write("no frame of HTTP/2 at all\r\n\r\n".repeat(4))),
  undecided: async (context) => (await startRateServer(context, () => ({}))).port,
};

proveForms(
  "rateLimit",
  ["global.failureMode"],
  "a service that is down, slow, half-open, undecided or talks garbage gives 500, and lets pass when it fails open",
  async (context, form) => {
    await Promise.all(
      Object.entries(TROUBLES).map(async ([trouble, start]) => {
        const limit = `url: "http://127.0.0.1:${await start(context)}", domain: d, descriptors: [${BY_PATH}]`;
        const closed = await limited(context, form(`{global: {${limit}, failureMode: FailClosed}}`));
        const open = await limited(context, form(`{global: {${limit}, failureMode: FailOpen}}`));
        const answers = await Promise.all([closed, open].map((setup) => call(setup.url)));
        assert.deepEqual(
          answers.map(({ status }) => status),
          [500, 200],
          trouble,
        );
        assert.equal(answers[0]?.body, "rate limit failed");
      }),
    );
  },
);

prove(
  "GwPolicy spec.traffic.rateLimit.global.failureMode",
  "a service that does not exist gives 500 although the policy fails open",
  async (context) => {
    const nobody = LIMITS.replace("limits", "nobody");
    const limit = `domain: d, failureMode: FailOpen, descriptors: [${BY_PATH}]`;
    const { url, gateway } = await limited(context, `{global: {${nobody}, ${limit}}}`);
    assert.equal((await call(url)).status, 500);
    assert.equal(gateway.translator.diagnostics()[0]?.path, "spec.traffic.rateLimit.global.backendRef");
    const dead = await limited(context, `{global: {url: "http://127.0.0.1:${await deadPort()}", ${limit}}}`);
    assert.equal((await call(dead.url)).status, 200);
  },
);

proveForms(
  "rateLimit",
  ["global.descriptors[].cost", "global.descriptors[].limitOverride"],
  "a request may count for more and have a limit of its own; where either fails the descriptor is left out",
  async (context, form) => {
    const n = 'request.headers["x-n"]';
    const cost = `{entries: [{name: a, expression: '"1"'}], cost: 'int(${n})'}`;
    const override = `{entries: [{name: b, expression: '"2"'}], limitOverride: '{"unit": request.headers["x-unit"], "requestsPerUnit": int(${n})}'}`;
    const { url, seen } = await limited(
      context,
      form(`{global: {${LIMITS}, domain: d, descriptors: [${BY_PATH}, ${cost}, ${override}]}}`),
    );
    const ask = (headers: Record<string, string>) => call(url, { headers });
    await ask({ "x-n": "5", "x-unit": "Hour" });
    await ask({ "x-n": "0", "x-unit": "fortnight" });
    await ask({ "x-n": "-1", "x-unit": "day" });
    await ask({});
    assert.deepEqual(seen.map(asked), [["path=/", "a=1 (5)", "b=2"], ["path=/", "a=1 (0)"], ["path=/"], ["path=/"]]);
    const limit = seen[0]?.descriptors[2]?.limit;
    assert.deepEqual([limit?.unit, limit?.requestsPerUnit], [RateLimitUnit.HOUR, 5]);
  },
);

prove(
  [
    "GwPolicy spec.traffic.rateLimit.conditional[].condition",
    "GwPolicy spec.traffic.rateLimit.conditional[].policy.global.url",
  ],
  "local and global entries are two choices: each takes its own first match",
  async (context) => {
    const strict = await startRateServer(context, () => OVER);
    const local = `{condition: 'request.path == "/local"', policy: {local: [{requests: 1, unit: Hours}]}}`;
    const global = `{condition: 'request.path.startsWith("/l")', policy: {global: {url: "http://127.0.0.1:${strict.port}", domain: d, descriptors: [${BY_PATH}]}}}`;
    const rest = `{policy: {global: {${LIMITS}, domain: d, descriptors: [${BY_PATH}]}}}`;
    const { url, seen } = await limited(context, `{conditional: [${local}, ${global}, ${rest}]}`);
    assert.equal((await call(`${url}/else`)).status, 200);
    assert.equal((await call(`${url}/local`)).status, 429);
    assert.deepEqual([seen.length, strict.seen.length], [1, 1]);
    const [first] = strict.seen;
    assert.deepEqual(first === undefined ? [] : asked(first), ["path=/local"]);
    assert.equal((await call(`${url}/local`)).status, 429);
    assert.equal(strict.seen.length, 1, "the local limit refused before the service was asked");
  },
);

prove([], "a condition that fails chooses its limit, and leaves the local choice alone", async (context) => {
  const entry = `{condition: 'request.headers["x-tier"] == "free"', policy: {global: {${LIMITS}, domain: d, descriptors: [${BY_PATH}]}}}`;
  const { url, seen } = await limited(context, `{conditional: [${entry}]}`, () => OVER);
  assert.equal((await call(url, { headers: { "x-tier": "paid" } })).status, 200);
  assert.equal((await call(url, { headers: { "x-tier": "free" } })).status, 429);
  assert.equal((await call(url)).status, 429);
  assert.equal(seen.length, 2);
});

const service = (port: number) => `
apiVersion: v1
kind: Service
metadata: {name: counter, namespace: infra}
spec: {ports: [{name: grpc, port: 8081}, {name: other, port: 8082}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: counter-1, namespace: infra, labels: {kubernetes.io/service-name: counter}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
ports: [{name: grpc, port: ${port}}, {name: other, port: 1}]
`;

proveForms(
  "rateLimit",
  ["global.backendRef.namespace", "global.backendRef.port"],
  "a Service of another namespace counts",
  async (context, form) => {
    const server = await startRateServer(context, () => OVER);
    const ref = "backendRef: {name: counter, namespace: infra, port: 8081}";
    const limit = form(`{global: {${ref}, domain: d, descriptors: [${BY_PATH}]}}`);
    const { url } = await limited(context, limit, undefined, [service(server.port)]);
    assert.equal((await call(url)).status, 429);
    assert.equal(server.seen.length, 1);
  },
);
