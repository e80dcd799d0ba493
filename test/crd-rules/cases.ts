/** Objects for each rule and bound of our kinds. Each goes to a real API server and to admission: both must agree. */

export interface Case {
  readonly name: string;
  readonly kind: "GwPolicy" | "GwBackend";
  readonly spec: unknown;
  /** Whether both must take it. */
  readonly isSound: boolean;
}

const sound = (kind: Case["kind"], name: string, spec: unknown): Case => ({ name, kind, spec, isSound: true });
const faulty = (kind: Case["kind"], name: string, spec: unknown): Case => ({ name, kind, spec, isSound: false });

const GATEWAY = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" };
const ROUTE = { group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "r" };
const SERVICE = { group: "", kind: "Service", name: "s" };
const LIMIT = { requests: 1, unit: "Seconds" };

const on = (target: object, rest: object): object => ({ targetRefs: [target], ...rest });
const traffic = (settings: object): object => on(GATEWAY, { traffic: settings });
const auth = (settings: object): object => on(SERVICE, { backend: { auth: settings } });
const provider = (settings: object): object => ({ ai: { provider: settings } });
const group = (...names: readonly string[]): object => ({ providers: names.map((name) => ({ name, llma: {} })) });
const custom = (settings: object): object => ({ formats: [{ type: "Messages" }], ...settings });

const ENVELOPE: readonly Case[] = [
  sound("GwPolicy", "a policy on a Gateway", traffic({ timeouts: { request: "5s" } })),
  faulty("GwPolicy", "no target", { traffic: { timeouts: { request: "5s" } } }),
  faulty("GwPolicy", "two ways to name targets", {
    ...on(GATEWAY, { traffic: {} }),
    targetSelectors: [{ group: "", kind: "Service", matchLabels: { a: "b" } }],
  }),
  faulty("GwPolicy", "no settings", on(GATEWAY, {})),
  faulty("GwPolicy", "no target in the list", { targetRefs: [], traffic: {} }),
  faulty("GwPolicy", "targets of two kinds", { targetRefs: [GATEWAY, ROUTE], traffic: {} }),
  faulty("GwPolicy", "a kind that is no target", on({ group: "", kind: "Pod", name: "p" }, { backend: { tls: {} } })),
  faulty("GwPolicy", "traffic on a Service", on(SERVICE, { traffic: { timeouts: { request: "5s" } } })),
  sound("GwPolicy", "TLS to a Service", on({ ...SERVICE, sectionName: "8443" }, { backend: { tls: {} } })),
  faulty("GwPolicy", "a port of a Service by name", on({ ...SERVICE, sectionName: "https" }, { backend: { tls: {} } })),
  faulty("GwPolicy", "a port that no Service has", on({ ...SERVICE, sectionName: "65536" }, { backend: { tls: {} } })),
  sound("GwPolicy", "an override", {
    ...traffic({ timeouts: { request: "5s" } }),
    strategy: { inheritance: "Override" },
  }),
  faulty("GwPolicy", "an override of backend settings", {
    ...on(GATEWAY, { backend: { tls: {} } }),
    strategy: { inheritance: "Override" },
  }),
  sound(
    "GwPolicy",
    "authorization before routing",
    traffic({ phase: "PreRouting", authorization: { policy: { matchExpressions: ["true"] } } }),
  ),
  faulty("GwPolicy", "a limit before routing", traffic({ phase: "PreRouting", rateLimit: { local: [LIMIT] } })),
  faulty("GwPolicy", "before routing on a route", on(ROUTE, { traffic: { phase: "PreRouting" } })),
  faulty("GwPolicy", "an empty backend", on(SERVICE, { backend: {} })),
];

const TRAFFIC: readonly Case[] = [
  faulty(
    "GwPolicy",
    "two sources of keys",
    traffic({ apiKeyAuthentication: { secretRef: { name: "a" }, secretSelector: { matchLabels: { a: "b" } } } }),
  ),
  faulty("GwPolicy", "no source of keys", traffic({ apiKeyAuthentication: { mode: "Optional" } })),
  faulty(
    "GwPolicy",
    "keys in a kind without group",
    traffic({ apiKeyAuthentication: { secretRef: { name: "a", kind: "Vault" } } }),
  ),
  faulty(
    "GwPolicy",
    "keys in a group without kind",
    traffic({ apiKeyAuthentication: { secretRef: { name: "a", group: "x.y" } } }),
  ),
  sound(
    "GwPolicy",
    "an empty kind is a Secret",
    traffic({ apiKeyAuthentication: { secretRef: { name: "a", group: "", kind: "" } } }),
  ),
  faulty(
    "GwPolicy",
    "two places of a key",
    traffic({
      apiKeyAuthentication: { secretRef: { name: "a" }, location: { cookie: { name: "a" }, expression: "'x'" } },
    }),
  ),
  faulty("GwPolicy", "a limit of requests and tokens", traffic({ rateLimit: { local: [{ ...LIMIT, tokens: 1 }] } })),
  faulty("GwPolicy", "a limit of nothing", traffic({ rateLimit: { local: [{ unit: "Hours" }] } })),
  faulty("GwPolicy", "a unit that does not exist", traffic({ rateLimit: { local: [{ requests: 1, unit: "Days" }] } })),
  faulty("GwPolicy", "no requests at all", traffic({ rateLimit: { local: [{ requests: 0, unit: "Hours" }] } })),
  faulty("GwPolicy", "empty limits", traffic({ rateLimit: {} })),
  sound(
    "GwPolicy",
    "limits by condition",
    traffic({
      rateLimit: { conditional: [{ condition: "true", policy: { local: [LIMIT] } }, { policy: { local: [LIMIT] } }] },
    }),
  ),
  faulty(
    "GwPolicy",
    "a fixed form beside the conditional one",
    traffic({
      rateLimit: { local: [LIMIT], conditional: [{ policy: { local: [LIMIT] } }] },
    }),
  ),
  faulty(
    "GwPolicy",
    "two entries without condition",
    traffic({
      directResponse: { conditional: [{ policy: { status: 200 } }, { policy: { status: 201 } }] },
    }),
  ),
  faulty(
    "GwPolicy",
    "an entry after the one without condition",
    traffic({
      directResponse: { conditional: [{ policy: { status: 200 } }, { condition: "true", policy: { status: 201 } }] },
    }),
  ),
  faulty("GwPolicy", "an answer without status", traffic({ directResponse: { body: "x" } })),
  faulty(
    "GwPolicy",
    "an answer with two bodies",
    traffic({ directResponse: { status: 200, body: "x", bodyExpression: "'x'" } }),
  ),
  faulty(
    "GwPolicy",
    "an entry with two bodies",
    traffic({
      directResponse: { conditional: [{ policy: { status: 200, body: "x", bodyExpression: "'x'" } }] },
    }),
  ),
  faulty("GwPolicy", "a status out of range", traffic({ directResponse: { status: 100 } })),
  faulty("GwPolicy", "an empty transformation", traffic({ transformation: {} })),
  faulty("GwPolicy", "an empty part of a transformation", traffic({ transformation: { request: {} } })),
  faulty(
    "GwPolicy",
    "a pseudo-header that does not exist",
    traffic({ transformation: { request: { remove: [":proto"] } } }),
  ),
  faulty(
    "GwPolicy",
    "a header twice",
    traffic({
      transformation: {
        request: {
          set: [
            { name: "a", value: "1" },
            { name: "a", value: "2" },
          ],
        },
      },
    }),
  ),
  faulty("GwPolicy", "a removed header twice", traffic({ headerModifiers: { request: { remove: ["a", "a"] } } })),
  faulty("GwPolicy", "empty header modifiers", traffic({ headerModifiers: {} })),
  faulty("GwPolicy", "empty timeouts", traffic({ timeouts: {} })),
  faulty("GwPolicy", "a duration with days", traffic({ timeouts: { request: "1d" } })),
  faulty("GwPolicy", "a duration of zero seconds", traffic({ timeouts: { request: "0s" } })),
  faulty("GwPolicy", "a duration of several zeros", traffic({ timeouts: { request: "0h0m" } })),
  faulty("GwPolicy", "a duration of leading zeros alone", traffic({ timeouts: { request: "000ms" } })),
  sound("GwPolicy", "a duration of which one group is zero", traffic({ timeouts: { request: "0h10ms" } })),
  faulty("GwPolicy", "a number for a text", traffic({ timeouts: { request: 5 } })),
  faulty("GwPolicy", "a text for a number", traffic({ directResponse: { status: "200" } })),
  faulty("GwPolicy", "a fraction for a number", traffic({ directResponse: { status: 200.5 } })),
  faulty("GwPolicy", "an object for a text", traffic({ directResponse: { status: 200, body: { a: 1 } } })),
  faulty("GwPolicy", "a null in a list", traffic({ headerModifiers: { request: { remove: [null] } } })),
  faulty("GwPolicy", "a long text", traffic({ directResponse: { status: 200, body: "é".repeat(4097) } })),
  faulty("GwPolicy", "a long list", traffic({ rateLimit: { local: Array.from({ length: 17 }, () => LIMIT) } })),
  faulty("GwPolicy", "text for a list", traffic({ rateLimit: { local: "many" } })),
  sound("GwPolicy", "a null is as good as nothing", traffic({ rateLimit: null, timeouts: { request: "5s" } })),
];

const BACKEND: readonly Case[] = [
  sound("GwBackend", "a host and a port", { static: { host: "h", port: 80 } }),
  sound("GwBackend", "a socket", { static: { unixPath: "/run/x" } }),
  faulty("GwBackend", "a host without port", { static: { host: "h" } }),
  faulty("GwBackend", "a socket with a port", { static: { unixPath: "/run/x", port: 80 } }),
  faulty("GwBackend", "no variant", {}),
  faulty("GwBackend", "two variants", { static: { host: "h", port: 80 }, ...provider({ llma: {} }) }),
  faulty("GwBackend", "a port out of range", { static: { host: "h", port: 65_536 } }),
  faulty("GwBackend", "one provider and groups", { ai: { provider: { llma: {} }, groups: [group("a")] } }),
  sound("GwBackend", "groups", { ai: { groups: [group("a", "b"), group("c")] } }),
  faulty("GwBackend", "a name twice in a group", { ai: { groups: [group("a", "a")] } }),
  faulty("GwBackend", "a name in two groups", { ai: { groups: [group("a"), group("b", "a")] } }),
  faulty("GwBackend", "no provider key", provider({ host: "h" })),
  faulty("GwBackend", "two provider keys", provider({ llma: {}, llme: {} })),
  faulty("GwBackend", "a port without host", provider({ llma: {}, port: 443 })),
  faulty("GwBackend", "a path and a prefix", provider({ llma: {}, host: "h", path: "/a", pathPrefix: "/b" })),
  faulty("GwBackend", "a prefix without host", provider({ llme: {}, pathPrefix: "/b" })),
  faulty("GwBackend", "a prefix for another provider", provider({ llmf: {}, host: "h", pathPrefix: "/b" })),
  sound("GwBackend", "a service of one's own by host", provider({ custom: custom({}), host: "h", port: 80 })),
  sound(
    "GwBackend",
    "a service of one's own by reference",
    provider({ custom: custom({ backendRef: { name: "s", port: 80 } }) }),
  ),
  faulty(
    "GwBackend",
    "a service of one's own by both",
    provider({ custom: custom({ backendRef: { name: "s", port: 80 } }), host: "h", port: 80 }),
  ),
  faulty("GwBackend", "a service of one's own by host alone", provider({ custom: custom({}), host: "h" })),
  faulty("GwBackend", "a Service without port", provider({ custom: custom({ backendRef: { name: "s" } }) })),
  faulty(
    "GwBackend",
    "a reference to another kind",
    provider({ custom: custom({ backendRef: { name: "s", kind: "Pod", port: 80 } }) }),
  ),
  faulty(
    "GwBackend",
    "a format twice",
    provider({ custom: { formats: [{ type: "Messages" }, { type: "Messages" }] }, host: "h", port: 80 }),
  ),
  faulty(
    "GwBackend",
    "paths of formats beside a path",
    provider({ custom: { formats: [{ type: "Messages", path: "/m" }] }, host: "h", port: 80, path: "/x" }),
  ),
  faulty(
    "GwBackend",
    "a path without slash",
    provider({ custom: { formats: [{ type: "Messages", path: "m" }] }, host: "h", port: 80 }),
  ),
  faulty(
    "GwBackend",
    "a dated version without deployment",
    provider({ llmc: { endpoint: "e", apiVersion: "2024-10-21" } }),
  ),
  faulty(
    "GwBackend",
    "a project resource without project",
    provider({ llmd: { resourceName: "r", resourceType: "ResB" } }),
  ),
  faulty("GwBackend", "a region in upper case", provider({ llmh: { region: "EU" } })),
  faulty("GwBackend", "half a guardrail", provider({ llmh: { guardrail: { identifier: "x" } } })),
  faulty("GwPolicy", "two credentials", auth({ key: "k", secretRef: { name: "s" } })),
  faulty("GwPolicy", "no credential", auth({ location: { cookie: { name: "c" } } })),
  faulty(
    "GwPolicy",
    "names that are both checked and not",
    on(SERVICE, {
      backend: { tls: { insecureSkipVerify: "Hostname", verifySubjectAltNames: ["a"] } },
    }),
  ),
  faulty(
    "GwPolicy",
    "authorities that are not used",
    on(SERVICE, {
      backend: { tls: { insecureSkipVerify: "All", caCertificateRefs: [{ name: "ca" }] } },
    }),
  ),
  faulty(
    "GwPolicy",
    "two client certificates",
    on(SERVICE, { backend: { tls: { mtlsCertificateRef: [{ name: "a" }, { name: "b" }] } } }),
  ),
];

export const CASES: readonly Case[] = [...ENVELOPE, ...TRAFFIC, ...BACKEND];
