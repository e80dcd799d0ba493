/** Objects that must and must not compile as GwPolicy: checked by `tsc`, never run. */
import type { KubeObject } from "../../src/api/object.ts";
import type { GwPolicy } from "../../generated/types/policy.ts";
import type { Traffic } from "../../generated/types/traffic.ts";

const head = { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwPolicy", metadata: { name: "p" } };
const gateway = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" };

export const whole: GwPolicy = {
  ...head,
  spec: {
    targetRefs: [gateway],
    strategy: { inheritance: "Override" },
    traffic: {
      phase: "PostRouting",
      apiKeyAuthentication: { secretRef: { name: "keys" }, location: { header: { name: "x-api-key" } } },
      authorization: { action: "Require", policy: { matchExpressions: ["apiKey.tier == 'gold'"] } },
      rateLimit: { conditional: [{ condition: "true", policy: { local: [{ tokens: 5, unit: "Hours" }] } }] },
      transformation: { response: { add: [{ name: ":status", value: "201u" }] } },
      directResponse: { status: 418, bodyExpression: "request.path" },
      headerModifiers: { request: { remove: ["cookie"] } },
      timeouts: { request: "1m30s" },
    },
  },
};

// Every object of a kind can be handled as an object of any kind.
export const anyKind: KubeObject = whole;

// @ts-expect-error a policy says what it is about
export const withoutSpec: GwPolicy = head;

export const unknownField: Traffic = {
  // @ts-expect-error the field is `timeouts`
  timeout: { request: "1s" },
};

// @ts-expect-error a value that the schema does not list
export const unknownValue: Traffic = { phase: "Routing" };

// @ts-expect-error a limit names its unit
export const withoutUnit: Traffic = { rateLimit: { local: [{ requests: 1 }] } };

// @ts-expect-error the form in an entry has a status
export const withoutStatus: Traffic = { directResponse: { conditional: [{ policy: { body: "x" } }] } };

export function change(traffic: Traffic): void {
  // @ts-expect-error objects that were delivered are never changed
  traffic.phase = "PreRouting";
  // @ts-expect-error nor are their lists
  traffic.rateLimit?.local?.push({ requests: 1, unit: "Seconds" });
}
