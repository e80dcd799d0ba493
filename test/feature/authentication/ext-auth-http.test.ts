/** traffic.extAuth over HTTP through real sockets. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { proveForms } from "../../support/proofs/forms.ts";
import { routePolicy, startWeb, staticBackend, type TestGateway } from "../../support/gateway/gateway.ts";
import { deadPort, startSocket } from "../../support/servers/grpc.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

interface Checker {
  readonly port: number;
  readonly seen: readonly Asked[];
}

type Decide = (asked: Asked, response: ServerResponse) => void;

const allow: Decide = (_asked, response) => void response.writeHead(200).end("fine");
const status =
  (code: number): Decide =>
  (_asked, response) =>
    void response.writeHead(code, { "x-reason": "no", "content-type": "text/html" }).end("<b>no</b>");

async function startChecker(context: ProofContext, decide: Decide): Promise<Checker> {
  const seen: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const asked = { method, url, headers, body: Buffer.concat(chunks).toString() };
      seen.push(asked);
      decide(asked, response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  // A TCP server that listens on a port has an address of this form.
  return { port: (server.address() as AddressInfo).port, seen };
}

interface Setup extends Checker {
  readonly gateway: TestGateway;
  readonly url: string;
}

const CHECK = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: check}";

/** A route `web` to an echo, behind a server that is the GwBackend `check`. @param policy YAML flow */
async function guarded(
  context: ProofContext,
  policy: string,
  decide = allow,
  more: readonly string[] = [],
): Promise<Setup> {
  const checker = await startChecker(context, decide);
  const echo = await startEcho(context);
  const gateway = await startWeb(
    context,
    echo.port,
    staticBackend("check", checker.port),
    routePolicy("check", "web", `  traffic: {extAuth: ${policy}}`),
    ...more,
  );
  // `validate` and `up` warn about conditions that fail where a header is missing; this test is about just that.
  assert.deepEqual(
    gateway.problems().filter(({ severity }) => severity === "error"),
    [],
  );
  return { ...checker, gateway, url: gateway.url() };
}

prove(
  "GwPolicy spec.traffic.extAuth.backendRef.name",
  "by default the server sees method, path and Authorization, and 2xx lets the request pass unchanged",
  async (context) => {
    const { url, seen } = await guarded(context, `{${CHECK}, http: {}}`, status(204));
    const headers = { authorization: "Bearer t", cookie: "a=b", "x-other": "1" };
    const answer = await call(`${url}/p?q=1`, { method: "POST", body: "hello", headers });
    assert.equal(answer.status, 200);
    assert.equal(echoed(answer.body).body, "hello");
    assert.equal(echoed(answer.body).headers["x-reason"], undefined);
    const [asked] = seen;
    assert.deepEqual([asked?.method, asked?.url, asked?.body], ["POST", "/p?q=1", ""]);
    assert.equal(asked?.headers["authorization"], "Bearer t");
    assert.equal(asked?.headers["cookie"], undefined);
    assert.equal(asked?.headers["x-other"], undefined);
  },
);

proveForms(
  "extAuth",
  ["http.path", "http.addRequestHeaders", "http.allowedRequestHeaders[]"],
  "path and headers of the call are computed or taken over by name, and a failing header is not sent",
  async (context, form) => {
    const added = `{x-path: request.path, x-broken: 'request.headers["none"]', x-sent: '"ours"'}`;
    const policy = `path: '"/check" + request.path', allowedRequestHeaders: [X-Tenant, ":authority", x-sent, content-length], addRequestHeaders: ${added}`;
    const { url, seen } = await guarded(context, form(`{${CHECK}, http: {${policy}}}`));
    const headers = { "x-tenant": "blue", "x-sent": "theirs", authorization: "Bearer t", host: "shop.example" };
    assert.equal((await call(`${url}/p?q=1`, { headers })).status, 200);
    const [asked] = seen;
    assert.equal(asked?.url, "/check/p");
    assert.equal(asked?.headers["host"], "shop.example");
    assert.equal(asked?.headers["x-tenant"], "blue");
    assert.equal(asked?.headers["x-path"], "/p");
    assert.equal(asked?.headers["x-sent"], "ours");
    assert.equal(asked?.headers["x-broken"], undefined);
    assert.equal(asked?.headers["authorization"], undefined);
  },
);

proveForms(
  "extAuth",
  ["http.allowedResponseHeaders[]", "http.responseMetadata"],
  "headers of the answer replace those of the request, and its body becomes metadata",
  async (context, form) => {
    const decide: Decide = (_asked, response) =>
      void response
        .writeHead(200, [
          ["x-user", "alice"],
          ["x-role", "a"],
          ["x-role", "b"],
          ["x-private", "p"],
          ["content-type", "application/json"],
        ])
        .end('{"team": "blue"}');
    const metadata = `{team: json(response.body).team, code: response.code, broken: 'response.headers["none"]'}`;
    const http = `{allowedResponseHeaders: [X-User, x-role, content-length], responseMetadata: ${metadata}}`;
    const show = `[{name: x-team, value: extauthz.team + string(extauthz.code)}, {name: x-broken, value: string(extauthz.broken)}]`;
    const { url } = await guarded(context, form(`{${CHECK}, http: ${http}}`), decide, [
      routePolicy("show", "web", `  traffic: {transformation: {request: {set: ${show}}}}`),
    ]);
    const { headers } = echoed((await call(url, { headers: { "x-user": "mallory", "x-role": "root" } })).body);
    assert.equal(headers["x-user"], "alice");
    assert.equal(headers["x-role"], "a, b");
    assert.equal(headers["x-private"], undefined);
    assert.equal(headers["x-team"], "blue200");
    assert.equal(headers["x-broken"], undefined);
  },
);

proveForms(
  "extAuth",
  ["http.allowedResponseHeaders[]"],
  "a client cannot send what only the server may say, whether the server says it, says nothing or cannot be asked",
  async (context, form) => {
    const forged = { "X-User": "mallory", x_user: "mallory", "x-ROLE": ["root", "admin"], "x-other": "mine" };
    const owned = "allowedResponseHeaders: [X-User, x-role, host, content-length]";
    const says: Decide = (asked, response) =>
      void response.writeHead(200, asked.url === "/silent" ? {} : { "x-user": "alice" }).end();
    const cache = "cache: {key: [request.path], ttl: 1h}";
    const { url, seen } = await guarded(
      context,
      form(`{${CHECK}, ${cache}, http: {${owned}, allowedRequestHeaders: [x-user]}}`),
      says,
    );
    const closedPort = `url: "http://127.0.0.1:${await deadPort()}"`;
    const open = await guarded(context, form(`{${closedPort}, failureMode: FailOpen, http: {${owned}}}`));
    for (const [target, user] of [
      [url, "alice"],
      [`${url}/silent`, undefined],
      // From the cache.
      [url, "alice"],
      [`${url}/silent`, undefined],
      [open.url, undefined],
    ] as const) {
      const answer = await call(target, { method: "POST", body: "abc", headers: forged });
      assert.equal(answer.status, 200);
      const { headers, body } = echoed(answer.body);
      assert.deepEqual([headers["x-user"], headers["x_user"], headers["x-role"]], [user, undefined, undefined], target);
      assert.deepEqual([headers["x-other"], body], ["mine", "abc"]);
    }
    assert.deepEqual(
      seen.map((asked) => asked.headers["x-user"]),
      ["mallory", "mallory"],
      "the server may judge what the client says",
    );
  },
);

prove([], "an outage that fails open is never remembered as an answer", async (context) => {
  let isDown = true;
  const decide: Decide = (asked, response) => (isDown ? response.destroy() : status(403)(asked, response));
  const cache = `cache: {key: ['"all"'], ttl: 1h}`;
  const { url } = await guarded(context, `{${CHECK}, http: {}, failureMode: FailOpen, ${cache}}`, decide);
  for (let round = 0; round < 2; round++) assert.equal((await call(url)).status, 200);
  isDown = false;
  for (let round = 0; round < 2; round++) assert.equal((await call(url)).status, 403);
  isDown = true;
  assert.equal((await call(url)).status, 403, "what the server did say is remembered");
});

proveForms("extAuth", ["http.body"], "the body of the call is computed, as text or as JSON", async (context, form) => {
  const { url, seen } = await guarded(context, form(`{${CHECK}, http: {body: '{"who": request.headers["x-user"]}'}}`));
  const answer = await call(url, { method: "POST", body: "mine", headers: { "x-user": "alice" } });
  assert.equal(echoed(answer.body).body, "mine");
  assert.equal(seen[0]?.body, '{"who":"alice"}');
  assert.equal(seen[0]?.headers["x-ext-auth-partial-body"], undefined);
});

proveForms(
  "extAuth",
  ["http.redirect"],
  "a caller who is refused with 401 or 403 is sent elsewhere, and any other answer is relayed",
  async (context, form) => {
    const answers = [401, 403, 418, 503];
    const decide: Decide = (asked, response) => status(answers.shift() ?? 200)(asked, response);
    const { url } = await guarded(
      context,
      form(`{${CHECK}, http: {redirect: '"https://login.example/?to=" + url.encode(request.path)'}}`),
      decide,
    );
    for (let round = 0; round < 2; round++) {
      const sent = await call(`${url}/a b`.replace(" ", "%20"));
      assert.equal(sent.status, 302);
      assert.equal(sent.headers["location"], "https://login.example/?to=%2Fa%2520b");
      assert.equal(sent.body, "");
    }
    const relayed = await call(url);
    assert.equal(relayed.status, 418);
    assert.equal(relayed.body, "<b>no</b>");
    assert.equal(relayed.headers["x-reason"], "no");
    assert.equal(relayed.headers["content-type"], "text/html");
    assert.equal((await call(url)).status, 503);
    assert.equal((await call(url)).status, 200);
  },
);

proveForms(
  "extAuth",
  ["failureMode"],
  "expressions that fail refuse whatever the failure mode; it covers only a server that cannot be asked",
  async (context, form) => {
    const missing = `'request.headers["none"]'`;
    for (const http of [`{path: ${missing}}`, `{body: ${missing}}`, `{path: '"no slash"'}`, `{redirect: ${missing}}`]) {
      const { url } = await guarded(context, form(`{${CHECK}, failureMode: FailOpen, http: ${http}}`), status(401));
      const answer = await call(url);
      assert.deepEqual([answer.status, answer.body], [403, "external authorization failed"], http);
    }
    const open = form(`{url: "http://127.0.0.1:${await deadPort()}", failureMode: FailOpen, http: {}}`);
    assert.equal((await call((await guarded(context, open)).url)).status, 200);
  },
);

const TROUBLES: Readonly<Record<string, (context: ProofContext) => Promise<number>>> = {
  down: deadPort,
  slow: async (context) => (await startChecker(context, () => undefined)).port,
  "half-open": (context) => startSocket(context),
  garbage: (context) => startSocket(context, (socket) => socket.write("this is no HTTP\r\n\r\n")),
  "never-ending": (context) =>
    startChecker(context, (_asked, response) => {
      response.writeHead(200);
      response.write("x");
    }).then(({ port }) => port),
  huge: (context) =>
    startChecker(context, (_asked, response) => void response.end(Buffer.alloc(3_000_000))).then(({ port }) => port),
};

proveForms(
  "extAuth",
  ["failureMode", "url"],
  "a server that is down, slow, half-open, endless, huge or talks garbage refuses, and lets pass when it fails open",
  async (context, form) => {
    await Promise.all(
      Object.entries(TROUBLES).map(async ([trouble, start]) => {
        const url = `"http://127.0.0.1:${await start(context)}"`;
        const closed = await guarded(context, form(`{url: ${url}, http: {}, failureMode: FailClosed}`));
        const open = await guarded(context, form(`{url: ${url}, http: {}, failureMode: FailOpen}`));
        const answers = await Promise.all([closed, open].map((setup) => call(setup.url)));
        assert.deepEqual(
          answers.map((answer) => answer.status),
          [403, 200],
          trouble,
        );
      }),
    );
  },
);

proveForms("extAuth", ["url"], "the path of a URL is the path of the call", async (context, form) => {
  const checker = await startChecker(context, status(403));
  const { url } = await guarded(context, form(`{url: "http://127.0.0.1:${checker.port}/verify/me", http: {}}`));
  assert.equal((await call(`${url}/p?q=1`)).status, 403);
  assert.equal(checker.seen[0]?.url, "/verify/me");
  assert.equal(checker.seen[0]?.headers["host"], `127.0.0.1:${checker.port}`);
});

proveForms(
  "extAuth",
  ["forwardBody.maxSize"],
  "a body is forwarded whole and marked so; a longer one gets 413 and is not asked for",
  async (context, form) => {
    const { url, seen } = await guarded(context, form(`{${CHECK}, http: {}, forwardBody: {maxSize: 1Ki}}`));
    const answer = await call(url, { method: "PUT", body: "x".repeat(1024) });
    assert.equal(echoed(answer.body).body.length, 1024);
    assert.equal(seen[0]?.body.length, 1024);
    assert.equal(seen[0]?.headers["x-ext-auth-partial-body"], "false");
    assert.equal((await call(url, { method: "PUT", body: "x".repeat(1025) })).status, 413);
    assert.equal(seen.length, 1);
  },
);

proveForms(
  "extAuth",
  ["cache.key[]", "cache.ttl"],
  "allowing and refusing answers are remembered, an answer of 5xx is not",
  async (context, form) => {
    const decide: Decide = (asked, response) => status(Number(asked.url.slice(1)))(asked, response);
    const { url, seen } = await guarded(
      context,
      form(`{${CHECK}, http: {}, cache: {key: [request.path], ttl: 1h}}`),
      decide,
    );
    for (const code of [200, 403, 503]) {
      for (let round = 0; round < 2; round++) assert.equal((await call(`${url}/${code}`)).status, code);
    }
    assert.deepEqual(
      seen.map((asked) => asked.url),
      ["/200", "/403", "/503", "/503"],
    );
  },
);

prove(
  "GwBackend spec.policies.auth.key",
  "the server's own policies apply to the call: it gets its credential, and the upstream does not",
  async (context) => {
    const checker = await startChecker(context, allow);
    const keyed = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: keyed}
spec: {static: {host: 127.0.0.1, port: ${checker.port}}, policies: {auth: {key: "Bearer for-the-server"}}}
`;
    const { url } = await guarded(context, `{${CHECK.replace("check", "keyed")}, http: {}}`, allow, [keyed]);
    const answer = await call(url);
    assert.equal(answer.status, 200);
    assert.equal(checker.seen[0]?.headers["authorization"], "Bearer for-the-server");
    assert.equal(echoed(answer.body).headers["authorization"], undefined);
  },
);

prove(
  "GwPolicy spec.traffic.extAuth.conditional[].condition",
  "a condition that fails, or is not a boolean, chooses its server: leaving out a header does not help",
  async (context) => {
    const strict = await startChecker(context, status(403));
    for (const condition of ['request.headers["x-from"] == "outside"', "json(request.headers['x-json']).outside"]) {
      const first = `{condition: ${JSON.stringify(condition)}, policy: {url: "http://127.0.0.1:${strict.port}", http: {}}}`;
      const { url } = await guarded(context, `{conditional: [${first}, {policy: {${CHECK}, http: {}}}]}`);
      const inside = { "x-from": "inside", "x-json": '{"outside": false}' };
      assert.equal((await call(url, { headers: inside })).status, 200, condition);
      assert.equal((await call(url)).status, 403, condition);
      assert.equal((await call(url, { headers: { "x-json": '{"outside": 1}' } })).status, 403, condition);
    }
  },
);
