/** What admission finds in texts and between fields, where no rule of a CRD looks: src/admission/semantics.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../../src/admission/validate.ts";

const GATEWAY = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" };

function policy(spec: object): unknown {
  return applyDefaults("gwproxy.dev/GwPolicy", {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwPolicy",
    metadata: { name: "a", namespace: "default" },
    spec: { targetRefs: [GATEWAY], ...spec },
  });
}

function lines(object: unknown): string[] {
  return validate(object).map(
    ({ path, message, suggestion }) => `${path}: ${message}${suggestion === "" ? "" : ` (${suggestion})`}`,
  );
}

/** The unit of a descriptor, and whether the cost may read the request and the answer. */
const COSTS: readonly (readonly [unit: object, text: string, fault: RegExp | undefined])[] = [
  [{}, 'uint(request.headers["x-cost"])', undefined],
  [{}, "uint(response.code)", /unknown variable "response".* \(in the request phase there are: /],
  [{ unit: "Requests" }, "llm.totalTokens", /unknown variable "llm"/],
  [{ unit: "Tokens" }, "llm.totalTokens", undefined],
  [{ unit: "Tokens" }, "uint(response.code)", undefined],
  [{ unit: "Tokens" }, "uint(answer.code)", /unknown variable "answer"/],
];

for (const [unit, cost, fault] of COSTS) {
  test(`the cost ${cost} of a descriptor with ${JSON.stringify(unit)} reads what exists when it is evaluated`, () => {
    const entries = [{ name: "all", expression: "'x'" }];
    const service = { backendRef: { name: "limits", port: 8081 }, domain: "d" };
    const global = { ...service, descriptors: [{ entries, cost, ...unit }] };
    const conditional = [{ condition: "true", policy: { global } }];
    for (const [rateLimit, at] of [
      [{ global }, "global"],
      [{ conditional }, "conditional[0].policy.global"],
    ] as const) {
      const [found, ...more] = lines(policy({ traffic: { rateLimit } }));
      assert.deepEqual(more, []);
      if (fault === undefined) assert.equal(found, undefined);
      else
        assert.ok(found?.startsWith(`spec.traffic.rateLimit.${at}.descriptors[0].cost: `) && fault.test(found), found);
    }
  });
}
