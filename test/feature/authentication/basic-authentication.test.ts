/** traffic.basicAuthentication through real sockets. */
import assert from "node:assert/strict";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  route,
  routePolicy,
  startGateway,
  startWeb,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { HTPASSWD } from "../../support/fixtures/htpasswd.ts";
import { call } from "../../support/clients/http.ts";
import { testClock } from "../../support/gateway/test-clock.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

const BASIC = "GwPolicy spec.traffic.basicAuthentication";
const ANN = "'ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='";

const FILE = `
apiVersion: v1
kind: Secret
metadata: {name: users}
stringData:
  .htaccess: |
    # made by htpasswd
    ann:$2y$05$wkcVS32lLf0d7TKFTIb33eaBWOpkpIP1d4YahqSiteTx5gt0zpMAe
    plain:secret
  others: |
    eve:$apr1$eRXov4JN$fTXsVAAnMKO0qliSxySJj0
`;

async function guard(context: ProofContext, settings: string, ...more: readonly string[]): Promise<TestGateway> {
  const echo = await startEcho(context);
  const policy = routePolicy("users", "web", `  traffic: {basicAuthentication: ${settings}}`);
  return startWeb(context, echo.port, policy, ...more);
}

function encoded(user: string, password: string): string {
  return Buffer.from(`${user}:${password}`).toString("base64");
}

function as(user: string, password = "secret") {
  return { headers: { authorization: `Basic ${encoded(user, password)}` } };
}

prove(`${BASIC}.users[]`, "a listed user passes with the password and is stripped of it", async (context) => {
  const gateway = await guard(context, `{users: [${ANN}]}`);
  const passed = await call(gateway.url(), as("ann"));
  assert.equal(passed.status, 200);
  assert.equal(echoed(passed.body).headers["authorization"], undefined);
  const refused = await call(gateway.url(), as("ann", "wrong"));
  assert.equal(refused.status, 401);
  assert.equal(refused.headers["www-authenticate"], 'Basic realm="Restricted"');
  assert.equal(refused.body, "basic authentication failure: invalid credentials");
  const missing = await call(gateway.url());
  assert.equal(missing.status, 401);
  assert.equal(missing.body, "basic authentication failure: no credentials found");
});

prove(`${BASIC}.users[]`, "lines made by Apache's tool are understood in every form", async (context) => {
  const made = HTPASSWD.filter(({ password }) => password === "secret" || password.startsWith("exactly"));
  const lines = made.map(({ hash }, at) => `"user${at}:${hash}"`).join(", ");
  const gateway = await guard(context, `{users: [${lines}]}`);
  for (const [at, { flags, password }] of made.entries()) {
    assert.equal((await call(gateway.url(), as(`user${at}`, password))).status, 200, flags);
    assert.equal((await call(gateway.url(), as(`user${at}`, `${password.slice(0, 5)}x`))).status, 401, flags);
  }
});

prove(
  [`${BASIC}.secretRef.name`, `${BASIC}.realm`],
  "the users of a Secret pass, plain text is no password, and the realm is told",
  async (context) => {
    const gateway = await guard(context, "{realm: Backstage, secretRef: {name: users}}", FILE);
    assert.equal((await call(gateway.url(), as("ann"))).status, 200);
    const refused = await call(gateway.url(), as("plain"));
    assert.equal(refused.status, 401);
    assert.equal(refused.headers["www-authenticate"], 'Basic realm="Backstage"');
    assert.equal((await call(gateway.url(), as("eve"))).status, 401);
    const [problem] = gateway.translator.diagnostics();
    assert.match(
      problem?.message ?? "",
      /Secret users, entry \.htaccess, line 3 is skipped: the hash is in no known form/,
    );
  },
);

prove(`${BASIC}.secretRef.key`, "another entry of the Secret holds other users", async (context) => {
  const gateway = await guard(context, "{secretRef: {name: users, key: others}}", FILE);
  assert.equal((await call(gateway.url(), as("eve"))).status, 200);
  assert.equal((await call(gateway.url(), as("ann"))).status, 401);
});

prove(
  [`${BASIC}.secretRef.group`, `${BASIC}.secretRef.kind`],
  "a credential of a kind that nobody knows lets nobody in",
  async (context) => {
    const foreign = "{secretRef: {name: users, group: vault.example, kind: Password}}";
    const gateway = await guard(context, foreign, FILE);
    assert.equal((await call(gateway.url(), as("ann"))).status, 401);
    assert.match(
      gateway.translator.diagnostics()[0]?.message ?? "",
      /unsupported credential kind Password of group "vault.example"/,
    );
  },
);

prove(`${BASIC}.mode`, "Optional lets requests without credentials pass, but no wrong ones", async (context) => {
  const gateway = await guard(context, `{mode: Optional, users: [${ANN}]}`);
  assert.equal((await call(gateway.url())).status, 200);
  assert.equal((await call(gateway.url(), as("ann", "wrong"))).status, 401);
});

prove(
  [`${BASIC}.location.header.name`, `${BASIC}.location.header.prefix`],
  "credentials are read from the header that the policy names",
  async (context) => {
    const gateway = await guard(context, `{users: [${ANN}], location: {header: {name: x-user, prefix: "Who "}}}`);
    const value = encoded("ann", "secret");
    assert.equal((await call(gateway.url(), { headers: { "x-user": `Who ${value}` } })).status, 200);
    assert.equal((await call(gateway.url(), { headers: { "x-user": value } })).status, 401);
    assert.equal((await call(gateway.url(), as("ann"))).status, 401);
  },
);

prove(
  `${BASIC}.location.header.name`,
  "users of a forward proxy are asked with 407, and stay unseen",
  async (context) => {
    const settings = `{users: [${ANN}], location: {header: {name: Proxy-Authorization, prefix: "Basic "}}}`;
    const gateway = await guard(context, settings);
    const refused = await call(gateway.url(), as("ann"));
    assert.equal(refused.status, 407);
    assert.equal(refused.headers["proxy-authenticate"], 'Basic realm="Restricted"');
    const headers = { "proxy-authorization": `Basic ${encoded("ann", "secret")}` };
    const passed = await call(gateway.url(), { headers });
    assert.equal(passed.status, 200);
    assert.equal(echoed(passed.body).headers["proxy-authorization"], undefined);
  },
);

prove(`${BASIC}.location.queryParameter.name`, "credentials are read from a query parameter", async (context) => {
  const gateway = await guard(context, `{users: [${ANN}], location: {queryParameter: {name: who}}}`);
  const passed = await call(`${gateway.url()}/a?who=${encodeURIComponent(encoded("ann", "secret"))}&x=1`);
  assert.equal(passed.status, 200);
  assert.equal(echoed(passed.body).url, "/a?x=1");
  assert.equal((await call(`${gateway.url()}/a`)).status, 401);
});

prove(`${BASIC}.location.cookie.name`, "credentials are read from a cookie", async (context) => {
  const gateway = await guard(context, `{users: [${ANN}], location: {cookie: {name: who}}}`);
  const cookie = `who=${encoded("ann", "secret")}; b=2`;
  const passed = await call(gateway.url(), { headers: { cookie } });
  assert.equal(passed.status, 200);
  assert.equal(echoed(passed.body).headers["cookie"], "b=2");
});

prove(`${BASIC}.location.expression`, "credentials are what an expression yields", async (context) => {
  const settings = `{users: [${ANN}], location: {expression: 'request.headers["x-a"]'}}`;
  const gateway = await guard(context, settings);
  assert.equal((await call(gateway.url(), { headers: { "x-a": encoded("ann", "secret") } })).status, 200);
  assert.equal((await call(gateway.url())).status, 401);
});

prove([], "a Secret that is removed lets nobody in any more, at once", async (context) => {
  const echo = await startEcho(context);
  const policy = routePolicy("users", "web", "  traffic: {basicAuthentication: {secretRef: {name: users}}}");
  const base = documents(GATEWAY, staticBackend("web", echo.port), route("web", "web"), policy);
  const gateway = await startGateway(context, documents(base, FILE));
  assert.equal((await call(gateway.url(), as("ann"))).status, 200);
  await gateway.change(base);
  assert.equal((await call(gateway.url(), as("ann"))).status, 401);
});

prove(
  [],
  "users before routing and keys of the route must both pass, each with its own credential",
  async (context) => {
    const echo = await startEcho(context);
    const keys = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {one: open-sesame}
`;
    const gateway = await startWeb(
      context,
      echo.port,
      keys,
      gatewayPolicy("early", `  traffic: {phase: PreRouting, basicAuthentication: {users: [${ANN}]}}`),
      routePolicy("late", "web", "  traffic: {apiKeyAuthentication: {secretRef: {name: keys}}}"),
    );
    const basic = `Basic ${encoded("ann", "secret")}`;
    const send = (authorization: string | string[]) => call(gateway.url(), { headers: { authorization } });
    assert.equal((await send([basic, "Bearer open-sesame"])).status, 200);
    assert.equal((await send(basic)).headers["www-authenticate"], "Bearer");
    assert.equal((await send("Bearer open-sesame")).headers["www-authenticate"], 'Basic realm="Restricted"');
  },
);

/** Sends wrong passwords without a pause until it is told to stop. */
function startGuessing(url: string, from: string, answered: () => void): () => Promise<void> {
  let stopped = false;
  const guess = async (): Promise<void> => {
    for (let at = 0; !stopped; at++) {
      const { status } = await call(url, { ...as("ann", `${from} ${at}`), from });
      assert.equal(status, 401);
      answered();
    }
  };
  const guesses = guess();
  return async () => {
    stopped = true;
    await guesses;
  };
}

prove([], "a hundred guessers keep nobody out who knows the password, of this policy or another", async (context) => {
  const echo = await startEcho(context);
  // Cost 5: a few milliseconds each.
  const users = "basicAuthentication: {users: ['ann:$2y$05$wkcVS32lLf0d7TKFTIb33eaBWOpkpIP1d4YahqSiteTx5gt0zpMAe']}";
  // The clock stands still: on a busy machine two turns may take longer than a check may wait.
  const manifests = documents(
    GATEWAY,
    staticBackend("web", echo.port),
    route("web", "web"),
    route("other", "web", "/other"),
    routePolicy("users", "web", `  traffic: {${users}}`),
    routePolicy("other-users", "other", `  traffic: {${users}}`),
  );
  const gateway = await startGateway(context, manifests, { clock: testClock() });
  const warm = Promise.withResolvers<void>();
  let answers = 0;
  const stops = [...Array(100).keys()].map((at) =>
    startGuessing(gateway.url(), `127.0.1.${at + 1}`, () => {
      // By then each of them is known for a guesser.
      if (++answers === 250) warm.resolve();
    }),
  );
  try {
    await warm.promise;
    for (const [path, from] of [
      ["/", "127.0.0.1"],
      ["/other", "127.0.0.1"],
      // The address of a guesser, but another policy.
      ["/other", "127.0.1.1"],
      ["/", "127.0.0.9"],
    ] as const) {
      const before = answers;
      assert.equal((await call(gateway.url() + path, { ...as("ann"), from })).status, 200, `${path} ${from}`);
      // A guess of each guesser waits; nobody waits for all of them.
      assert.ok(answers - before < 50, `${answers - before} guesses were answered first`);
    }
  } finally {
    await Promise.all(stops.map((stop) => stop()));
  }
});
