import assert from "node:assert/strict";
import { test } from "node:test";
import type { Callout } from "../../../../src/proxy/callouts/callout.ts";
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
    {} as never, // only hosts of vendors are reached through tunnels
    { owner: "backend/default/tools", auth: () => undefined },
  );
  services.callout(undefined);
  services.callout(undefined, "Guardrail", 1_000);
  assert.deepEqual(limits, [10_000, 1_000]);
});
