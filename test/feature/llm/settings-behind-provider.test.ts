/**
 * Settings of policies on the Service or InferencePool behind a `custom` provider: each section holds, wins over what
 * the provider and its GwBackend say, and follows every change of the policy while the gateway serves.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ask,
  chat,
  KINDS,
  startModelServers,
  startPlace,
  TARGETS,
  VOICES,
  type Kind,
  type Place,
  type Received,
  type Voice,
} from "../../support/gateway/behind-provider.ts";
import { documents, startGateway } from "../../support/gateway/gateway.ts";
import { model, MODEL_GATEWAY, service } from "../../support/gateway/models.ts";
import { gatewayRef, policy, routeRef } from "../../support/proofs/policy-places.ts";
import { contextOf } from "../../support/proofs/prove.ts";

interface Section {
  readonly name: string;
  readonly kinds?: readonly Kind[];
  /** The level in front that sets it too; by default the provider. */
  readonly above?: "GwBackend";
  /** Returns the section as a voice says it, in flow YAML. */
  readonly says: (voice: Voice) => string;
  /** Sends requests and returns what shows whose setting is in force. */
  readonly observe: (place: Place) => Promise<string>;
  /** Returns what shows that the setting of a voice is in force; by default the name of the voice. */
  readonly shows?: (voice: Voice | undefined) => string;
  /** The rules of all levels count. */
  readonly isCollected?: true;
}

const DAY_MS = 86_400_000;

/** Returns the names of the voices for which something is true. */
async function voicesThat(holds: (voice: Voice) => Promise<boolean> | boolean): Promise<string> {
  const names: Voice[] = [];
  for (const voice of VOICES) if (await holds(voice)) names.push(voice);
  return names.join("+");
}

/** Sends a request, and returns the voices that a part of what the server received names. */
async function voicesIn(place: Place, read: (received: Received) => unknown): Promise<string> {
  assert.equal((await ask(place)).status, 200);
  const text = String(read(place.servers.received.at(-1) as Received)); // it has answered a request
  return voicesThat((voice) => text.includes(voice));
}

const SECTIONS: readonly Section[] = [
  {
    name: "http",
    says: (voice) => `http: {version: ${voice === "first" ? "HTTP2" : "HTTP1"}}`,
    async observe(place) {
      const before = place.servers.opened.length;
      const { status } = await ask(place);
      const isHttp2 = place.servers.opened.slice(before).some((bytes) => bytes.startsWith("PRI * HTTP/2.0"));
      assert.equal(status, isHttp2 ? 503 : 200, "the servers speak HTTP/1.1 only");
      return isHttp2 ? "HTTP/2" : "HTTP/1.1";
    },
    shows: (voice) => (voice === "first" ? "HTTP/2" : "HTTP/1.1"),
  },
  {
    name: "tls",
    says: (voice) => `tls: {sni: ${voice}.test, insecureSkipVerify: All}`,
    async observe(place) {
      const before = place.servers.opened.length;
      await ask(place);
      // The name is not encrypted in the first message of a handshake.
      const hello = place.servers.opened.slice(before).join("");
      return voicesThat((voice) => hello.includes(`${voice}.test`));
    },
  },
  {
    name: "tunnel",
    says: (voice) => `tunnel: {backendRef: {name: proxy-${voice}, port: 80}}`,
    observe: (place) => voicesAsked(place, ({ proxies }, voice) => proxies[voice].asked.length),
  },
  {
    name: "auth",
    says: (voice) => `auth: {key: ${voice}}`,
    observe: (place) => voicesIn(place, ({ headers }) => headers.authorization),
  },
  {
    name: "authorization",
    isCollected: true,
    says: (voice) => `authorization: {action: Deny, policy: {matchExpressions: ['"x-${voice}" in request.headers']}}`,
    observe: (place) => voicesThat(async (voice) => (await ask(place, { [`x-${voice}`]: "1" })).status === 403),
  },
  {
    name: "extAuth",
    above: "GwBackend",
    says: (voice) => `extAuth: {backendRef: {name: guard-${voice}, port: 80}, http: {}}`,
    observe: (place) => voicesAsked(place, ({ guards }, voice) => guards[voice].requests.length),
  },
  {
    name: "transformation",
    says: (voice) => `transformation: {request: {set: [{name: x-by, value: "'${voice}'"}]}}`,
    observe: (place) => voicesIn(place, ({ headers }) => headers["x-by"]),
  },
  {
    name: "ai",
    kinds: ["InferencePool"],
    says: (voice) => `ai: {defaults: [{field: user, value: ${voice}}]}`,
    observe: (place) => voicesIn(place, ({ body }) => body["user"]),
  },
  {
    name: "health",
    says: (voice) =>
      `health: {unhealthyCondition: 'response.headers["x-verdict"] == "${voice}"', eviction: {consecutiveFailures: 1, duration: 1h}}`,
    observe: (place) =>
      voicesThat(async (voice) => {
        // Ejections of before are over, however often there was one.
        place.clock.now += DAY_MS;
        // A Service keeps its provider in rotation until both of its endpoints are ejected.
        for (let request = 0; request < 2; request++)
          assert.equal((await ask(place, { "x-verdict": voice })).status, 200);
        const { endpoints } = await place.gateway.proxy.state();
        const chat = endpoints.filter(({ backend }) => backend === "backend/default/chat");
        assert.equal(chat.length, 1);
        return chat[0]?.evictedUntil !== null;
      }),
  },
  {
    name: "sessionAffinity",
    above: "GwBackend",
    says: (voice) => `sessionAffinity: {source: 'request.headers["x-${voice}"]'}`,
    async observe(place) {
      // A picker that names strangers has failed, and the pool fails open to the balancing of the gateway.
      place.choose = () => ({ to: "192.0.2.1:1" });
      return voicesThat(async (voice) => {
        const before = place.servers.received.length;
        const sessions = Array.from({ length: 24 }, (_, at) => ask(place, { [`x-${voice}`]: `session ${at}` }));
        for (const { status } of await Promise.all(sessions)) assert.equal(status, 200);
        // Random numbers are always 0, so that requests without a session all go to the same endpoint.
        return new Set(place.servers.received.slice(before).map(({ port }) => port)).size > 1;
      });
    },
  },
];

/** Sends a request, and returns the voices whose service was asked. */
async function voicesAsked(place: Place, count: (place: Place, voice: Voice) => number): Promise<string> {
  const before = new Map(VOICES.map((voice) => [voice, count(place, voice)]));
  assert.equal((await ask(place)).status, 200);
  return voicesThat((voice) => count(place, voice) > (before.get(voice) ?? 0));
}

for (const kind of KINDS)
  for (const {
    name,
    kinds = KINDS,
    above,
    says,
    observe,
    shows = (voice?: Voice) => voice ?? "",
    isCollected,
  } of SECTIONS)
    if (kinds.includes(kind))
      test(`${name} of a policy on the ${kind} behind a provider holds, wins, and follows each change`, async (t) => {
        const place = await startPlace(t, kind);
        const { gateway, fixed } = place;
        const serve = async (inFront: Voice | undefined, behind: Voice | undefined): Promise<string> => {
          const own = inFront === undefined ? "" : says(inFront);
          const front = chat(kind, above === "GwBackend" ? { backend: own } : { provider: own });
          const on =
            behind === undefined ? [] : [policy("behind", { refs: TARGETS[kind], says: `backend: {${says(behind)}}` })];
          await gateway.change(documents(fixed, front, ...on));
          assert.deepEqual([...gateway.problems(), ...gateway.translator.diagnostics()], []);
          return observe(place);
        };
        const merged = (voice: Voice): string => (isCollected ? `own+${voice}` : shows(voice));
        assert.equal(await serve(undefined, "first"), shows("first"), "alone");
        assert.equal(await serve(undefined, undefined), shows(undefined), "nobody sets it");
        assert.equal(await serve("own", undefined), shows("own"), "only the level in front sets it");
        assert.equal(await serve("own", "first"), merged("first"), "both set it");
        assert.equal(await serve("own", "second"), merged("second"), "the policy was edited");
        assert.equal(await serve("own", "first"), merged("first"), "the policy was edited back");
        assert.equal(await serve("own", undefined), shows("own"), "the policy was removed");
      });

const EJECTS =
  'health: {unhealthyCondition: \'response.headers["x-verdict"] == "bad"\', eviction: {consecutiveFailures: 1, duration: 1h}}';

/** Each request is refused by its server, and the names of what is out of rotation afterwards, in their order. */
const EJECTIONS: readonly {
  readonly kind: Kind;
  readonly on: "behind" | "provider";
  readonly out: readonly string[][];
}[] = [
  { kind: "Service", on: "behind", out: [["endpoint"], ["endpoint", "endpoint", "provider"]] },
  { kind: "Service", on: "provider", out: [["provider"], ["provider"]] },
  {
    kind: "InferencePool",
    on: "behind",
    out: [
      ["endpoint", "provider"],
      ["endpoint", "provider"],
    ],
  },
  { kind: "InferencePool", on: "provider", out: [["provider"], ["provider"]] },
];

for (const { kind, on, out } of EJECTIONS)
  test(`health of a policy on the ${on === "behind" ? kind : `provider in front of a ${kind}`} ejects what it is about`, async (t) => {
    const place = await startPlace(t, kind);
    const { gateway, fixed } = place;
    await gateway.change(
      on === "provider"
        ? documents(fixed, chat(kind, { provider: EJECTS }))
        : documents(fixed, chat(kind), policy("behind", { refs: TARGETS[kind], says: `backend: {${EJECTS}}` })),
    );
    const seen: string[][] = [];
    for (let request = 0; request < out.length; request++) {
      await ask(place, { "x-verdict": "bad" });
      const { endpoints } = await gateway.proxy.state();
      const evicted = endpoints.filter(({ evictedUntil }) => evictedUntil !== null);
      seen.push(evicted.map(({ endpoint }) => (endpoint === "own" ? "provider" : "endpoint")).sort());
    }
    assert.deepEqual(seen, out);
  });

const sets = (voice: string): string => `transformation: {request: {set: [{name: x-by, value: "'${voice}'"}]}}`;
const BACKEND_REF = "group: gwproxy.dev, kind: GwBackend, name: chat";

for (const kind of KINDS)
  test(`a policy on the ${kind} behind a provider wins over every other level, and is explained so`, async (t) => {
    const place = await startPlace(t, kind);
    const { gateway, fixed } = place;
    const on = (name: string, refs: string): string => policy(name, { refs, says: `backend: {${sets(name)}}` });
    const front = [
      on("gateway", gatewayRef()),
      on("route", routeRef("web")),
      on("rule", routeRef("web", "rule")),
      on("backend", `{${BACKEND_REF}}`),
      on("section", `{${BACKEND_REF}, sectionName: own}`),
      chat(kind, { provider: sets("provider"), backend: sets("inline") }),
    ];
    const by = async (...policies: readonly string[]): Promise<unknown> => {
      await gateway.change(documents(fixed, ...front, ...policies));
      assert.deepEqual([...gateway.problems(), ...gateway.translator.diagnostics()], []);
      assert.equal((await ask(place)).status, 200);
      return place.servers.received.at(-1)?.headers["x-by"];
    };
    assert.equal(await by(), "provider");
    assert.equal(await by(on("behind", TARGETS[kind])), "behind");
    const [explained] = await gateway.proxy.explain("default/web");
    const row = explained?.rules.find(({ behind }) => behind === "backend/default/chat");
    assert.deepEqual(
      [row?.provider, row?.backend, row?.policies],
      ["own", kind === "Service" ? "service/default/llama:80" : "inferencepool/default/llama", []],
    );
    const [transformation, ...others] = row?.backends?.[0]?.policies ?? [];
    assert.deepEqual(others, []);
    assert.deepEqual(transformation?.from, [
      { level: "behind", origin: "GwPolicy default/behind spec.backend.transformation" },
    ]);
    assert.deepEqual(
      transformation?.lost.map(({ level, origin }) => [level, origin]),
      [
        ["gateway", "GwPolicy default/gateway spec.backend.transformation"],
        ["route", "GwPolicy default/route spec.backend.transformation"],
        ["rule", "GwPolicy default/rule spec.backend.transformation"],
        ["backend", "GwPolicy default/backend spec.backend.transformation"],
        ["section", "GwPolicy default/section spec.backend.transformation"],
        ["own", "GwBackend default/chat spec.policies.transformation"],
        ["own", "GwBackend default/chat provider own policies.transformation"],
      ],
    );
  });

test("a policy behind the provider of a GwModel holds too, and a change reaches no other backend", async (t) => {
  const servers = await startModelServers(t);
  const [one, two] = servers.ports;
  const fixed = documents(
    MODEL_GATEWAY,
    service("one", one),
    service("two", two),
    model("llama"),
    model("other", { to: "two" }),
  );
  const gateway = await startGateway(contextOf(t), fixed);
  const by = async (name: string): Promise<unknown> => {
    const { status } = await ask({ gateway }, {}, name);
    assert.equal(status, 200);
    return servers.received.at(-1)?.headers["x-by"];
  };
  for (const voice of VOICES) {
    const refs = '{group: "", kind: Service, name: one}';
    await gateway.change(documents(fixed, policy("behind", { refs, says: `backend: {${sets(voice)}}` })));
    assert.deepEqual([await by("llama"), await by("other")], [voice, undefined]);
  }
  await gateway.change(fixed);
  assert.equal(await by("llama"), undefined);
});

test("an invalid policy on the backend behind one provider closes that provider alone, until it is mended", async (t) => {
  const place = await startPlace(t, "Service");
  const { gateway, fixed, servers } = place;
  const [, two] = servers.ports;
  const spare = `{name: spare, custom: {formats: [{type: Completions}], backendRef: {group: "", kind: Service, name: spare, port: 80}}}`;
  const groups = chat("Service").replace("]}]}", `, ${spare}]}]}`);
  const serve = async (says: string): Promise<number[]> => {
    const behind = policy("behind", { refs: TARGETS.Service, says });
    await gateway.change(documents(fixed, service("spare", two), groups, behind));
    const statuses: number[] = [];
    // Draws the first provider, and then the second one.
    for (place.random of [0, 0.99]) statuses.push((await ask(place)).status);
    return statuses;
  };
  assert.deepEqual(await serve("backend: {auth: {key: 1}}"), [500, 200]);
  assert.deepEqual(
    servers.received.map(({ port, headers }) => [port, headers.authorization]),
    [[two, undefined]],
  );
  assert.deepEqual(await serve("backend: {auth: {key: mended}}"), [200, 200]);
  assert.equal(servers.received[1]?.headers.authorization, "Bearer mended");
});
