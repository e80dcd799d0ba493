/** Settings of the controller that come in variables: what cannot be read stops the start, by name. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Command, CommanderError } from "commander";
import { unknownVariables } from "../../../src/cli/commands/options.ts";
import { addControllerCommand } from "../../../src/cli/commands/controller.ts";

const UNREADABLE: readonly [string, string, RegExp][] = [
  ["GWPROXY_LOG_LEVEL", "loud", /is not a log filter/],
  ["GWPROXY_XDS_MODE", "sometimes", /Allowed choices are plaintext, tls, either/],
  ["GWPROXY_XDS_AUTH", "yes", /is neither true nor false/],
  ["GWPROXY_XDS_SERVICE_NAME", "", /must not be empty/],
  ["GWPROXY_XDS_SERVICE_PORT", "0", /is not a port that can be reached/],
  ["GWPROXY_XDS_SERVICE_PORT", "70000", /is not a port/],
  ["GWPROXY_ADDITIONAL_XDS_TLS_HOSTS", "a.example.com,b c", /"b c" is no host name/],
  ["GWPROXY_PROXY_IMAGE_REPOSITORY", "", /must not be empty/],
  ["GWPROXY_NO_LISTENERS_DUMMY_PORT", "-1", /is not a port/],
  ["GWPROXY_DISCOVERY_NAMESPACE_SELECTORS", "team=a", /it is not JSON/],
  ["GWPROXY_DISCOVERY_NAMESPACE_SELECTORS", '{"matchLabels":{}}', /a list is needed/],
  ["GWPROXY_DISCOVERY_NAMESPACE_SELECTORS", '[{"labels":{"team":"a"}}]', /\[0\]: labels is not known/],
  ["GWPROXY_DISCOVERY_NAMESPACE_SELECTORS", '[{"matchLabels":{"team":1}}]', /must be a map of texts/],
  [
    "GWPROXY_DISCOVERY_NAMESPACE_SELECTORS",
    '[{},{"matchExpressions":[{"key":"team","operator":"Is","values":["a"]}]}]',
    /\[1\]: matchExpressions\[0\] needs a key, an operator \(In, NotIn, Exists, DoesNotExist\)/,
  ],
  ["GWPROXY_PROXY_IMAGE_PULL_SECRETS", "registry", /it is not JSON/],
  ["GWPROXY_PROXY_IMAGE_PULL_SECRETS", "[1]", /give a JSON list of names/],
  ["GWPROXY_MESH_AUTO_ENABLED", "1", /is neither true nor false/],
  ["GWPROXY_GATEWAY_CLASS_PARAMETERS_REFS", "[]", /give a JSON map of class names/],
  [
    "GWPROXY_GATEWAY_CLASS_PARAMETERS_REFS",
    '{"gwproxy":{"name":"a"}}',
    /class gwproxy needs {"name": "…", "namespace"/,
  ],
  ["GWPROXY_CREATE_GATEWAY_CLASS", "no", /is neither true nor false/],
  ["GWPROXY_ENABLE_MODELS", "no", /is neither true nor false/],
  ["GWPROXY_BACKEND_REF_GRANT_MODE", "all", /Allowed choices are route-and-policy, route, none/],
  ["GWPROXY_DISABLE_LEADER_ELECTION", "1", /is neither true nor false/],
  ["GWPROXY_ALLOW_LOCAL_BACKENDS", "1", /is neither true nor false/],
];

for (const [name, value, sentence] of UNREADABLE) {
  test(`${name}=${JSON.stringify(value)} stops the start`, async (t) => {
    t.after(() => delete process.env[name]);
    process.env[name] = value;
    let said = "";
    const terminal = { isColoured: false, out: () => undefined, err: (text: string) => void (said += text) };
    const program = new Command().exitOverride().configureOutput({ writeErr: terminal.err });
    addControllerCommand(program, terminal);
    await assert.rejects(program.parseAsync(["node", "gwproxy", "controller"]), CommanderError);
    assert.match(said, sentence);
    assert.ok(said.includes(name), said);
  });
}

test("parameters of a class that the controller does not create are refused", async (t) => {
  const variable = "GWPROXY_GATEWAY_CLASS_PARAMETERS_REFS";
  t.after(() => delete process.env[variable]);
  process.env[variable] = '{"other":{"name":"a","namespace":"b"}}';
  let said = "";
  const program = new Command().exitOverride().configureOutput({ writeErr: (text) => void (said += text) });
  addControllerCommand(program, { isColoured: false, out: () => undefined, err: () => undefined });
  await assert.rejects(program.parseAsync(["node", "gwproxy", "controller"]), CommanderError);
  assert.match(said, /names the class other, and the controller creates gwproxy/);
});

test("variables that are none of the controller's are named, with the one that was meant", () => {
  const program = new Command();
  addControllerCommand(program, { isColoured: false, out: () => undefined, err: () => undefined });
  const [command] = program.commands;
  assert.ok(command);
  const environment = {
    GWPROXY_XDS_MOD: "tls",
    GWPROXY_NOTHING_LIKE_IT_AT_ALL: "1",
    // What Kubernetes makes for a Service of the name gwproxy, what is read, and what is not ours.
    GWPROXY_PORT: "tcp://10.0.0.1:9978",
    GWPROXY_PORT_9978_TCP_ADDR: "10.0.0.1",
    GWPROXY_SERVICE_HOST: "10.0.0.1",
    GWPROXY_SERVICE_PORT_METRICS: "9092",
    GWPROXY_XDS_SERVICE_PORT: "9978",
    GWPROXY_REVISION: "abc",
    OTHER: "1",
  };
  const misspelt = "GWPROXY_XDS_MOD is not a variable of the controller; did you mean GWPROXY_XDS_MODE?";
  assert.deepEqual(unknownVariables(command, environment), [
    "GWPROXY_NOTHING_LIKE_IT_AT_ALL is not a variable of the controller",
    misspelt,
  ]);
  const page = readFileSync(join(import.meta.dirname, "../../../docs/operations.md"), "utf8");
  assert.ok(page.includes(`\nwarning: ${misspelt}\n`), "the page for operators shows it as it is printed");
});
