import assert from "node:assert/strict";
import { test } from "node:test";
import type { Callout } from "../../../../src/proxy/callouts/callout.ts";
import { connectionOf } from "../../../../src/proxy/upstream/dial/connection-settings.ts";
import { createGuardServices } from "../../../../src/proxy/backends/guard-services.ts";

test("a service that checks calls has ten seconds, unless the caller names another limit", () => {
  const limits: (number | undefined)[] = [];
  const open = (_service: unknown, _subtype: unknown, timeoutMs?: number): Callout => {
    limits.push(timeoutMs);
    return {} as Callout; // it is never called
  };
  const callouts = { open, openTarget: () => ({}) as Callout };
  const services = createGuardServices(
    () => callouts,
    // Only hosts of vendors have connection settings of their own.
    { owner: "backend/default/tools", auth: () => undefined, connection: () => connectionOf({}) },
  );
  services.callout(undefined);
  services.callout(undefined, "Guardrail", 1_000);
  assert.deepEqual(limits, [10_000, 1_000]);
});
