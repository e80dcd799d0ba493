/** GwBackend spec.ai through real sockets: what reaches the provider, for a single provider and for one of a group. */
import assert from "node:assert/strict";
import { echoed, startEcho, type Echo, type Echoed } from "../../support/servers/echo.ts";
import { FOREIGN, namesForeign } from "../../support/fixtures/foreign-secret.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { type Answer, call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

interface Place {
  readonly prefix: string;
  /** Spec of an AI backend. @param provider members of a provider as YAML flow */
  ai(provider: string): string;
}

const MEMBER = "GwBackend spec.ai.groups[].providers[]";
const PLACES: readonly Place[] = [
  { prefix: "GwBackend spec.ai.provider", ai: (provider) => `{provider: {${provider}}}` },
  { prefix: MEMBER, ai: (provider) => `{groups: [{providers: [{name: one, ${provider}}]}]}` },
];

const CHAT = { model: "of-the-client", messages: [{ role: "user", content: "hi" }] };

function aiBackend(name: string, ai: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: ${ai}
`;
}

function serve(context: ProofContext, ai: string, ...more: readonly string[]): Promise<TestGateway> {
  return startGateway(context, documents(GATEWAY, aiBackend("ai", ai), route("ai", "ai"), ...more));
}

function chat(gateway: TestGateway, path = "/v1/chat/completions"): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  return call(`${gateway.url()}${path}`, { method: "POST", headers, body: JSON.stringify(CHAT) });
}

/** What the provider was sent, by its own account: an echo that passes the gateway as an answer. */
async function received(gateway: TestGateway, path?: string): Promise<Echoed> {
  const answer = await chat(gateway, path);
  assert.equal(answer.status, 200, answer.body);
  return echoed(answer.body);
}

/** The newest request of an echo whose answers are no answers to the gateway, because it translates them. */
function newest({ seen }: Echo): Echoed {
  const last = seen.at(-1);
  assert.ok(last, "nothing reached the provider");
  return last;
}

const modelOf = ({ body }: Echoed): unknown => (JSON.parse(body) as { model: unknown }).model;
const at = (port: number): string => `host: 127.0.0.1, port: ${port}`;
const COMPLETIONS = "formats: [{type: Completions}]";

function service(name: string, port: number, targetPort: number): string {
  return `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec:
  ports: [{name: http, port: ${port}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: http, port: ${targetPort}, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
}

for (const { prefix, ai } of PLACES) {
  const on = prefix === MEMBER ? "(member of a group)" : "(single provider)";

  prove(
    [`${prefix}.llma.model`, `${prefix}.port`],
    `llma is sent the configured model in place of the client's ${on}`,
    async (context) => {
      const echo = await startEcho(context);
      const gateway = await serve(context, ai(`llma: {model: pinned}, ${at(echo.port)}`));
      const sent = await received(gateway);
      assert.equal(modelOf(sent), "pinned");
      assert.equal(sent.url, "/v1/chat/completions");
      const free = await serve(context, ai(`llma: {}, ${at(echo.port)}`));
      assert.equal(modelOf(await received(free)), "of-the-client");
    },
  );

  prove(`${prefix}.llme.model`, `llme is sent a messages request with the configured model ${on}`, async (context) => {
    const echo = await startEcho(context);
    const gateway = await serve(context, ai(`llme: {model: pinned}, ${at(echo.port)}`));
    await chat(gateway);
    const sent = newest(echo);
    assert.equal(sent.url, "/v1/messages");
    assert.equal(sent.headers["anthropic-version"], "2023-06-01");
    assert.deepEqual(JSON.parse(sent.body), {
      model: "pinned",
      max_tokens: 4096,
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
    });
  });

  prove(
    [`${prefix}.host`, `${prefix}.custom.model`, `${prefix}.custom.formats[].type`],
    `a custom provider is reached at its host with the configured model ${on}`,
    async (context) => {
      const echo = await startEcho(context);
      const custom = `custom: {model: pinned, ${COMPLETIONS}}`;
      const gateway = await serve(context, ai(`${custom}, ${at(echo.port)}`));
      const sent = await received(gateway);
      assert.equal(modelOf(sent), "pinned");
      assert.equal(sent.url, "/v1/chat/completions");
    },
  );

  prove(
    `${prefix}.custom.formats[].type`,
    `a custom provider of messages gets them translated ${on}`,
    async (context) => {
      const echo = await startEcho(context);
      const gateway = await serve(context, ai(`custom: {formats: [{type: Messages}]}, ${at(echo.port)}`));
      await chat(gateway);
      assert.equal(newest(echo).url, "/v1/messages");
      const none = await serve(context, ai(`custom: {formats: [{type: Embeddings}]}, ${at(echo.port)}`));
      assert.equal((await chat(none)).status, 400);
    },
  );

  prove(
    `${prefix}.custom.formats[].path`,
    `a format has the path that is given for it, and the client's query ${on}`,
    async (context) => {
      const echo = await startEcho(context);
      const custom = "custom: {formats: [{type: Completions, path: /talk?v=1}]}";
      const gateway = await serve(context, ai(`${custom}, ${at(echo.port)}`));
      assert.equal((await received(gateway, "/any?trace=2")).url, "/talk?v=1&trace=2");
    },
  );

  prove(`${prefix}.custom.providerOverride`, `expressions see the given identity ${on}`, async (context) => {
    const echo = await startEcho(context);
    const show = routePolicy(
      "show",
      "ai",
      "  traffic: {transformation: {response: {set: [{name: x-provider, value: llm.provider}]}}}",
    );
    const custom = `custom: {providerOverride: house, ${COMPLETIONS}}`;
    const gateway = await serve(context, ai(`${custom}, ${at(echo.port)}`), show);
    assert.equal((await chat(gateway)).headers["x-provider"], "house");
    const plain = await serve(context, ai(`custom: {${COMPLETIONS}}, ${at(echo.port)}`), show);
    assert.equal((await chat(plain)).headers["x-provider"], "custom");
  });

  prove(
    [`${prefix}.custom.backendRef.name`, `${prefix}.custom.backendRef.port`],
    `a custom provider may stand behind a Service ${on}`,
    async (context) => {
      const echo = await startEcho(context);
      const custom = `custom: {backendRef: {name: models, port: 8000}, ${COMPLETIONS}}`;
      const gateway = await serve(context, ai(custom), service("models", 8000, echo.port));
      assert.equal((await received(gateway)).url, "/v1/chat/completions");
    },
  );

  prove(`${prefix}.path`, `a configured path is used whole, whatever the client asked for ${on}`, async (context) => {
    const echo = await startEcho(context);
    const gateway = await serve(context, ai(`llma: {}, ${at(echo.port)}, path: "/only/this?v=1"`));
    assert.equal((await received(gateway, "/v1/chat/completions?trace=2")).url, "/only/this?v=1");
  });

  prove(`${prefix}.pathPrefix`, `a prefix stands in place of /v1 ${on}`, async (context) => {
    const echo = await startEcho(context);
    const llma = await serve(context, ai(`llma: {}, ${at(echo.port)}, pathPrefix: /inner/v2`));
    assert.equal((await received(llma)).url, "/inner/v2/chat/completions");
    const llme = await serve(context, ai(`llme: {}, ${at(echo.port)}, pathPrefix: /inner/v2`));
    await chat(llme);
    assert.equal(newest(echo).url, "/inner/v2/messages");
  });
}

const AUTH = `${MEMBER}.policies.auth`;

/** A gateway whose only provider is a member with the credential. @param auth YAML flow */
function withAuth(context: ProofContext, port: number, auth: string, ...more: readonly string[]): Promise<TestGateway> {
  return serve(
    context,
    `{groups: [{providers: [{name: one, llma: {}, ${at(port)}, policies: {auth: ${auth}}}]}]}`,
    ...more,
  );
}

prove(`${AUTH}.key`, "a member presents its own key, which beats that of the backend", async (context) => {
  const echo = await startEcho(context);
  const backend = routePolicy("outer", "ai", "  backend: {auth: {key: of-the-route}}");
  const gateway = await withAuth(context, echo.port, "{key: of-the-member}", backend);
  assert.equal((await received(gateway)).headers["authorization"], "Bearer of-the-member");
});

prove(
  [`${AUTH}.secretRef.group`, `${AUTH}.secretRef.kind`],
  "a Secret does not stand in for a member's credential of a kind that nobody knows",
  async (context) => {
    const echo = await startEcho(context);
    const secret = "{apiVersion: v1, kind: Secret, metadata: {name: keys}, stringData: {Authorization: of-the-secret}}";
    const gateway = await withAuth(context, echo.port, `{secretRef: {name: keys, ${FOREIGN}}}`, secret);
    assert.equal((await chat(gateway)).status, 500, "nothing is sent");
    namesForeign(gateway);
  },
);

prove(
  [`${AUTH}.secretRef.name`, `${AUTH}.secretRef.key`],
  "a member presents the key in the entry of a Secret",
  async (context) => {
    const echo = await startEcho(context);
    const secret =
      "\napiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {Authorization: first, second: from-the-secret}\n";
    const gateway = await withAuth(context, echo.port, "{secretRef: {name: keys, key: second}}", secret);
    assert.equal((await received(gateway)).headers["authorization"], "Bearer from-the-secret");
  },
);

prove(
  [`${AUTH}.location.header.name`, `${AUTH}.location.header.prefix`],
  "the key of a member goes into the header that is named, behind the prefix",
  async (context) => {
    const echo = await startEcho(context);
    const gateway = await withAuth(context, echo.port, '{key: k, location: {header: {name: x-key, prefix: "Key "}}}');
    const { headers } = await received(gateway);
    assert.equal(headers["x-key"], "Key k");
    assert.equal(headers["authorization"], undefined);
  },
);

prove(`${AUTH}.location.queryParameter.name`, "the key of a member goes into a query parameter", async (context) => {
  const echo = await startEcho(context);
  const gateway = await withAuth(context, echo.port, "{key: k, location: {queryParameter: {name: key}}}");
  assert.equal((await received(gateway, "/v1/chat/completions?a=1")).url, "/v1/chat/completions?a=1&key=k");
});

prove(`${AUTH}.location.cookie.name`, "the key of a member goes into a cookie", async (context) => {
  const echo = await startEcho(context);
  const gateway = await withAuth(context, echo.port, "{key: k, location: {cookie: {name: key}}}");
  assert.equal((await received(gateway)).headers["cookie"], "key=k");
});

prove(
  [`${MEMBER}.name`, "GwPolicy spec.targetRefs[].sectionName"],
  "a policy for one member of a group leaves the others alone",
  async (context) => {
    const echo = await startEcho(context);
    const policy = (name: string, section: string): string => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: ${name}}
spec:
  targetRefs: [{group: gwproxy.dev, kind: GwBackend, name: ai, sectionName: ${section}}]
  backend: {auth: {key: for-${section}}}
`;
    const member = (name: string): string => `{providers: [{name: ${name}, llma: {}, ${at(echo.port)}}]}`;
    const groups = `{groups: [${member("main")}, ${member("spare")}]}`;
    const gateway = await serve(context, groups, policy("a", "spare"), policy("b", "main"));
    assert.equal((await received(gateway)).headers["authorization"], "Bearer for-main");
  },
);
