/**
 * The `ai` block through real sockets, except its guards: what reaches the provider when the block stands on a route, on
 * a backend, or on one member of a group.
 */
import assert from "node:assert/strict";
import { BLOCK_PLACES } from "../../support/proofs/block-places.ts";
import { echoed, startEcho, type Echoed } from "../../support/servers/echo.ts";
import { documents, GATEWAY, gatewayPolicy, route, startGateway } from "../../support/gateway/gateway.ts";
import { call, parseJson, type Answer } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

/** Where the block can stand. */
interface Place {
  readonly name: string;
  field(name: string): string;
  /** An AI backend `ai` of the provider with the block. @param block flow YAML of the members of `ai` */
  objects(provider: string, block: string): string;
}

const PLACES: readonly Place[] = [
  ...BLOCK_PLACES.map(({ kind, field, objects }) => ({
    name: kind,
    field: (name: string) => field(`ai.${name}`),
    objects: (provider: string, block: string) => objects("ai", `ai: {provider: {${provider}}}`, `ai: {${block}}`),
  })),
  {
    name: "member of a group",
    field: (name) => `GwBackend spec.ai.groups[].providers[].policies.ai.${name}`,
    objects: (provider, block) => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec: {ai: {groups: [{providers: [{name: one, ${provider}, policies: {ai: {${block}}}}]}]}}
`,
  },
];

const MESSAGE = { role: "user", content: "hi" };
const BODY = { model: "asked", messages: [MESSAGE] };

interface Case {
  readonly fields: readonly string[];
  readonly name: string;
  /** Flow YAML of the members of `ai`. */
  readonly block: string;
  /** Settings of the provider besides its address. */
  readonly settings?: string;
  readonly body?: object;
  readonly path?: string;
  /** Members of the body that the provider gets; undefined for one that it must not get. */
  readonly sent: Readonly<Record<string, unknown>>;
}

const CASES: readonly Case[] = [
  {
    fields: ["overrides[].field", "overrides[].value"],
    name: "an override replaces what the client sent",
    block: "overrides: [{field: temperature, value: 0.5}, {field: metadata, value: {team: a}}]",
    body: { ...BODY, temperature: 2 },
    sent: { temperature: 0.5, metadata: { team: "a" } },
  },
  {
    fields: ["defaults[].field", "defaults[].value"],
    name: "a default fills what the client left out, and null is not left out",
    block: "defaults: [{field: temperature, value: 0.5}, {field: top_p, value: 0.1}, {field: seed, value: 1}]",
    body: { ...BODY, temperature: 2, top_p: null },
    sent: { temperature: 2, top_p: null, seed: 1 },
  },
  {
    fields: ["transformations[].field", "transformations[].expression", "overrides[].value", "defaults[].value"],
    name: "a transformation sees the client's body, beats an override, and leaves a failed field to the defaults",
    block: `transformations: [{field: max_tokens, expression: "min(llmRequest.max_tokens, 100)"}, {field: user, expression: "llmRequest.nothing"}, {field: top_k, expression: "llmRequest.nothing"}, {field: seed, expression: "llmRequest.temperature"}], overrides: [{field: max_tokens, value: 7}, {field: temperature, value: 1}], defaults: [{field: user, value: someone}]`,
    body: { ...BODY, max_tokens: 900, user: "me", top_k: 3, temperature: 2 },
    sent: { max_tokens: 100, user: "someone", top_k: undefined, temperature: 1, seed: 2 },
  },
  {
    fields: ["transformations[].expression"],
    name: "a transformation of the model sees and beats the pinned one",
    block: `transformations: [{field: model, expression: "llmRequest.model + '-mini'"}]`,
    settings: "model: pinned",
    sent: { model: "pinned-mini" },
  },
  {
    fields: ["overrides[].value"],
    name: "an override of the model beats that of the client",
    block: "overrides: [{field: model, value: forced}]",
    sent: { model: "forced" },
  },
  {
    fields: ["defaults[].value"],
    name: "a default of the model serves a client that names none",
    block: "defaults: [{field: model, value: usual}]",
    body: { messages: [MESSAGE] },
    sent: { model: "usual" },
  },
  {
    fields: ["modelAliases"],
    name: "an alias replaces the name of the model, the longest pattern before shorter ones, and once",
    block: `modelAliases: {"*": other, "ask*": wanted, wanted: never}`,
    sent: { model: "wanted" },
  },
  {
    fields: ["modelAliases"],
    name: "an alias replaces the pinned name",
    block: "modelAliases: {pinned: renamed}",
    settings: "model: pinned",
    sent: { model: "renamed" },
  },
  {
    fields: ["modelAliases", "overrides[].value"],
    name: "an alias replaces the name that an override set",
    block: "modelAliases: {forced: renamed}, overrides: [{field: model, value: forced}]",
    sent: { model: "renamed" },
  },
  ...["prompt", "promptEnrichment"].map((field) => ({
    fields: ["prepend[].role", "prepend[].content", "append[].role", "append[].content"].map((at) => `${field}.${at}`),
    name: `${field} stands around the messages of the client`,
    block: `${field}: {prepend: [{role: SYSTEM, content: Be brief.}], append: [{role: user, content: Thanks.}]}`,
    sent: {
      messages: [{ role: "system", content: "Be brief." }, MESSAGE, { role: "user", content: "Thanks." }],
    },
  })),
  {
    fields: ["routes"],
    name: "a path is read in the format that routes gives it",
    block: `routes: {"*": Detect, /v1/messages: Completions}`,
    path: "/v1/messages?x=y",
    sent: BODY,
  },
];

interface Served {
  ask(path: string, body: object): Promise<Answer>;
  received(path: string, body: object): Promise<Echoed>;
}

async function serve(
  context: ProofContext,
  objects: (provider: string) => string,
  { settings = "", more = [] }: { readonly settings?: string | undefined; readonly more?: readonly string[] } = {},
): Promise<Served> {
  const { port } = await startEcho(context);
  const provider = `llma: {${settings}}, host: 127.0.0.1, port: ${port}`;
  const gateway = await startGateway(context, documents(GATEWAY, objects(provider), route("ai", "ai"), ...more));
  const ask = (path: string, body: object): Promise<Answer> =>
    call(gateway.url() + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  return {
    ask,
    async received(path, body) {
      const answer = await ask(path, body);
      assert.equal(answer.status, 200, answer.body);
      return echoed(answer.body);
    },
  };
}

for (const place of PLACES) {
  for (const { fields, name, block, settings, body = BODY, path = "/v1/chat/completions", sent } of CASES) {
    prove(
      fields.map((field) => place.field(field)),
      `${name} (${place.name})`,
      async (context) => {
        const served = await serve(context, (provider) => place.objects(provider, block), { settings });
        const got = parseJson((await served.received(path, body)).body) as Record<string, unknown>;
        assert.deepEqual(Object.fromEntries(Object.keys(sent).map((key) => [key, got[key]])), sent);
      },
    );
  }

  prove(
    place.field("routes"),
    `an error has the format that routes gives its path (${place.name})`,
    async (context) => {
      const { ask } = await serve(context, (provider) => place.objects(provider, `routes: {/v1/responses: Messages}`));
      const answer = await ask("/v1/responses", BODY);
      assert.equal((parseJson(answer.body) as { type?: unknown }).type, "error", answer.body);
    },
  );
}

prove(
  [
    "GwPolicy spec.backend.ai.overrides[].value",
    "GwPolicy spec.backend.ai.defaults[].value",
    "GwBackend spec.policies.ai.modelAliases",
  ],
  "each field of ai is that of the most specific level which sets it",
  async (context) => {
    const [onBackend] = BLOCK_PLACES;
    assert.ok(onBackend);
    const gateway = `backend: {ai: {modelAliases: {asked: general}, overrides: [{field: seed, value: 1}]}}`;
    const own = `ai: {modelAliases: {asked: special}}`;
    const policy = gatewayPolicy("outer", `  ${gateway}`);
    const inner = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: inner}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: ai}]
  backend: {ai: {defaults: [{field: top_p, value: 0.1}], modelAliases: {asked: never}}}
`;
    const objects = (provider: string): string => onBackend.objects("ai", `ai: {provider: {${provider}}}`, own);
    const { received } = await serve(context, objects, { more: [policy, inner] });
    const { body } = await received("/v1/chat/completions", BODY);
    const { model, seed, top_p } = parseJson(body) as Record<string, unknown>;
    assert.deepEqual({ model, seed, top_p }, { model: "special", seed: 1, top_p: 0.1 });
  },
);
