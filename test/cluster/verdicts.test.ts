/** The API server and admission say the same about the same object: verdict, path of the field, and words. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { applyDefaults } from "../../generated/defaults.ts";
import { validate } from "../../src/admission/validate.ts";
import { CASES, type Case } from "../crd-rules/cases.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

const CRDS = join(import.meta.dirname, "../../crds");
let server: ApiServer;

before(async () => {
  server = await startApiServer();
  await server.kubectl([
    "apply",
    "-f",
    `${CRDS}/gwproxy.dev_gwbackends.yaml`,
    "-f",
    `${CRDS}/gwproxy.dev_gwpolicies.yaml`,
  ]);
  await server.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
});

after(async () => {
  await server?.stop();
});

function objectOf({ kind, spec }: Case): object {
  return { apiVersion: "gwproxy.dev/v1alpha1", kind, metadata: { name: "x", namespace: "default" }, spec };
}

/** What the API server refuses, one line for each fault; empty when it takes the object. */
async function faultsOnServer(object: object): Promise<string[]> {
  try {
    await server.kubectl(["create", "--dry-run=server", "--validate=ignore", "-f", "-"], JSON.stringify(object));
    return [];
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const list = /is invalid:\s*([\s\S]*)/.exec(text)?.[1];
    assert.ok(list !== undefined, text);
    const lines = list
      .trim()
      .split("\n")
      .map((line) => line.replace(/^\* /, "").trim());
    // Said beside the fault that it follows from; admission checks in the same order and says nothing.
    return lines.filter((line) => !line.includes("some validation rules were not checked")).sort();
  }
}

for (const each of CASES) {
  test(`${each.kind}: ${each.name} is ${each.isSound ? "taken" : "refused"} by both in the same words`, async () => {
    const object = objectOf(each);
    const here = validate(applyDefaults(`gwproxy.dev/${each.kind}`, object))
      .filter(({ severity }) => severity === "error")
      .map(({ path, message }) => `${path}: ${message}`)
      .sort();
    const there = await faultsOnServer(object);
    assert.equal(there.length === 0, each.isSound, `the API server: ${there.join("; ")}`);
    assert.deepEqual(here, there);
  });
}
