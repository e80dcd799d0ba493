import assert from "node:assert/strict";
import { test } from "node:test";
import { renew } from "../../../src/admission/certificates.ts";
import { webhookConfiguration } from "../../../src/admission/webhook-configuration.ts";

const DAY_MS = 86_400_000;
const NAMES = ["localhost", "127.0.0.1"];

test("certificates are kept while they are good and made anew for other names, broken storage or near their end", () => {
  const now = Date.now();
  const first = renew(undefined, NAMES, now);
  assert.equal(renew(first, NAMES, now + 59 * DAY_MS), first);
  const named = renew(first, [...NAMES, "webhook.gw.svc"], now);
  assert.equal(named.authority, first.authority);
  assert.notEqual(named.leaf.certificate, first.leaf.certificate);
  const broken = renew({ ...first, leaf: { certificate: "garbage", key: "" } }, NAMES, now);
  assert.equal(broken.authority, first.authority);
  assert.match(broken.leaf.certificate, /BEGIN CERTIFICATE/);
});

test("a new authority is announced together with the old one until the old one expires", () => {
  const now = Date.now();
  const first = renew(undefined, NAMES, now);
  const later = now + 3_500 * DAY_MS;
  const second = renew(first, NAMES, later);
  assert.notEqual(second.authority.certificate, first.authority.certificate);
  assert.equal(second.previousAuthority, first.authority.certificate);
  assert.equal(renew(second, NAMES, now + 3_540 * DAY_MS), second);
  assert.equal(renew(second, NAMES, now + 3_660 * DAY_MS).previousAuthority, "");
});

test("while a new authority is announced the leaf of the old one serves, and no longer than it can", () => {
  const now = Date.now();
  const first = renew(undefined, NAMES, now);
  // Without its key the authority can sign nothing more.
  const second = renew({ ...first, authority: { ...first.authority, key: "" } }, NAMES, now);
  assert.notEqual(second.authority.certificate, first.authority.certificate);
  assert.equal(second.leaf, first.leaf);
  assert.equal(renew(second, NAMES, now + DAY_MS), second);
  const third = renew(second, NAMES, now, true);
  assert.equal(third.authority, second.authority);
  assert.notEqual(third.leaf.certificate, first.leaf.certificate);
  assert.equal(renew(third, NAMES, now, true), third);
  // What the API server refuses anyway is not kept for it.
  assert.notEqual(renew(second, NAMES, now + 91 * DAY_MS).leaf.certificate, first.leaf.certificate);
  assert.notEqual(renew(second, [...NAMES, "other.gw.svc"], now).leaf.certificate, first.leaf.certificate);
});

test("the webhook is asked about our kinds alone and closes on failure", () => {
  const configuration = webhookConfiguration(
    "gwproxy",
    { service: { name: "hook", namespace: "gw" } },
    ["gwpolicies", "gwbackends"],
    "PEM",
  );
  const { webhooks } = configuration as { webhooks: Record<string, unknown>[] };
  assert.deepEqual(webhooks[0]?.["rules"], [
    {
      apiGroups: ["gwproxy.dev"],
      apiVersions: ["*"],
      operations: ["CREATE", "UPDATE"],
      resources: ["gwbackends", "gwpolicies"],
      scope: "*",
    },
  ]);
  assert.deepEqual(webhooks[0]?.["clientConfig"], {
    service: { name: "hook", namespace: "gw", path: "/validate", port: 443 },
    caBundle: "UEVN",
  });
  assert.equal(webhooks[0]?.["failurePolicy"], "Fail");
  assert.equal(webhooks[0]?.["timeoutSeconds"], 5);
  assert.equal(webhooks[0]?.["sideEffects"], "None");
});
