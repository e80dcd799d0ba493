/** When a conformance report is worth writing again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sameResult } from "./report.ts";

const HTTP = "{name: GATEWAY-HTTP, core: {result: success}}";
const GRPC = "{name: GATEWAY-GRPC, core: {result: success}}";

function report(date: string, profiles: readonly string[]): string {
  return `kind: ConformanceReport\ndate: "${date}"\nprofiles: [${profiles.join(", ")}]\n`;
}

test("reports of another date and order of profiles say the same", () => {
  assert.ok(sameResult(report("2026-01-01", [HTTP, GRPC]), report("2026-02-02", [GRPC, HTTP])));
});

test("another result, another profile or no report at all is a change", () => {
  const old = report("2026-01-01", [HTTP]);
  assert.ok(!sameResult(old, report("2026-01-01", [HTTP.replace("success", "failure")])));
  assert.ok(!sameResult(old, report("2026-01-01", [HTTP, GRPC])));
  assert.ok(!sameResult("", old));
});
