import assert from "node:assert/strict";
import { test } from "node:test";
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../../src/admission/validate.ts";
import { ViolationList } from "../../../src/admission/violation-list.ts";
import type { Violation } from "../../../src/admission/violation.ts";

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
  for (const value of ["/" + "a{500}".repeat(3), "/((.{1,10}){1,10}){1,10}b"]) {
    const [fault = ""] = lines(route([{ matches: [{ path: { type: "RegularExpression", value } }] }]));
    assert.match(fault, /^spec\.rules\[0\]\.matches\[0\]\.path\.value: .*: the pattern repeats too often$/);
  }
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

/** Far more than are told, and few enough for the bound on values. */
const MANY = 30_000;
const many = <T>(item: (at: number) => T): T[] => Array.from({ length: MANY }, (_, at) => item(at));
const manyMembers = <T>(item: (at: number) => T): Record<string, T> =>
  Object.fromEntries(many((at) => [`k${at}`, item(at)]));
const traffic = (fields: object): unknown => policy({ targetRefs: [GATEWAY], traffic: fields });

/** Objects with far more faults than anybody reads, one for each kind of check. */
const MANIFOLD: Readonly<Record<string, () => unknown>> = {
  "items of a wrong type": () => policy({ targetRefs: many(() => 1), traffic: TIMEOUTS }),
  "items that lack what they need": () => traffic({ rateLimit: { local: many(() => ({})) } }),
  "items with unknown fields": () => policy({ targetRefs: many(() => ({ ...GATEWAY, x: 1 })), traffic: TIMEOUTS }),
  "items with a wrong name": () => policy({ targetRefs: many(() => ({ ...GATEWAY, name: "" })), traffic: TIMEOUTS }),
  "items that repeat": () =>
    traffic({ transformation: { request: { set: many((at) => ({ name: `n${at >> 1}`, value: "'a'" })) } } }),
  "unknown fields": () => traffic(manyMembers(() => 1)),
  "unknown fields with long names": () =>
    traffic(
      Object.fromEntries(
        many((at) => at)
          .slice(0, 400)
          .map((at) => [`${at}${"x".repeat(4_000)}`, 1]),
      ),
    ),
  "unknown fields of the object itself": () => ({
    ...(policy({ targetRefs: [GATEWAY] }) as object),
    ...manyMembers(() => 1),
  }),
  "members of a map of a wrong type": () =>
    traffic({ transformation: { request: { metadata: manyMembers(() => 1) } } }),
  "lists in lists": () =>
    route(
      many((at) => at)
        .slice(0, 60)
        .map(() => ({ matches: Array.from({ length: 100 }, () => ({ headers: [1, 2, 3] })) })),
    ),
  "expressions that do not compile": () =>
    traffic({
      authorization: {
        action: "Deny",
        policy: { matchExpressions: Array.from({ length: 256 }, (_, at) => `x${at}.y`) },
      },
    }),
};

for (const [name, make] of Object.entries(MANIFOLD)) {
  test(`of ${name} a hundred are told, and how many are left out`, () => {
    const found = validate(make());
    assert.equal(found.length, 100);
    const last = found.at(-1);
    assert.match(last?.message ?? "", /^Too many: (at least )?\d+ more violations are left out/);
    assert.equal(last?.severity, "error");
    assert.ok(JSON.stringify(found).length < 400_000);
  });
}

test("a hundred violations are all told, and of warnings alone no error is made", () => {
  const unknown = (count: number): unknown =>
    traffic({ ...TIMEOUTS, ...Object.fromEntries(many((at) => [`k${at}`, 1] as const).slice(0, count)) });
  assert.equal(validate(unknown(99)).length, 99);
  assert.doesNotMatch(JSON.stringify(validate(unknown(100))), /left out/);
  assert.match(validate(unknown(101)).at(-1)?.message ?? "", /^Too many: at least 2 more violations are left out/);
  const list = new ViolationList();
  list.addAll(many((): Violation => ({ path: "", severity: "warning", reason: "", message: "", suggestion: "" })));
  assert.equal(list.isFull, false);
  list.addAll([{ path: "spec", severity: "error", reason: "FieldValueInvalid", message: "late", suggestion: "" }]);
  assert.equal(list.toArray()[0]?.message, "late");
  assert.equal(list.toArray().length, 100);
});

test("a check is not asked for more than is told", () => {
  const list = new ViolationList();
  let asked = 0;
  const endless = function* (): Generator<Violation> {
    for (;;) {
      asked++;
      yield { path: "", severity: "error", reason: "FieldValueInvalid", message: "", suggestion: "" };
    }
  };
  list.addAll(endless());
  list.addAll(endless());
  assert.equal(asked, 101);
});

test("a Deny and a condition that fail where a value is missing are warned of, with what to write", () => {
  const warned = (traffic: object): string[] =>
    validate(
      policy({ targetRefs: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "r" }], traffic }),
    ).map(({ severity, path, message, suggestion }) => `${severity} ${path}: ${message} (${suggestion})`);
  const rule = (action: string) => ({
    authorization: { action, policy: { matchExpressions: ['jwt.role == "guest"'] } },
  });
  assert.deepEqual(warned(rule("Deny")), [
    "warning spec.traffic.authorization.policy.matchExpressions[0]: reads jwt.role, which a request may not have: then the " +
      'expression fails, and the request is denied (ask first: has(jwt.role) && …, or give a default: default(jwt.role, ""))',
  ]);
  assert.deepEqual(warned(rule("Allow")), []);
  const local = { local: [{ requests: 1, unit: "Seconds" }] };
  const conditional = [{ condition: 'request.headers["x-tier"] == "free"', policy: local }];
  const [found, ...more] = warned({ rateLimit: { conditional } });
  assert.deepEqual(more, []);
  assert.match(found ?? "", /^warning spec\.traffic\.rateLimit\.conditional\[0\]\.condition: .* its branch is chosen/);
});
