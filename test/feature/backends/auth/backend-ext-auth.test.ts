/** `extAuth` of a backend: a server decides about each attempt, once the destination is chosen. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { call } from "../../../support/clients/http.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../../support/proofs/prove.ts";
import { serviceElsewhere } from "../../../support/gateway/service-elsewhere.ts";
import { startAuthServer } from "../../../support/servers/auth-server.ts";
import { echoed, startEcho } from "../../../support/servers/echo.ts";
import { deadPort } from "../../../support/servers/grpc.ts";

interface Asked {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Starts an HTTP server that answers each check. */
async function startChecker(
  context: ProofContext,
  answer: (asked: Asked, times: number) => Answer = () => ({ status: 200 }),
): Promise<{ readonly port: number; readonly seen: readonly Asked[] }> {
  const seen: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const asked = { url: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks).toString() };
      seen.push(asked);
      const { status, headers, body } = answer(asked, seen.length);
      response.writeHead(status, headers).end(body);
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

/** Returns the objects of a backend `web` with the block. */
type Objects = (port: number, block: string) => string;

const inBackend: Objects = (port, block) =>
  `${staticBackend("web", port).trimEnd()}\n  policies: {extAuth: ${block}}\n`;
const inPolicy: Objects = (port, block) =>
  documents(staticBackend("web", port), routePolicy("who", "web", `  backend: {extAuth: ${block}}`));

const PLACES: readonly (readonly [string, Objects])[] = [
  ["GwBackend spec.policies.extAuth", inBackend],
  ["GwPolicy spec.backend.extAuth", inPolicy],
];

const CHECK = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: check}";

async function guarded(
  context: ProofContext,
  objects: string,
  checkPort: number,
  ...more: readonly string[]
): Promise<TestGateway> {
  return startGateway(
    context,
    documents(GATEWAY, staticBackend("check", checkPort), objects, route("web", "web"), ...more),
  );
}

for (const [prefix, objects] of PLACES) {
  const place = prefix.split(" ")[0] ?? "";
  const fields = (...names: readonly string[]): string[] => names.map((name) => `${prefix}.${name}`);

  prove(
    fields(
      "backendRef.group",
      "backendRef.kind",
      "backendRef.name",
      "http.path",
      "http.body",
      "http.allowedRequestHeaders[]",
      "http.addRequestHeaders",
      "http.allowedResponseHeaders[]",
    ),
    `the server learns the chosen backend, and its headers go only to that backend (${place})`,
    async (context) => {
      const echo = await startEcho(context);
      const { port, seen } = await startChecker(context, () => ({ status: 200, headers: { "x-minted": "ours" } }));
      const block = `{${CHECK}, http: {path: '"/" + backend.name', body: '"to " + backend.name', allowedRequestHeaders: [x-who], addRequestHeaders: {x-backend: backend.name}, allowedResponseHeaders: [x-minted]}}`;
      const gateway = await guarded(context, objects(echo.port, block), port);
      const answer = await call(gateway.url(), { method: "POST", headers: { "x-who": "ann", "x-minted": "theirs" } });
      assert.equal(answer.status, 200);
      assert.equal(echoed(answer.body).headers["x-minted"], "ours");
      const [asked] = seen;
      assert.deepEqual([asked?.url, asked?.body], ["/default/web", "to default/web"]);
      assert.deepEqual([asked?.headers["x-who"], asked?.headers["x-backend"]], ["ann", "default/web"]);
    },
  );

  prove(
    fields("backendRef.namespace", "backendRef.port"),
    `the server may be a Service of another namespace (${place})`,
    async (context) => {
      const echo = await startEcho(context);
      const { port, seen } = await startChecker(context);
      const block = "{backendRef: {name: check, namespace: infra, port: 80}, http: {}}";
      const gateway = await guarded(context, objects(echo.port, block), port, ...serviceElsewhere(port, "check"));
      assert.deepEqual([(await call(gateway.url())).status, seen.length, echo.seen.length], [200, 1, 1]);
    },
  );

  prove(fields("http.redirect"), `a refusal is answered by a redirect (${place})`, async (context) => {
    const echo = await startEcho(context);
    const { port } = await startChecker(context, () => ({ status: 401 }));
    const block = `{${CHECK}, http: {redirect: '"/login?for=" + backend.name'}}`;
    const gateway = await guarded(context, objects(echo.port, block), port);
    const { status, headers } = await call(gateway.url());
    assert.deepEqual([status, headers["location"]], [302, "/login?for=default/web"]);
    assert.equal(echo.seen.length, 0);
  });

  prove(
    fields("http.responseMetadata"),
    `the answer's metadata are there for later blocks (${place})`,
    async (context) => {
      const echo = await startEcho(context);
      const { port } = await startChecker(context, () => ({ status: 200, body: '{"team": "blue"}' }));
      const block = `{${CHECK}, http: {responseMetadata: {team: json(response.body).team}}}`;
      const change = "  backend: {transformation: {request: {set: [{name: x-team, value: extauthz.team}]}}}";
      const gateway = await guarded(context, objects(echo.port, block), port, routePolicy("zz", "web", change));
      assert.equal(echoed((await call(gateway.url())).body).headers["x-team"], "blue");
    },
  );

  prove(
    fields("forwardBody.maxSize"),
    `the body is sent along, and a longer one gets 413 (${place})`,
    async (context) => {
      const echo = await startEcho(context);
      const { port, seen } = await startChecker(context);
      const gateway = await guarded(
        context,
        objects(echo.port, `{${CHECK}, http: {}, forwardBody: {maxSize: 8}}`),
        port,
      );
      const post = async (body: string) => call(gateway.url(), { method: "POST", body });
      assert.equal(echoed((await post("12345678")).body).body, "12345678");
      assert.equal((await post("123456789")).status, 413);
      assert.deepEqual(
        seen.map(({ body }) => body),
        ["12345678"],
      );
    },
  );

  prove(
    fields("cache.key[]", "cache.ttl", "cache.maxEntries"),
    `verdicts are kept for requests of the same key (${place})`,
    async (context) => {
      const echo = await startEcho(context);
      const { port, seen } = await startChecker(context);
      const block = `{${CHECK}, http: {}, cache: {key: ['request.headers["x-who"]'], ttl: 1h, maxEntries: 1}}`;
      const gateway = await guarded(context, objects(echo.port, block), port);
      for (const who of ["ann", "ann", "bob", "ann"])
        assert.equal((await call(gateway.url(), { headers: { "x-who": who } })).status, 200);
      assert.equal(seen.length, 3);
    },
  );

  prove(
    fields("failureMode"),
    `without the server requests pass only when it fails open (${place})`,
    async (context) => {
      const echo = await startEcho(context);
      const port = await deadPort();
      const open = await guarded(context, objects(echo.port, `{${CHECK}, http: {}, failureMode: FailOpen}`), port);
      assert.equal((await call(open.url())).status, 200);
      const closed = await guarded(context, objects(echo.port, `{${CHECK}, http: {}}`), port);
      assert.equal((await call(closed.url())).status, 403);
    },
  );

  prove(
    fields("url", "grpc.contextExtensions", "grpc.requestMetadata"),
    `a gRPC server gets fixed values and computed metadata (${place})`,
    async (context) => {
      const echo = await startEcho(context);
      const auth = await startAuthServer(context);
      const block = `{url: "http://127.0.0.1:${auth.port}", grpc: {contextExtensions: {zone: a}, requestMetadata: {to: '{"name": backend.name}'}}}`;
      const gateway = await startGateway(context, documents(GATEWAY, objects(echo.port, block), route("web", "web")));
      assert.equal((await call(gateway.url())).status, 200);
      const attributes = auth.seen[0]?.attributes;
      assert.deepEqual(attributes?.contextExtensions, { zone: "a" });
      assert.deepEqual(attributes?.metadataContext?.filterMetadata["to"], { name: "default/web" });
    },
  );
}

prove([], "each attempt is asked about, and takes nothing over from the one before", async (context) => {
  const upstream = await startChecker(context, (_asked, times) => ({ status: times === 1 ? 503 : 200 }));
  const check = await startChecker(context, (_asked, times) =>
    times === 1 ? { status: 200, headers: { "x-minted": "first" } } : { status: 200, headers: { "x-other": "second" } },
  );
  const block = `{${CHECK}, http: {allowedRequestHeaders: [x-minted, x-other], allowedResponseHeaders: [x-minted, x-other]}}`;
  const again = routePolicy("again", "web", "  traffic: {retry: {attempts: 1, codes: [503]}}");
  const gateway = await guarded(context, inBackend(upstream.port, block), check.port, again);
  assert.equal((await call(gateway.url())).status, 200);
  assert.deepEqual(
    upstream.seen.map(({ headers }) => [headers["x-minted"], headers["x-other"]]),
    [
      ["first", undefined],
      [undefined, "second"],
    ],
  );
  assert.deepEqual([check.seen.length, check.seen[1]?.headers["x-minted"]], [2, undefined]);
});

prove([], "a server that is behind the block itself is not asked, and nothing passes", async (context) => {
  const echo = await startEcho(context);
  const block = "{backendRef: {group: gwproxy.dev, kind: GwBackend, name: web}, http: {}, failureMode: FailOpen}";
  const gateway = await startGateway(context, documents(GATEWAY, inBackend(echo.port, block), route("web", "web")));
  assert.ok((await call(gateway.url())).status >= 400);
  assert.equal(echo.seen.length, 0);
});

const KINDS = [
  ["ai", "ai: {provider: {llma: {}}}", "/v1/chat/completions"],
  ["mcp", "mcp: {targets: [{name: t, static: {host: 127.0.0.1, port: 9}}]}", "/mcp"],
] as const;

for (const [kind, member, path] of KINDS)
  prove([], `both blocks decide in front of a backend of kind ${kind}`, async (context) => {
    const check = await startChecker(context, () => ({ status: 418 }));
    const rule = '{action: Deny, policy: {matchExpressions: [\'request.headers["x-who"] == "bob"\']}}';
    const backend = `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec:
  ${member}
  policies: {authorization: ${rule}, extAuth: {${CHECK}, http: {}}}
`;
    const gateway = await guarded(context, backend, check.port);
    const post = async (who: string): Promise<number> =>
      (await call(gateway.url() + path, { method: "POST", headers: { "x-who": who }, body: "{}" })).status;
    assert.deepEqual([await post("ann"), await post("bob")], [418, 403]);
    assert.equal(check.seen.length, 1);
  });
