/**
 * Overlays next to `kubectl patch --type=strategic` by a real API server: the types that they are merged by, and what
 * comes of the same patch on the same object.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  OVERLAY_TYPES,
  overlayTypes,
  printOverlayTypes,
  ROOTS,
  type OpenApi,
} from "../../codegen/tools/overlay-types.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

let server: ApiServer;

before(async () => {
  server = await startApiServer();
});

after(() => server.stop());

test("the types are those that the API server publishes", async () => {
  const documents = new Map<string, OpenApi>();
  for (const path of Object.keys(ROOTS))
    documents.set(path, JSON.parse(await server.kubectl(["get", "--raw", `/openapi/v3/${path}`])) as OpenApi);
  const committed = readFileSync(join(import.meta.dirname, "../..", OVERLAY_TYPES), "utf8");
  const printed = printOverlayTypes(overlayTypes(Object.fromEntries(documents)), "VERSION");
  assert.equal(committed.replace(/(?<=Kubernetes )v[\d.]+(?=\. )/, "VERSION"), printed);
});
