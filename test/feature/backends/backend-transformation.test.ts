/** `transformation` of a backend through real sockets: on a GwBackend, by a GwPolicy, and of one member of a group of models. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { BLOCK_PLACES } from "../../support/proofs/block-places.ts";
import { echoed, startEcho, type Echoed } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call, parseJson, type Answer, type Call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

/** Where the block can stand, and how its backend is spoken to. */
interface Place {
  readonly name: string;
  field(name: string): string;
  /** A backend `web` with the block. @param block flow YAML of the policies of a backend */
  objects(port: number, block: string): string;
  readonly body: string;
}

const CHAT = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });

const PLACES: readonly Place[] = [
  ...BLOCK_PLACES.map(({ kind, field, objects }) => ({
    name: kind,
    field: (name: string) => field(`transformation.${name}`),
    objects: (port: number, block: string) => objects("web", `static: {host: 127.0.0.1, port: ${port}}`, block),
    body: "hello",
  })),
  {
    name: "member of a group",
    field: (name) => `GwBackend spec.ai.groups[].providers[].policies.transformation.${name}`,
    objects: (port, block) => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec: {ai: {groups: [{providers: [{name: one, llma: {}, host: 127.0.0.1, port: ${port}, policies: {${block}}}]}]}}
`,
    body: CHAT,
  },
];

function serve(context: ProofContext, backend: string, ...more: readonly string[]): Promise<TestGateway> {
  return startGateway(context, documents(GATEWAY, backend, route("web", "web"), ...more));
}

function ask(gateway: TestGateway, { body }: Place, options: Call = {}): Promise<Answer> {
  const headers = { "content-type": "application/json", ...options.headers };
  return call(`${gateway.url()}/p?q=1`, { method: "POST", body, ...options, headers });
}

/** What the upstream saw. */
async function seen(gateway: TestGateway, place: Place, options: Call = {}): Promise<Echoed> {
  const answer = await ask(gateway, place, options);
  assert.equal(answer.status, 200, answer.body);
  return echoed(answer.body);
}

for (const place of PLACES) {
  const on = `(${place.name})`;
  const fields = (part: string, names: readonly string[]) => names.map((name) => place.field(`${part}.${name}`));

  prove(
    fields("request", ["set[].name", "set[].value", "add[].name", "add[].value", "remove[]"]),
    `headers of a request follow expressions that see its credential, which may be removed ${on}`,
    async (context) => {
      const echo = await startEcho(context);
      const set = `{name: x-key, value: 'request.headers["authorization"]'}, {name: x-fail, value: 'fail("no")'}`;
      const request = `set: [${set}], add: [{name: x-add, value: backend.name}], remove: [authorization]`;
      const block = `auth: {key: secret}, transformation: {request: {${request}}}`;
      const gateway = await serve(context, place.objects(echo.port, block));
      const sent = { authorization: "Bearer of-the-client", "x-key": "client", "x-fail": "client", "x-add": "one" };
      const { headers } = await seen(gateway, place, { headers: sent });
      assert.equal(headers["x-key"], "Bearer secret");
      assert.equal(headers["x-fail"], undefined);
      assert.match(headers["x-add"] ?? "", /^one, /);
      assert.equal(headers["authorization"], undefined);
    },
  );

  prove(fields("request", ["body"]), `a request body is computed from the client's ${on}`, async (context) => {
    const echo = await startEcho(context);
    const value = `{"model": "other", "messages": [], "was": size(request.body)}`;
    const gateway = await serve(context, place.objects(echo.port, `transformation: {request: {body: '${value}'}}`));
    const { body, headers } = await seen(gateway, place);
    const { model, was } = parseJson(body) as { model: string; was: number };
    assert.deepEqual([model, was], ["other", place.body.length]);
    assert.equal(headers["content-length"], String(body.length));
  });

  prove(
    [
      ...fields("request", ["metadata"]),
      ...fields("response", ["set[].name", "set[].value", "add[].name", "add[].value", "remove[]"]),
    ],
    `headers of an answer follow expressions, which see what the request left in metadata ${on}`,
    async (context) => {
      const echo = await startEcho(context);
      const request = `metadata: {who: 'request.headers["x-who"]'}`;
      const response = `set: [{name: x-who, value: metadata.who}], add: [{name: x-code, value: string(response.code)}], remove: [x-upstream]`;
      const block = `transformation: {request: {${request}}, response: {${response}}}`;
      const gateway = await serve(context, place.objects(echo.port, block));
      const { headers } = await ask(gateway, place, { headers: { "x-who": "me" } });
      assert.deepEqual([headers["x-who"], headers["x-code"], headers["x-upstream"]], ["me", "200", undefined]);
    },
  );

  prove(
    fields("response", ["body", "metadata"]),
    `an answer is computed from the upstream's, before policies of the route see it ${on}`,
    async (context) => {
      const echo = await startEcho(context);
      const response = `metadata: {code: response.code}, set: [{name: ":status", value: '"201"'}], body: '{"seen": json(response.body).method, "code": metadata.code}'`;
      const outer = "  traffic: {transformation: {response: {set: [{name: x-outer, value: string(response.code)}]}}}";
      const gateway = await serve(
        context,
        place.objects(echo.port, `transformation: {response: {${response}}}`),
        routePolicy("outer", "web", outer),
      );
      const { status, body, headers } = await ask(gateway, place);
      assert.deepEqual([status, parseJson(body), headers["x-outer"]], [201, { seen: "POST", code: 200 }, "201"]);
    },
  );

  prove([], `each attempt starts from the request as the policies left it ${on}`, async (context) => {
    const bodies: string[] = [];
    const added: unknown[] = [];
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request.setEncoding("utf8")) body += chunk as string;
      bodies.push(body);
      added.push(request.headers["x-add"]);
      response.writeHead(bodies.length < 3 ? 503 : 200, { "content-type": "application/json" }).end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    context.after(() => void (server.closeAllConnections(), server.close()));
    const { port } = server.address() as AddressInfo; // a TCP server's address is one
    const body = `{"model": "m", "messages": [], "size": size(request.body)}`;
    const request = `add: [{name: x-add, value: '"once"'}], body: '${body}'`;
    const gateway = await serve(
      context,
      place.objects(port, `transformation: {request: {${request}}}`),
      routePolicy("again", "web", "  traffic: {retry: {attempts: 2, codes: [503]}}"),
    );
    assert.equal((await ask(gateway, place)).status, 200);
    assert.deepEqual(added, ["once", "once", "once"]);
    const sizes = bodies.map((text) => (JSON.parse(text) as { size: number }).size);
    assert.deepEqual(sizes, [place.body.length, place.body.length, place.body.length]);
  });
}

const [INLINE, ATTACHED] = PLACES as readonly [Place, Place, Place];

prove([], "method, path and authority are those that are written, and the log has the client's", async (context) => {
  const echo = await startEcho(context);
  const set = `[{name: ":path", value: '"/new?x=1"'}, {name: ":method", value: '"PUT"'}, {name: host, value: '"other.test"'}]`;
  const late = "  traffic: {transformation: {response: {set: [{name: x-late, value: request.method + request.path}]}}}";
  for (const place of [INLINE, ATTACHED]) {
    const block = `transformation: {request: {set: ${set}}}`;
    const gateway = await serve(context, place.objects(echo.port, block), routePolicy("late", "web", late));
    const answer = await ask(gateway, place);
    const { method, url, headers } = echoed(answer.body);
    assert.deepEqual([method, url, headers["host"]], ["PUT", "/new?x=1", "other.test"]);
    assert.equal(answer.headers["x-late"], "POST/p");
  }
});

prove([], "a backend that goes where it is asked to goes to the authority that is written", async (context) => {
  const [asked, written] = [await startEcho(context, { tag: "asked" }), await startEcho(context, { tag: "written" })];
  const set = `[{name: ":authority", value: '"127.0.0.1:${written.port}"'}]`;
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: any}
spec: {dynamicForwardProxy: {}, policies: {transformation: {request: {set: ${set}}}}}
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("any", "any")));
  const answer = await call(gateway.url(), { headers: { host: `127.0.0.1:${asked.port}` } });
  assert.equal(answer.headers["x-upstream"], "written");
});
