/** `gwproxy validate` in its three forms, with its exit codes. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { ValidateOptions } from "../../../src/cli/validate/validate.ts";
import { wantsColour } from "../../../src/cli/output.ts";
import { validateText, type Validated } from "../../support/gateway/validated.ts";

const POLICY = `apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: keys}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic:
    timeouts: {request: 1x}
    timeout: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: unused}
`;

function run(
  t: TestContext,
  manifest: string,
  options: Partial<ValidateOptions> = {},
  isColoured = false,
): Promise<Validated> {
  return validateText(t, manifest, options, { isColoured });
}

test("text shows each fault with its line, a mark under the value, the rule in words and what was meant", async (t) => {
  const { code, text, file } = await run(t, POLICY);
  assert.equal(code, 1);
  const [first, source, mark, about, format] = text.split("\n");
  assert.ok(
    first?.startsWith(`${file}:7:25: error: GwPolicy default/keys: spec.traffic.timeouts.request: Invalid value: "1x"`),
  );
  assert.equal(source, "  7 |     timeouts: {request: 1x}");
  assert.equal(mark, "    |                         ^^");
  assert.match(about ?? "", /^ {4}= request: \S/);
  assert.match(format ?? "", /^ {4}= Duration: \S/);
  assert.match(text, /:8:5: error: .*unknown field "spec.traffic.timeout" \(did you mean `timeouts`\?\)\n/);
  assert.match(text, /= fields here: .*timeouts/);
  assert.match(text, /:10:7: warning: UDPRoute default\/unused|:11:7: warning: UDPRoute default\/unused/);
  assert.ok(text.endsWith("2 errors, 1 warning\n"));
});

test("colours are for terminals, and NO_COLOR switches them off", async (t) => {
  const escape = "\u001B[";
  assert.ok((await run(t, POLICY, {}, true)).text.includes(`${escape}31merror:${escape}39m`));
  assert.ok(!(await run(t, POLICY, {}, false)).text.includes(escape));
  assert.ok(!(await run(t, POLICY, { output: "json" }, true)).text.includes(escape));
  assert.equal(wantsColour({ isTTY: true }, {}), true);
  assert.equal(wantsColour({ isTTY: true }, { NO_COLOR: "1" }), false);
  assert.equal(wantsColour({ isTTY: true }, { NO_COLOR: "" }), true);
  assert.equal(wantsColour({ isTTY: true }, { TERM: "dumb" }), false);
  assert.equal(wantsColour({}, {}), false);
});

test("json is a list with a row for each fault", async (t) => {
  const { text, file } = await run(t, POLICY, { output: "json" });
  const rows = JSON.parse(text) as Record<string, unknown>[];
  assert.equal(rows.length, 3);
  assert.deepEqual(rows[1], {
    file,
    line: 8,
    column: 5,
    object: "GwPolicy default/keys",
    path: "spec.traffic.timeout",
    severity: "error",
    message: 'unknown field "spec.traffic.timeout"',
    suggestion: "did you mean `timeouts`?",
  });
});

test("sarif is a log of version 2.1.0 whose results point at rules and places", async (t) => {
  const { text, code } = await run(t, POLICY, { output: "sarif" });
  assert.equal(code, 1);
  const log = JSON.parse(text) as {
    version: string;
    runs: {
      tool: { driver: { name: string; rules: { id: string; shortDescription: { text: string } }[] } };
      results: {
        ruleId: string;
        ruleIndex: number;
        level: string;
        message: { text: string };
        locations: {
          physicalLocation: {
            artifactLocation: { uri: string };
            region: { startLine: number; startColumn: number; snippet: { text: string } };
          };
        }[];
      }[];
    }[];
  };
  assert.equal(log.version, "2.1.0");
  const [{ tool, results }] = log.runs as [(typeof log.runs)[0]];
  assert.equal(tool.driver.name, "gwproxy");
  assert.deepEqual(
    results.map(({ level }) => level),
    ["error", "error", "warning"],
  );
  for (const { ruleId, ruleIndex } of results) assert.equal(tool.driver.rules[ruleIndex]?.id, ruleId);
  const place = results[0]?.locations[0]?.physicalLocation;
  assert.deepEqual(place?.region, {
    startLine: 7,
    startColumn: 25,
    snippet: { text: "    timeouts: {request: 1x}" },
  });
  assert.match(place?.artifactLocation.uri ?? "", /^file:\/\/\/.*policy\.yaml$/);
});

test("the exit code is 0 with warnings alone, unless they count as errors, and 2 when nothing could be read", async (t) => {
  const warned = POLICY.slice(POLICY.indexOf("---"));
  assert.equal((await run(t, warned)).code, 0);
  assert.equal((await run(t, warned, { strict: true })).code, 1);
  await assert.rejects(run(t, warned, { file: ["/nonexistent/manifests"] }), { code: "fatal", exitCode: 2 });
  const empty = mkdtempSync(join(tmpdir(), "gwproxy-empty-"));
  t.after(() => rmSync(empty, { recursive: true }));
  await assert.rejects(run(t, warned, { file: [empty] }), {
    exitCode: 2,
    message: /no manifests in \S*gwproxy-empty-/,
  });
});
