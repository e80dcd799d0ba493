/** What admission finds in texts and between fields, where no rule of a CRD looks: src/admission/checks/semantics.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { applyDefaults } from "../../../../generated/defaults.ts";
import { validate } from "../../../../src/admission/validate.ts";

const GATEWAY = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" };

function policy(spec: object): unknown {
  return applyDefaults("gwproxy.dev/GwPolicy", {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwPolicy",
    metadata: { name: "a", namespace: "default" },
    spec: { targetRefs: [GATEWAY], ...spec },
  });
}

function lines(object: unknown): string[] {
  return validate(object).map(
    ({ path, message, suggestion }) => `${path}: ${message}${suggestion === "" ? "" : ` (${suggestion})`}`,
  );
}

/** The unit of a descriptor, and whether the cost may read the request and the answer. */
const COSTS: readonly (readonly [unit: object, text: string, fault: RegExp | undefined])[] = [
  [{}, 'uint(request.headers["x-cost"])', undefined],
  [{}, "uint(response.code)", /unknown variable "response".* \(in the request phase there are: /],
  [{ unit: "Requests" }, "llm.totalTokens", /unknown variable "llm"/],
  [{ unit: "Tokens" }, "llm.totalTokens", undefined],
  [{ unit: "Tokens" }, "uint(response.code)", undefined],
  [{ unit: "Tokens" }, "uint(answer.code)", /unknown variable "answer"/],
];

for (const [unit, cost, fault] of COSTS) {
  test(`the cost ${cost} of a descriptor with ${JSON.stringify(unit)} reads what exists when it is evaluated`, () => {
    const entries = [{ name: "all", expression: "'x'" }];
    const service = { backendRef: { name: "limits", port: 8081 }, domain: "d" };
    const global = { ...service, descriptors: [{ entries, cost, ...unit }] };
    const conditional = [{ condition: "true", policy: { global } }];
    for (const [rateLimit, at] of [
      [{ global }, "global"],
      [{ conditional }, "conditional[0].policy.global"],
    ] as const) {
      const [found, ...more] = lines(policy({ traffic: { rateLimit } }));
      assert.deepEqual(more, []);
      if (fault === undefined) assert.equal(found, undefined);
      else
        assert.ok(found?.startsWith(`spec.traffic.rateLimit.${at}.descriptors[0].cost: `) && fault.test(found), found);
    }
  });
}

const API_KEYS = { secretRef: { name: "keys" } };
const USERS = { secretRef: { name: "users" } };
const JWT = { providers: [{ issuer: "https://a.test", jwks: { inline: '{"keys": []}' } }] };
const header = (name: string, prefix?: string) => ({ location: { header: { name, prefix } } });
const query = (name: string) => ({ location: { queryParameter: { name } } });
const cookie = (name: string) => ({ location: { cookie: { name } } });
const expression = (text: string) => ({ location: { expression: text } });

/** Kinds of authentication in one policy, and the path of the one that reads where another one reads. */
const READ: readonly (readonly [name: string, traffic: object, at: string | undefined])[] = [
  ["keys beside tokens", { jwtAuthentication: JWT, apiKeyAuthentication: API_KEYS }, "apiKeyAuthentication"],
  ["users beside tokens", { jwtAuthentication: JWT, basicAuthentication: USERS }, undefined],
  [
    "keys in a header of their own",
    { jwtAuthentication: JWT, apiKeyAuthentication: { ...API_KEYS, ...header("x-key") } },
    undefined,
  ],
  [
    "one header in two spellings",
    { jwtAuthentication: { ...JWT, ...header("X-Key") }, apiKeyAuthentication: { ...API_KEYS, ...header("x-key") } },
    "apiKeyAuthentication.location",
  ],
  [
    "a header with and without a prefix",
    { basicAuthentication: USERS, apiKeyAuthentication: { ...API_KEYS, ...header("authorization") } },
    "apiKeyAuthentication.location",
  ],
  [
    "two schemes of one header",
    { jwtAuthentication: JWT, apiKeyAuthentication: { ...API_KEYS, ...header("Authorization", "Key ") } },
    undefined,
  ],
  [
    "one cookie",
    { jwtAuthentication: { ...JWT, ...cookie("t") }, basicAuthentication: { ...USERS, ...cookie("t") } },
    "basicAuthentication.location",
  ],
  [
    "cookies of two spellings",
    { jwtAuthentication: { ...JWT, ...cookie("t") }, basicAuthentication: { ...USERS, ...cookie("T") } },
    undefined,
  ],
  [
    "a parameter and a cookie of one name",
    { jwtAuthentication: { ...JWT, ...query("t") }, apiKeyAuthentication: { ...API_KEYS, ...cookie("t") } },
    undefined,
  ],
  [
    "one expression",
    {
      jwtAuthentication: { ...JWT, ...expression("string(request.body)") },
      apiKeyAuthentication: { ...API_KEYS, ...expression(" string(request.body)") },
    },
    "apiKeyAuthentication.location",
  ],
  [
    "tokens that are left to others",
    { jwtAuthentication: { ...JWT, mode: "Permissive" }, apiKeyAuthentication: API_KEYS },
    undefined,
  ],
];

for (const [name, traffic, at] of READ) {
  test(`of ${name} ${at === undefined ? "all are taken" : "the later one is refused"}`, () => {
    const [found, ...more] = lines(policy({ traffic }));
    assert.deepEqual(more, []);
    assert.equal(found?.slice(0, found.indexOf(": ")), at === undefined ? undefined : `spec.traffic.${at}`);
    if (at !== undefined) assert.match(found ?? "", /no request passes both \(in \w+\.location name another header/);
  });
}

const secret = { secretRef: { name: "s" } };
/** `auth` of a backend, and the indices of the credentials that are refused. */
const WRITTEN: readonly (readonly [name: string, auth: object, at: readonly number[]])[] = [
  [
    "one header twice",
    {
      credentials: [
        { ...secret, ...header("X-Key", "a ") },
        { ...secret, ...header("x-key", "b ") },
      ],
    },
    [1],
  ],
  ["one cookie three times", { credentials: [1, 2, 3].map(() => ({ ...secret, ...cookie("c") })) }, [1, 2]],
  [
    "three places",
    { credentials: [header("a"), query("a"), cookie("a")].map((place) => ({ ...secret, ...place })) },
    [],
  ],
  ["the default of a key", { key: "k", credentials: [{ ...secret, ...header("Authorization") }] }, [0]],
  ["the place of a key", { key: "k", ...query("q"), credentials: [{ ...secret, ...query("q") }] }, [0]],
  [
    "another place than the key",
    { key: "k", ...query("q"), credentials: [{ ...secret, ...header("authorization") }] },
    [],
  ],
  ["that of a signature", { cloudA: {}, credentials: [{ ...secret, ...header("authorization") }] }, [0]],
  [
    "the place of a token of ours",
    { jwtSign: { signingKeyRef: { name: "s" }, ...header("x-t") }, credentials: [{ ...secret, ...header("x-t") }] },
    [0],
  ],
];

for (const [name, auth, at] of WRITTEN) {
  test(`credentials that are written to ${name}: ${at.length} are refused, wherever the block stands`, () => {
    const inBackend = applyDefaults("gwproxy.dev/GwBackend", {
      apiVersion: "gwproxy.dev/v1alpha1",
      kind: "GwBackend",
      metadata: { name: "b", namespace: "default" },
      spec: { static: { host: "a.test", port: 80 }, policies: { auth } },
    });
    for (const [object, block] of [
      [policy({ backend: { auth } }), "spec.backend.auth"],
      [inBackend, "spec.policies.auth"],
    ] as const) {
      const found = validate(object).filter(({ message }) => message.startsWith("Duplicate value: "));
      assert.deepEqual(
        found.map(({ path }) => path),
        at.map((index) => `${block}.credentials[${index}].location`),
      );
    }
  });
}

/** Rules of a Deny, and whether the variable can ever have a value where the rule runs. */
const DENIED: readonly (readonly [phase: string, rule: string, refused: boolean])[] = [
  ["PostRouting", 'source.unverifiedWorkload.name == "a"', true],
  ["PostRouting", 'has(source.unverifiedWorkload) && source.unverifiedWorkload.name == "a"', true],
  ["PreRouting", 'has(extproc.blocked) && string(extproc.blocked) == "yes"', true],
  ["PostRouting", 'has(extproc.blocked) && string(extproc.blocked) == "yes"', false],
  ["PreRouting", '"team" in metadata', true],
  ["PostRouting", '"team" in metadata', false],
  ["PreRouting", "has(jwt.sub)", false],
  ["PreRouting", '"team" in extauthz', false],
  ["PostRouting", 'source.spiffeId == "spiffe://a/b"', false],
];

for (const [phase, rule, refused] of DENIED) {
  test(`a Deny on ${rule} in the phase ${phase} is ${refused ? "refused" : "taken"}`, () => {
    const faultsOf = (action: string): string[] => {
      const authorization = { action, policy: { matchExpressions: [rule] } };
      const found = validate(policy({ traffic: { phase, authorization } })).filter(
        ({ severity }) => severity !== "warning",
      );
      return found.map(({ path, message }) => `${path}: ${message}`);
    };
    assert.equal(
      faultsOf("Deny").some((text) => /matchExpressions\[0\]: .* never has a value here/.test(text)),
      refused,
    );
    assert.equal(faultsOf("Deny").length, refused ? 1 : 0);
    assert.deepEqual(faultsOf("Allow"), []);
  });
}
