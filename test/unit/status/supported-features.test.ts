/** The features that a GatewayClass claims, against the list of the Gateway API version that is served. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { crdDirectory } from "../../../codegen/upstream.ts";
import { computeStatus } from "../../../src/status/compute.ts";
import { SUPPORTED_FEATURES } from "../../../src/status/supported-features.ts";

/** What is not claimed, and why. */
const UNSUPPORTED_FEATURES: Readonly<Record<string, string>> = {
  UDPRoute: "there is no data plane for datagrams",
};

/** As the module's Go sources name them. */
function upstreamFeatures(): string[] {
  const folder = join(crdDirectory(), "../../../pkg/features");
  const text = readdirSync(folder)
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n");
  return [...text.matchAll(/^\tSupport[A-Za-z0-9]+\b.*= "([A-Za-z0-9]+)"$/gm)].map((found) => found[1] as string); // the group took part
}

test("each feature of the Gateway API but those of a mesh is claimed, or it is said why not", () => {
  const upstream = upstreamFeatures().filter((name) => !name.startsWith("Mesh"));
  assert.ok(upstream.length > 40, `${upstream.length} features were found`);
  const decided = [...SUPPORTED_FEATURES, ...Object.keys(UNSUPPORTED_FEATURES)];
  assert.deepEqual(decided.toSorted(), upstream.toSorted());
});

test("a class of ours lists them in order, as the status wants them", () => {
  const id = { group: "gateway.networking.k8s.io", kind: "GatewayClass", namespace: "", name: "gwproxy" };
  const context = {
    controllerName: "gwproxy.dev/gwproxy",
    acknowledged: () => false,
    hasDataPlane: () => false,
    nackReason: () => undefined,
  };
  const status = computeStatus({ kind: "GatewayClass", id, generation: 1 }, context);
  assert.equal(status.form, "keyed");
  assert.deepEqual(status.supportedFeatures, SUPPORTED_FEATURES);
  assert.deepEqual(SUPPORTED_FEATURES, SUPPORTED_FEATURES.toSorted());
});
