/** What a support bundle hides: secrets by the schemas of kinds, by the shape of objects, and by the form of text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SECRETS } from "../../../generated/secrets.ts";
import { maskObject, maskText } from "../../../src/cli/collect/mask.ts";

/** Objects with a secret text, which no mask may leave, and a text that has to stay. */
const HIDDEN = "Hidden-1";
const KEPT = "kept-1";
/** Scripts that hold the secret in each way in which a shell, a header field or a setting gives one. */
const SCRIPTS: readonly string[] = [
  `exec run --token=${HIDDEN}`,
  `run --token ${HIDDEN} --log-level=info`,
  `run --token "a b ${HIDDEN}"; echo`,
  `run --token='a b ${HIDDEN}'`,
  `run --token=a\\ b${HIDDEN}`,
  `run --token "a \\" ${HIDDEN}"`,
  `run --token=$(echo a ${HIDDEN})`,
  `run --token=\`echo a ${HIDDEN}\``,
  `run --token "a ${HIDDEN}`,
  `bash -c "run --token=${HIDDEN}"`,
  `set -e\nexport DB_PASSWORD=${HIDDEN}\nrun`,
  `DB_PASSWORD='a ${HIDDEN}' run`,
  `env -i API_KEY=${HIDDEN} run`,
  `run --env=CLIENT_SECRET=${HIDDEN}`,
  `run --set auth.password=${HIDDEN},a=b`,
  `curl 'https://a/?access_token=${HIDDEN}&x=1'`,
  `curl -H 'X-Api-Key: a ${HIDDEN}' https://a`,
  `curl -d '{"clientSecret": "a ${HIDDEN}"}' https://a`,
  `curl -d '{"clientSecret":"a ${HIDDEN}"}' https://a`,
  `run "host=a password=${HIDDEN} user=b"`,
];

const HOSTILE: readonly (readonly [what: string, groupKind: string, object: object])[] = [
  ["a key of our schema", "gwproxy.dev/GwBackend", { spec: { host: KEPT, policies: { auth: { key: HIDDEN } } } }],
  [
    "a key that is not the text that the schema asks for",
    "gwproxy.dev/GwBackend",
    { spec: { host: KEPT, policies: { auth: { key: { nested: [HIDDEN, { more: HIDDEN }] } } } } },
  ],
  [
    "a key deep in a list",
    "gwproxy.dev/GwBackend",
    { spec: { ai: { groups: [{}, { providers: [{ name: KEPT, policies: { auth: { key: HIDDEN } } }] }] } } },
  ],
  [
    "password hashes",
    "gwproxy.dev/GwPolicy",
    { spec: { traffic: { basicAuthentication: { realm: KEPT, users: [HIDDEN, { a: HIDDEN }] } } } },
  ],
  [
    "users that are one text",
    "gwproxy.dev/GwPolicy",
    { a: KEPT, spec: { traffic: { basicAuthentication: { users: [HIDDEN] } } } },
  ],
  [
    "a credential of a model",
    "gwproxy.dev/GwModel",
    { spec: { match: { model: KEPT }, policies: { auth: { key: HIDDEN } } } },
  ],
  [
    "a header that a route sets",
    "gateway.networking.k8s.io/HTTPRoute",
    { spec: { rules: [{ filters: [{ requestHeaderModifier: { set: [{ name: KEPT, value: HIDDEN }] } }] }] } },
  ],
  [
    "headers of an exporter",
    "gwproxy.dev/GwPolicy",
    { spec: { name: KEPT, frontend: { otlp: { headers: { "x-key": HIDDEN } } } } },
  ],
  [
    "a variable of a container",
    "/Pod",
    { spec: { containers: [{ name: KEPT, env: [{ name: "A", value: HIDDEN }] }] } },
  ],
  ...[
    ["--session-key", HIDDEN],
    [`--session-key=${HIDDEN}`],
    ["--admin-token", HIDDEN],
    [`-dbPassword=${HIDDEN}\nand ${HIDDEN}`],
    ["--client-secret", HIDDEN],
    ["--secret", `-${HIDDEN}`],
    ["--x", "--secret", HIDDEN],
    [`--x --secret ${HIDDEN}`],
    [`--PassPhrase\t${HIDDEN}`],
    ["--token", [HIDDEN]],
    ["--token", { any: HIDDEN }],
    [["--token", HIDDEN]],
    ...SCRIPTS.map((script) => ["sh", "-c", script]),
  ].map((args): (typeof HOSTILE)[number] => [
    `arguments ${JSON.stringify(args)}`,
    "/Pod",
    { spec: { containers: [{ args: [...args, KEPT] }, { command: ["run", ...args] }] } },
  ]),
  ["a command that is one text", "example.com/Job", { name: KEPT, command: `run --token ${HIDDEN}` }],
  [
    "an argument of an overlay",
    "gwproxy.dev/GwParameters",
    {
      spec: {
        deployment: { spec: { template: { spec: { containers: [{ name: KEPT, args: ["--token", HIDDEN] }] } } } },
      },
    },
  ],
  [
    "a variable of an overlay",
    "gwproxy.dev/GwParameters",
    { spec: { name: KEPT, env: [{ name: "A", value: HIDDEN }] } },
  ],
  ["an entry of a ConfigMap", "/ConfigMap", { data: { [KEPT]: HIDDEN }, binaryData: { b: HIDDEN } }],
  ["an entry of a Secret", "/Secret", { type: KEPT, data: { a: HIDDEN }, stringData: { b: HIDDEN } }],
  ["a Secret of another shape", "/Secret", { type: KEPT, data: HIDDEN, stringData: [HIDDEN] }],
  [
    "a copy of the object in an annotation",
    "gateway.networking.k8s.io/Gateway",
    { metadata: { name: KEPT, annotations: { "tool.example/original": ` {"spec":"${HIDDEN}"}` } } },
  ],
  ["a member of an unknown kind", "example.com/Widget", { spec: { name: KEPT, clientSecret: HIDDEN, token: HIDDEN } }],
];

test("masks go by the schema of a kind, whatever stands in its fields", () => {
  for (const [what, groupKind, object] of HOSTILE) {
    const text = JSON.stringify(maskObject(object, groupKind));
    assert.ok(!text.includes(HIDDEN), `${what}: ${text}`);
    assert.ok(text.includes(KEPT), `${what}: ${text}`);
  }
  const limits = { spec: { rateLimit: { entries: [{ key: KEPT, value: "kept-2" }] } } };
  assert.deepEqual(maskObject(limits, "gwproxy.dev/GwPolicy"), limits, "a field whose name alone sounds like a secret");
  const own = { spec: { containers: [{ env: [{ name: "GWPROXY_XDS_MODE", value: "tls" }] }] } };
  assert.deepEqual(maskObject(own, "/Pod"), own);
  const paths = ["proxy", "--admin-token-file", "/t", "--xds-tls-key=/k", "--token", "--log-level=info", "x"];
  const masked = ["proxy", "--admin-token-file", "/t", "--xds-tls-key=<redacted>", "--token", "--log-level=info", "x"];
  assert.deepEqual(
    maskObject({ args: paths }, "/Pod"),
    { args: masked },
    "arguments of flags that are no secrets stay",
  );
  const script = "run --admin-token-file /t --xds-tls-key=/k --token --log-level=info key; echo token of a";
  assert.deepEqual(
    maskObject({ args: ["-c", script] }, "/Pod"),
    { args: ["-c", script.replace("/k", "<redacted>")] },
    "so do those of a script",
  );
  const named = {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwBackend",
    spec: { policies: { auth: { key: HIDDEN } } },
  };
  assert.ok(!JSON.stringify(maskObject(named)).includes(HIDDEN), "the kind is that of the object");
});

test("texts that look like endless names and values take time in proportion to their length", () => {
  const size = 1_000_000;
  for (const part of ["a", "-", "key", "--key ", "key:", 'key="', "$(", "token=\\", "a.b-", "' \"`"]) {
    const args = [part.repeat(size / part.length)];
    assert.equal(typeof JSON.stringify(maskObject({ args }, "/Pod")), "string");
  }
});

test("every secret of the schemas is masked", () => {
  for (const [groupKind, paths] of Object.entries(SECRETS))
    for (const path of paths) {
      const object = path.reduceRight<unknown>((inner, name) => (name === "*" ? [inner] : { [name]: inner }), HIDDEN);
      const text = JSON.stringify(maskObject(object, groupKind));
      assert.ok(!text.includes(HIDDEN), `${groupKind} ${path.join(".")}: ${text}`);
    }
});

test("masks cover Secrets, credentials in fields, and secrets by their form", () => {
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "a" },
    data: { a: "b64" },
    stringData: { c: "d" },
  };
  assert.deepEqual(maskObject(secret), {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "a" },
    data: { a: "<redacted>", c: "<redacted>" },
  });
  const widget = { spec: { auth: { key: "hidden", secretRef: { name: "s" } } } };
  assert.deepEqual(maskObject(widget), { spec: { auth: { key: "<redacted>", secretRef: { name: "s" } } } });
  const match = { headers: [{ type: "Exact", name: "x", value: "kept" }] };
  assert.deepEqual(maskObject(match), match);
  const annotated = { metadata: { annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}" } } };
  assert.deepEqual(maskObject(annotated), { metadata: { annotations: {} } });
  const texts = [
    "Bearer abc.def.ghi-jkl",
    "sk-abcdefghijklmnop",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.",
    "redis://a:hunter2@host",
  ];
  for (const text of texts) assert.match(maskText(`x ${text} y`), /<redacted>/, text);
});
