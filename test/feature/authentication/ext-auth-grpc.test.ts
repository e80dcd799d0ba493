/** traffic.extAuth over gRPC through real sockets. */
import assert from "node:assert/strict";
import { HeaderValueOption_HeaderAppendAction as Action } from "../../../generated/proto/envoy/config/core/v3/base_pb.ts";
import {
  ALLOW,
  DENY,
  httpOf,
  startAuthServer,
  type AuthServer,
  type Verdict,
} from "../../support/servers/auth-server.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { proveForms, type Form } from "../../support/proofs/forms.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  startWeb,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { deadPort, startSocket } from "../../support/servers/grpc.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

interface Setup extends AuthServer {
  readonly gateway: TestGateway;
  readonly url: string;
}

/** A route `web` to an echo, behind an authorization server that is the GwBackend `auth`. @param policy YAML flow */
async function guarded(
  context: ProofContext,
  policy: string,
  decide?: Parameters<typeof startAuthServer>[1],
  more: readonly string[] = [],
): Promise<Setup> {
  const auth = await startAuthServer(context, decide);
  const echo = await startEcho(context);
  const gateway = await startWeb(
    context,
    echo.port,
    staticBackend("auth", auth.port),
    routePolicy("auth", "web", `  traffic: {extAuth: ${policy}}`),
    ...more,
  );
  assert.deepEqual(gateway.problems(), []);
  return { ...auth, gateway, url: gateway.url() };
}

const AUTH = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: auth}";

const set = (key: string, value: string, more: { append?: boolean; appendAction?: Action } = {}) => ({
  header: { key, value },
  ...more,
});

proveForms(
  "extAuth",
  ["backendRef.group", "backendRef.kind", "backendRef.name"],
  "a server that allows may edit the request and add to the answer",
  async (context, form) => {
    const verdict: Verdict = {
      status: { code: 0 },
      httpResponse: {
        case: "okResponse",
        value: {
          headers: [
            set("x-user", "alice"),
            set("x-tags", "two", { append: true }),
            set("x-kept", "new", { appendAction: Action.ADD_IF_ABSENT }),
            set("x-missing", "no", { appendAction: Action.OVERWRITE_IF_EXISTS }),
            set("content-length", "7"),
            set("bad name", "x"),
            set("x-broken", "a\r\nx-injected: 1"),
          ],
          headersToRemove: ["x-secret", "host", ":path", "Connection"],
          responseHeadersToAdd: [set("x-decided-by", "auth")],
          queryParametersToSet: [{ key: "plan", value: "a b" }],
          queryParametersToRemove: ["debug"],
        },
      },
      dynamicMetadata: { team: "blue" },
    };
    const { url, seen } = await guarded(context, form(`{${AUTH}, grpc: {}}`), () => verdict, [
      routePolicy(
        "show",
        "web",
        `  traffic: {transformation: {request: {set: [{name: x-team, value: extauthz.team}]}}}`,
      ),
    ]);
    const answer = await call(`${url}/a?debug=1&x=%20y&plan=old&plan=older`, {
      headers: { "x-user": "mallory", "x-tags": "one", "x-kept": "old", "x-secret": "s" },
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["x-decided-by"], "auth");
    const { headers, url: path } = echoed(answer.body);
    assert.equal(path, "/a?x=%20y&plan=a%20b");
    assert.equal(headers["x-user"], "alice");
    assert.equal(headers["x-tags"], "one, two");
    assert.equal(headers["x-kept"], "old");
    assert.equal(headers["x-team"], "blue");
    for (const name of ["x-missing", "x-secret", "x-broken", "x-injected", "content-length"])
      assert.equal(headers[name], undefined, name);
    const http = httpOf(seen[0]);
    assert.equal(http.method, "GET");
    assert.equal(http.path, "/a?debug=1&x=%20y&plan=old&plan=older");
    assert.equal(http.headers[":path"], http.path);
    assert.equal(http.headers["x-user"], "mallory");
    assert.equal(http.host, new URL(url).host);
    assert.equal(http.scheme, "http");
    assert.equal(http.protocol, "HTTP/1.1");
    assert.notEqual(http.id, "");
    const address = seen[0]?.attributes?.source?.address?.address;
    assert.equal(address?.case === "socketAddress" && address.value.address, "127.0.0.1");
  },
);

proveForms("extAuth", ["url"], "a server that is named by its URL decides", async (context, form) => {
  const verdicts = [ALLOW, DENY];
  const auth = await startAuthServer(context, () => verdicts.shift());
  const { url } = await guarded(context, form(`{url: "http://127.0.0.1:${auth.port}", grpc: {}}`));
  assert.equal((await call(url)).status, 200);
  const denied = await call(url);
  assert.equal(denied.status, 403);
  assert.equal(denied.body, "external authorization failed");
});

prove(
  "GwPolicy spec.traffic.extAuth.backendRef.name",
  "a server that denies answers in its own words, and its metadata are there for the answer's policies",
  async (context) => {
    const denied: Verdict = {
      status: { code: 16 },
      httpResponse: {
        case: "deniedResponse",
        value: {
          status: { code: 401 },
          headers: [set("www-authenticate", "Bearer"), set("content-type", "text/html"), set("transfer-encoding", "x")],
          body: "<b>who?</b>",
        },
      },
    };
    const { url, gateway } = await guarded(context, `{${AUTH}, grpc: {}}`, () => denied);
    const answer = await call(url);
    assert.equal(answer.status, 401);
    assert.equal(answer.headers["www-authenticate"], "Bearer");
    assert.equal(answer.headers["content-type"], "text/html");
    assert.equal(answer.body, "<b>who?</b>");
    const grpc = await call(gateway.url(), { headers: { "content-type": "application/grpc" } });
    assert.equal(grpc.status, 401);
  },
);

proveForms(
  "extAuth",
  ["grpc.contextExtensions", "grpc.requestMetadata"],
  "the server gets fixed values and computed metadata; what fails or is no map is left out",
  async (context, form) => {
    const metadata = `{mine: '{"path": request.path, "n": 2}', bad: 'request.headers["none"]', text: '"no map"'}`;
    const { url, seen } = await guarded(
      context,
      form(`{${AUTH}, grpc: {contextExtensions: {tenant: blue}, requestMetadata: ${metadata}}}`),
    );
    assert.equal((await call(`${url}/p`)).status, 200);
    assert.deepEqual(seen[0]?.attributes?.contextExtensions, { tenant: "blue" });
    assert.deepEqual(seen[0]?.attributes?.metadataContext?.filterMetadata, { mine: { path: "/p", n: 2 } });
  },
);

proveForms(
  "extAuth",
  ["forwardBody.maxSize"],
  "a body is sent along whole and still reaches the upstream; a longer one gets 413",
  async (context, form) => {
    const { url, seen } = await guarded(context, form(`{${AUTH}, grpc: {}, forwardBody: {maxSize: 8}}`));
    const passed = await call(url, { method: "POST", body: "12345678" });
    assert.equal(echoed(passed.body).body, "12345678");
    assert.equal(httpOf(seen[0]).body, "12345678");
    assert.equal(httpOf(seen[0]).size, 8n);
    assert.equal((await call(url, { method: "POST", body: "123456789" })).status, 413);
    const unknownLength = { "transfer-encoding": "chunked" };
    assert.equal((await call(url, { method: "POST", body: "123456789", headers: unknownLength })).status, 413);
    assert.equal(seen.length, 1, "what is too long is not asked for");
  },
);

prove(
  "GwPolicy spec.traffic.extAuth.backendRef.name",
  "without forwardBody the server learns the size and not the body",
  async (context) => {
    const { url, seen } = await guarded(context, `{${AUTH}, grpc: {}}`);
    assert.equal(echoed((await call(url, { method: "POST", body: "hello" })).body).body, "hello");
    assert.equal(httpOf(seen[0]).body, "");
    assert.equal(httpOf(seen[0]).size, 5n);
  },
);

type Trouble = (context: ProofContext) => Promise<number>;

const TROUBLES: Readonly<Record<string, Trouble>> = {
  down: deadPort,
  slow: async (context) => (await startAuthServer(context, () => undefined)).port,
  "half-open": (context) => startSocket(context),
  garbage: (context) =>
    startSocket(context, (socket) => socket.write("this is not a frame of HTTP/2\r\n\r\n".repeat(4))),
  hostile: (context) => startSocket(context, (socket) => socket.destroy()),
};

proveForms(
  "extAuth",
  ["failureMode"],
  "a server that is down, slow, half-open or talks garbage refuses, and lets pass when it fails open",
  async (context, form) => {
    await Promise.all(
      Object.entries(TROUBLES).map(async ([trouble, start]) => {
        const url = `"http://127.0.0.1:${await start(context)}"`;
        const closed = await guarded(context, form(`{url: ${url}, grpc: {}, failureMode: FailClosed}`));
        const open = await guarded(context, form(`{url: ${url}, grpc: {}, failureMode: FailOpen}`));
        const byDefault = await guarded(context, form(`{url: ${url}, grpc: {}}`));
        const answers = await Promise.all([closed, open, byDefault].map((setup) => call(setup.url)));
        assert.deepEqual(
          answers.map(({ status }) => status),
          [403, 200, 403],
          trouble,
        );
        assert.equal(answers[0]?.body, "external authorization failed");
      }),
    );
  },
);

prove(
  "GwPolicy spec.traffic.extAuth.failureMode",
  "a server that does not exist refuses although the policy fails open, and status says why",
  async (context) => {
    const missing = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: nobody}";
    const { url, gateway } = await guarded(context, `{${missing}, grpc: {}, failureMode: FailOpen}`);
    assert.equal((await call(url)).status, 403);
    const [fault] = gateway.translator.diagnostics();
    assert.equal(fault?.path, "spec.traffic.extAuth.backendRef");
    assert.match(fault?.message ?? "", /GwBackend default\/nobody not found/);
    const open = await guarded(
      context,
      `{url: "http://127.0.0.1:${await deadPort()}", grpc: {}, failureMode: FailOpen}`,
    );
    assert.equal((await call(open.url)).status, 200);
  },
);

prove("GwPolicy spec.traffic.extAuth.url", "a server that comes back is asked again", async (context) => {
  const first = await startAuthServer(context);
  const { url } = await guarded(context, `{url: "http://127.0.0.1:${first.port}", grpc: {}}`);
  assert.equal((await call(url)).status, 200);
  first.stop();
  assert.equal((await call(url)).status, 403);
  await startAuthServer(context, () => ALLOW, { port: first.port });
  while ((await call(url)).status !== 200);
});

proveForms(
  "extAuth",
  ["cache.key[]", "cache.ttl"],
  "a verdict holds for requests of the same key, denials too, and a key that fails is never remembered",
  async (context, form) => {
    const cache = `{key: ['request.headers["x-user"]', request.path], ttl: 1h}`;
    const decide = ({ attributes }: Parameters<NonNullable<Parameters<typeof startAuthServer>[1]>>[0]): Verdict =>
      attributes?.request?.http?.headers["x-user"] === "bob" ? DENY : OK_AS_ALICE;
    const { url, seen } = await guarded(context, form(`{${AUTH}, grpc: {}, cache: ${cache}}`), decide);
    const as = (user: string, path = "/") => call(url + path, { headers: { "x-user": user } });
    for (let round = 0; round < 3; round++) {
      const alice = await as("alice");
      assert.equal(echoed(alice.body).headers["x-known"], "yes");
      assert.equal((await as("bob")).status, 403);
    }
    assert.equal(seen.length, 2);
    await as("alice", "/other");
    assert.equal(seen.length, 3);
    await call(url);
    await call(url);
    assert.equal(seen.length, 5, "without the header the key fails");
  },
);

const OK_AS_ALICE: Verdict = {
  status: { code: 0 },
  httpResponse: { case: "okResponse", value: { headers: [set("x-known", "yes")] } },
};

proveForms(
  "extAuth",
  ["cache.ttl"],
  "the time to live may be computed from what the server said",
  async (context, form) => {
    let answers = 0;
    const decide = (): Verdict => {
      answers++;
      // The first verdict may be kept for an hour, what comes after a new one is over at once.
      const until = answers === 1 ? Math.floor(Date.now() / 1000) + 3600 : 1;
      return { status: { code: 0 }, dynamicMetadata: { until, answers } };
    };
    const cache = (ttl: string) => `cache: {key: [request.path], ttl: ${ttl}}`;
    const { url } = await guarded(context, form(`{${AUTH}, grpc: {}, ${cache('"int(extauthz.until)"')}}`), decide);
    await call(url);
    await call(url);
    assert.equal(answers, 1);
    await call(`${url}/two`);
    await call(`${url}/two`);
    assert.equal(answers, 3);
  },
);

proveForms("extAuth", ["cache.maxEntries"], "the verdict that was longest unused makes room", async (context, form) => {
  const cache = "cache: {key: [request.path], ttl: 1h, maxEntries: 2}";
  const { url, seen } = await guarded(context, form(`{${AUTH}, grpc: {}, ${cache}}`));
  for (const path of ["/a", "/b", "/a", "/c", "/a", "/b"]) await call(url + path);
  assert.deepEqual(
    seen.map((request) => httpOf(request).path),
    ["/a", "/b", "/c", "/b"],
  );
});

prove(
  ["GwPolicy spec.traffic.extAuth.conditional[].condition", "GwPolicy spec.traffic.extAuth.conditional[].policy.url"],
  "the first entry whose condition holds names the server that is asked; none means that nobody is",
  async (context) => {
    const strict = await startAuthServer(context, () => DENY);
    const first = `{condition: 'request.path == "/first"', policy: {url: "http://127.0.0.1:${strict.port}", grpc: {}}}`;
    const second = `{condition: 'request.path.startsWith("/s")', policy: {${AUTH}, grpc: {}}}`;
    const { url, seen } = await guarded(context, `{conditional: [${first}, ${second}]}`);
    assert.equal((await call(`${url}/first`)).status, 403);
    assert.equal((await call(`${url}/second`)).status, 200);
    assert.equal((await call(`${url}/else`)).status, 200);
    assert.deepEqual([strict.seen.length, seen.length], [1, 1]);
  },
);

prove(
  ["GwPolicy spec.traffic.phase", "GwPolicy spec.traffic.extAuth.backendRef.name"],
  "before routing a server decides also about requests that no route takes",
  async (context) => {
    const gatewayPolicy = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: early}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic: {phase: PreRouting, extAuth: {${AUTH}, grpc: {}}}
`;
    const auth = await startAuthServer(context, () => ({
      ...OK_AS_ALICE,
      httpResponse: { case: "okResponse", value: { headers: [set(":path", "/app/moved")] } },
    }));
    const echo = await startEcho(context);
    const manifests = [GATEWAY, staticBackend("web", echo.port), route("web", "web", "/app"), gatewayPolicy];
    const gateway = await startGateway(context, documents(...manifests, staticBackend("auth", auth.port)));
    const answer = await call(`${gateway.url()}/elsewhere`);
    assert.equal(answer.status, 200);
    assert.equal(echoed(answer.body).url, "/app/moved");
    assert.equal(auth.seen.length, 1);
  },
);

/** The server as a Service of another namespace. */
const serviceOf = (port: number, name: string) => `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: infra}
spec: {ports: [{name: grpc, port: 9000}, {name: other, port: 9001}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: infra, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
ports: [{name: grpc, port: ${port}}, {name: other, port: 1}]
`;

proveForms(
  "extAuth",
  ["backendRef.namespace", "backendRef.port", "backendRef.name"],
  "a Service of another namespace decides, and its endpoints are followed",
  async (context, form: Form) => {
    const deny = await startAuthServer(context, () => DENY);
    const { url, gateway } = await guarded(
      context,
      form("{backendRef: {name: decider, namespace: infra, port: 9000}, grpc: {}}"),
      undefined,
      [serviceOf(deny.port, "decider")],
    );
    const answer = await call(url);
    assert.equal(answer.status, 403);
    assert.equal(deny.seen.length, 1);
    assert.deepEqual(gateway.translator.diagnostics(), []);
  },
);
