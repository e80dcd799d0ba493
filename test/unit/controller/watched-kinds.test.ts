/** The kinds that a controller watches: a kind that is switched off is never asked for, so no right is needed for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { watchedKinds } from "../../../src/controller/watched-kinds.ts";

test("GwModel and InferencePool are watched only where they are switched on", () => {
  const watched = (enableInference: boolean, enableModels: boolean): string[] =>
    watchedKinds({ enableInference, enableModels })
      .map(({ kind }) => kind)
      .filter((kind) => ["GwModel", "GwPolicy", "InferencePool", "Gateway", "Deployment"].includes(kind))
      .sort();
  assert.deepEqual(watched(false, true), ["Deployment", "Gateway", "GwModel", "GwPolicy"]);
  assert.deepEqual(watched(true, false), ["Deployment", "Gateway", "GwPolicy", "InferencePool"]);
});
