/** The API server and admission say the same about the same object: verdict, path of the field, and words. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { applyDefaults } from "../../generated/defaults.ts";
import { validate } from "../../src/admission/validate.ts";
import { loadCases } from "../crd-rules/load.ts";
import { defineOurKinds } from "../support/kubernetes/cluster.ts";
import { askServer, byText, type Fault, type ServerVerdict } from "../support/kubernetes/server-verdict.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

let server: ApiServer;
let judge: ServerVerdict;

before(async () => {
  server = await startApiServer();
  await defineOurKinds(server);
  judge = askServer(server.kubeconfig);
});

after(async () => {
  judge?.close();
  await server?.stop();
});

function faultsHere(kind: string, object: object): Fault[] {
  return validate(applyDefaults(`gwproxy.dev/${kind}`, object))
    .filter(({ severity }) => severity === "error")
    .map(({ path, message }) => ({ path, message }))
    .sort(byText);
}

for (const { kind, plural, file, name, object, faults } of loadCases()) {
  test(`${file}: ${name}: ${faults.length === 0 ? "taken" : "refused"} by both in the same words`, async () => {
    assert.deepEqual(faultsHere(kind, object), faults, "admission says something else than the table");
    assert.deepEqual(await judge.faultsOf(plural, object), faults, "the API server says something else than the table");
  });
}
