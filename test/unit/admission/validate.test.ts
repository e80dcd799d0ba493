import assert from "node:assert/strict";
import { test } from "node:test";
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../../src/admission/validate.ts";

const GATEWAY = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" };
const SERVICE = { group: "", kind: "Service", name: "svc" };
const TIMEOUTS = { timeouts: { request: "1s" } };

function policy(spec: unknown): unknown {
  return applyDefaults("gwproxy.dev/GwPolicy", {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwPolicy",
    metadata: { name: "a", namespace: "default" },
    spec,
  });
}

function backend(spec: unknown): unknown {
  return applyDefaults("gwproxy.dev/GwBackend", {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwBackend",
    metadata: { name: "a", namespace: "default" },
    spec,
  });
}

function route(rules: unknown): unknown {
  return applyDefaults("gateway.networking.k8s.io/HTTPRoute", {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name: "r", namespace: "default" },
    spec: { rules },
  });
}

function lines(object: unknown, old?: unknown): string[] {
  return validate(object, old).map(
    ({ path, message, suggestion }) => `${path}: ${message}${suggestion === "" ? "" : ` (${suggestion})`}`,
  );
}

test("a sound policy, backend and route have no violation", () => {
  assert.deepEqual(lines(policy({ targetRefs: [GATEWAY], traffic: TIMEOUTS })), []);
  assert.deepEqual(lines(backend({ static: { host: "example.com", port: 443 } })), []);
  assert.deepEqual(
    lines(
      route([{ matches: [{ path: { type: "PathPrefix", value: "/" } }], backendRefs: [{ name: "svc", port: 80 }] }]),
    ),
    [],
  );
});

test("bounds and patterns are refused in the API server's words", () => {
  assert.deepEqual(lines(policy({ targetRefs: Array.from({ length: 17 }, () => GATEWAY), traffic: TIMEOUTS })), [
    "spec.targetRefs: Too many: 17: must have at most 16 items",
  ]);
  assert.deepEqual(lines(policy({ targetRefs: [], traffic: TIMEOUTS })), [
    "spec.targetRefs: Invalid value: 0: spec.targetRefs in body should have at least 1 items",
  ]);
  assert.deepEqual(lines(policy({ targetRefs: [GATEWAY], traffic: { timeouts: { request: "1x" } } })), [
    `spec.traffic.timeouts.request: Invalid value: "1x": spec.traffic.timeouts.request in body should match '^([0-9]{1,5}(h|m|s|ms)){1,4}$'`,
  ]);
  assert.deepEqual(
    lines(policy({ targetRefs: [{ ...GATEWAY, name: "x".repeat(254) }], traffic: TIMEOUTS })).slice(0, 1),
    ["spec.targetRefs[0].name: Too long: may not be more than 253 bytes"],
  );
  assert.deepEqual(lines(backend({ static: { host: "example.com", port: 70_000 } })), [
    "spec.static.port: Invalid value: 70000: spec.static.port in body should be less than or equal to 65535",
  ]);
  assert.deepEqual(lines(backend({ static: { host: "example.com", port: "http" } })), [
    'spec.static.port: Invalid value: "string": spec.static.port in body must be of type integer: "string"',
  ]);
});

test("missing fields and values outside an enumeration are refused in the API server's words", () => {
  const { name: _, ...nameless } = GATEWAY;
  assert.deepEqual(lines(policy({ targetRefs: [nameless], traffic: TIMEOUTS })), [
    "spec.targetRefs[0].name: Required value",
  ]);
  assert.deepEqual(
    lines(
      policy({
        targetRefs: [GATEWAY],
        traffic: { authorization: { action: "Maybe", policy: { matchExpressions: ["true"] } } },
      }),
    ),
    ['spec.traffic.authorization.action: Unsupported value: "Maybe": supported values: "Allow", "Deny", "Require"'],
  );
});

test("unknown fields are refused with their path and the field that was meant", () => {
  assert.deepEqual(lines(policy({ targetRefs: [GATEWAY], traffic: { timeout: { request: "1s" } } })), [
    'spec.traffic.timeout: unknown field "spec.traffic.timeout" (did you mean `timeouts`?)',
  ]);
  assert.deepEqual(lines(route([{ backendRef: [] }])), [
    'spec.rules[0].backendRef: unknown field "spec.rules[0].backendRef" (did you mean `backendRefs`?)',
  ]);
});

test("rules run only on objects of the right shape", () => {
  const found = lines(policy({ targetRefs: [GATEWAY], targetSelectors: 3 }));
  assert.equal(found.length, 1);
  assert.match(
    found[0] ?? "",
    /^spec\.targetSelectors: Invalid value: "integer": .* must be of type array: "integer"$/,
  );
});

test("a duration of zero is refused at its path, in every spelling", () => {
  for (const request of ["0s", "0h0m", "000ms"]) {
    assert.deepEqual(lines(policy({ targetRefs: [GATEWAY], traffic: { timeouts: { request } } })), [
      'spec.traffic.timeouts.request: Invalid value: "string": must be longer than zero',
    ]);
  }
  assert.deepEqual(lines(policy({ targetRefs: [GATEWAY], traffic: { timeouts: { request: "0h10ms" } } })), []);
});

const REFUSED: readonly [rule: string, spec: unknown, expected: RegExp][] = [
  [
    "one of targetRefs and targetSelectors",
    { traffic: TIMEOUTS },
    /^spec: Invalid value: "object": exactly one of the fields in \[targetRefs targetSelectors\]/,
  ],
  ["P1", { targetRefs: [GATEWAY] }, /at least one of the fields in/],
  [
    "P2",
    { targetRefs: [GATEWAY], strategy: { inheritance: "Override" }, backend: { auth: { key: "k" } } },
    /inheritance/,
  ],
  ["P3", { targetRefs: [GATEWAY, { ...GATEWAY, kind: "HTTPRoute" }], traffic: TIMEOUTS }, /kind/],
  ["P4", { targetRefs: [{ group: "apps", kind: "Deployment", name: "x" }], traffic: TIMEOUTS }, /targetRefs/],
  ["P8", { targetRefs: [SERVICE], traffic: TIMEOUTS }, /traffic may be attached only to/],
  [
    "P9",
    { targetRefs: [{ ...GATEWAY, kind: "HTTPRoute" }], traffic: { ...TIMEOUTS, phase: "PreRouting" } },
    /PreRouting/,
  ],
  [
    "P10",
    { targetRefs: [{ ...SERVICE, sectionName: "http" }], backend: { auth: { key: "k" } } },
    /port number from 1 to 65535/,
  ],
];

for (const [rule, spec, expected] of REFUSED) {
  test(`the rule ${rule} refuses`, () => {
    const found = lines(policy(spec));
    assert.ok(
      found.some((line) => expected.test(line)),
      found.join("\n"),
    );
  });
}

test("expressions must compile and read what exists", () => {
  const found = lines(
    policy({
      targetRefs: [GATEWAY],
      traffic: {
        authorization: {
          action: "Allow",
          policy: {
            matchExpressions: [
              "request.path ==",
              "user.name == 'x'",
              "request.path.startsWith('/x')",
              "request.path.matches('(')",
            ],
          },
        },
      },
    }),
  );
  assert.equal(found.length, 3);
  assert.match(found[2] ?? "", /matchExpressions\[3\]: .*: "matches" never accepts its argument "\(".*\(at 21\)$/);
  assert.match(
    found[0] ?? "",
    /^spec\.traffic\.authorization\.policy\.matchExpressions\[0\]: Invalid value: "request\.path ==": the expression does not compile/,
  );
  assert.match(found[1] ?? "", /matchExpressions\[1\]: .*unknown variable "user"/);
});

test("an expression may read only what exists in the phase in which it runs", () => {
  const body = (phase: "request" | "response", expression: string): string[] =>
    lines(policy({ targetRefs: [GATEWAY], traffic: { transformation: { [phase]: { body: expression } } } }));
  assert.deepEqual(body("response", "string(response.code)"), []);
  const [fault = ""] = body("request", "string(response.code)");
  assert.match(fault, /^spec\.traffic\.transformation\.request\.body: .*unknown variable "response"/);
  assert.match(fault, /\(in the request phase there are: .*request, .*jwt/);
});

test("a regular expression that RE2 does not have is refused, and one that is a plain path is not looked at", () => {
  const match = (type: string): unknown => route([{ matches: [{ path: { type, value: "/(?=x)" } }] }]);
  assert.match(
    lines(match("RegularExpression"))[0] ?? "",
    /^spec\.rules\[0\]\.matches\[0\]\.path\.value: Invalid value: "\/\(\?=x\)": not a regular expression of RE2/,
  );
  assert.ok(!lines(match("Exact")).some((line) => line.includes("RE2")));
});

test("kinds that do not exist are refused with the one that was meant, and others' kinds pass", () => {
  assert.match(
    lines({ apiVersion: "gwproxy.dev/v1alpha1", kind: "GWPolicy", metadata: { name: "a" } })[0] ?? "",
    /did you mean `GwPolicy`\?/,
  );
  assert.match(
    lines({ apiVersion: "gwproxy.dev/v1", kind: "GwPolicy", metadata: { name: "a" } })[0] ?? "",
    /^apiVersion: Unsupported value/,
  );
  assert.deepEqual(lines({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "a" }, anything: true }), []);
  assert.deepEqual(
    validate({ apiVersion: "gateway.networking.k8s.io/v1", kind: "UDPRoute", metadata: { name: "a" } }).map(
      ({ severity }) => severity,
    ),
    ["warning"],
  );
  assert.match(
    lines({ apiVersion: "gateway.networking.k8s.io/v1", kind: "HttpRoute", metadata: { name: "a" } })[0] ?? "",
    /did you mean `HTTPRoute`\?/,
  );
});

test("a pattern that repeats too often is refused before it is compiled", () => {
  const value = "/" + "a{500}".repeat(3);
  const [fault = ""] = lines(route([{ matches: [{ path: { type: "RegularExpression", value } }] }]));
  assert.match(fault, /: the pattern repeats too often$/);
});

test("two lines for one user are refused, and no line is repeated in the message", () => {
  const users = ["ann:$apr1$a$b", "bob:$apr1$c$d", "ann:$apr1$e$f", "no-colon"];
  assert.deepEqual(lines(policy({ targetRefs: [GATEWAY], traffic: { basicAuthentication: { users } } })), [
    'spec.traffic.basicAuthentication.users[2]: Duplicate value: "***": another line has the same name (keep one line for each name)',
    'spec.traffic.basicAuthentication.users[3]: Invalid value: "***": must be a name, a colon and a hash',
  ]);
});

test("a fraction is no integer and is held against the bounds as the API server prints them", () => {
  const port = (value: number): string[] => lines(backend({ static: { host: "h", port: value } }));
  const path = "spec.static.port";
  assert.deepEqual(port(0.00005).toSorted(), [
    `${path}: Invalid value: "number": ${path} in body must be of type integer: "number"`,
    `${path}: Invalid value: 5e-05: ${path} in body should be greater than or equal to 1`,
  ]);
  assert.deepEqual(port(2 ** 70).toSorted(), [
    `${path}: Invalid value: "number": ${path} in body must be of type integer: "number"`,
    `${path}: Invalid value: 1.1805916207174113e+21: ${path} in body should be less than or equal to 65535`,
  ]);
});

test("rules are asked beside a wrong pattern, and not beside a wrong type", () => {
  const target = { ...GATEWAY, kind: "a b" };
  const found = lines(policy({ targetRefs: [target], traffic: TIMEOUTS })).map((line) => line.split(":")[0]);
  assert.deepEqual([...new Set(found)].toSorted(), ["spec.targetRefs[0].kind", "spec.traffic"]);
  assert.equal(lines(policy({ targetRefs: [{ ...target, name: 7 }], traffic: TIMEOUTS })).length, 2);
});

test("a secret's value never appears in a message", () => {
  const found = JSON.stringify(
    validate(policy({ targetRefs: [SERVICE], backend: { auth: { key: { hunter2: "hunter2" } } } })),
  );
  assert.match(found, /spec\.backend\.auth\.key/);
  assert.doesNotMatch(found.replaceAll("spec.backend.auth.key.hunter2", ""), /hunter2/);
});

test("an object without a name of its own yet is judged by the rest", () => {
  assert.deepEqual(
    lines({ ...(policy({ targetRefs: [GATEWAY], traffic: TIMEOUTS }) as object), metadata: { generateName: "a-" } }),
    [],
  );
});

test("what is too big or too deep is refused before it is walked", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 10_000; level++) deep = { a: deep };
  assert.match(lines(policy(deep))[0] ?? "", /^: Too long: may not be nested deeper than/);
  assert.match(lines(policy({ a: "x".repeat(3 * 1024 * 1024) }))[0] ?? "", /^: Too long: may not be more than/);
  assert.match(
    lines(policy({ a: Array.from({ length: 300_000 }, () => 1) }))[0] ?? "",
    /^: Too long: may not hold more than/,
  );
});

test("values that are no objects are refused", () => {
  for (const value of [null, undefined, 3, "x", []]) assert.equal(validate(value).length, 1);
  assert.deepEqual(lines({}), ["apiVersion: Required value", "kind: Required value"]);
});
