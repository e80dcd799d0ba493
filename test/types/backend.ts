/** Objects that must and must not compile as GwBackend and Gateway API kinds: checked by `tsc`, never run. */
import {
  kindOfGwBackendSpec,
  kindOfGwModelSpec,
  kindOfLLMProvider,
  kindOfMcpTarget,
  kindOfMcpTargetSelector,
  kindOfRequestGuard,
  kindOfResponseGuard,
  kindOfVirtualModel,
} from "../../generated/unions.ts";
import type { FieldDefault } from "../../generated/types/ai.ts";
import type { GwBackend, GwBackendSpec } from "../../generated/types/backend.ts";
import type { CredentialPlace } from "../../generated/types/common.ts";
import type { RequestGuard, ResponseGuard } from "../../generated/types/guardrails.ts";
import type { LLMProvider } from "../../generated/types/llm.ts";
import type { McpTarget, McpTargetSelector } from "../../generated/types/mcp.ts";
import type { GwModel, GwModelSpec, VirtualModel } from "../../generated/types/model.ts";
import type { GwParameters } from "../../generated/types/parameters.ts";
import type { HTTPRouteRule } from "../../generated/types/gateway-api/httproute.ts";
import type { ServedProvider } from "../../src/proxy/llm/providers/index.ts";

const head = { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwBackend", metadata: { name: "b" } };

export const plain: GwBackend = { ...head, spec: { static: { host: "10.0.0.1", port: 80 }, policies: { tls: {} } } };

export const models: GwBackend = {
  ...head,
  spec: {
    ai: {
      groups: [
        { providers: [{ name: "first", llma: { model: "m" }, policies: { auth: { secretRef: { name: "key" } } } }] },
        {
          providers: [{ name: "second", custom: { formats: [{ type: "Messages", path: "/m" }] }, host: "h", port: 1 }],
        },
      ],
    },
  },
};

// @ts-expect-error a provider in a group has a name
export const withoutName: GwBackend = { ...head, spec: { ai: { groups: [{ providers: [{ llma: {} }] }] } } };

// @ts-expect-error a port is a number
export const portAsText: GwBackend = { ...head, spec: { static: { host: "h", port: "80" } } };

export const place: CredentialPlace = {
  // @ts-expect-error a place to write a credential is not found by an expression
  expression: "'x'",
};

// @ts-expect-error the members of a match are not free
export const match: HTTPRouteRule = { matches: [{ path: { type: "Suffix", value: "/x" } }] };

/** A provider that is added to the schema needs a row in the table of the data plane. */
export const served: ServedProvider = kindOfLLMProvider({ llma: {} });

/** A member that is added to the schema stops the build at each switch over the members. */
export function identity(provider: LLMProvider): string {
  const kind = kindOfLLMProvider(provider);
  switch (kind) {
    case "llma":
    case "llmb":
    case "llmc":
    case "llmd":
    case "llme":
    case "llmf":
    case "llmg":
    case "llmh":
    case "custom":
      return kind;
    default:
      return kind satisfies never;
  }
}

export function incomplete(provider: LLMProvider): void {
  const kind = kindOfLLMProvider(provider);
  // @ts-expect-error other members are left
  if (kind !== "llma") kind satisfies never;
}

export const tools: GwBackend = {
  ...head,
  spec: {
    mcp: {
      targets: [
        { name: "a", static: { host: "h", port: 80, protocol: "SSE" } },
        { name: "b", selector: { services: { matchExpressions: [{ key: "app", operator: "Exists" }] } } },
      ],
      prefixMode: "Always",
    },
    policies: {
      mcp: {
        authorization: { policy: { matchExpressions: ["true"] } },
        guardrails: { processors: [{ remote: { url: "https://check.example" }, methods: { "tools/*": "Full" } }] },
      },
    },
  },
};

export const agents: readonly GwBackendSpec[] = [
  { a2a: { host: "h", port: 80 } },
  { dynamicForwardProxy: {} },
  { cloudA: { agentRuntime: { agentRuntimeArn: "arn" } } },
];

// @ts-expect-error an agent has a port
export const agentWithoutPort: GwBackendSpec = { a2a: { host: "h" } };

// @ts-expect-error there is nothing to set
export const forwardProxy: GwBackendSpec = { dynamicForwardProxy: { port: 80 } };

// @ts-expect-error a server has a port
export const serverWithoutPort: McpTarget = { host: "h" };

export const values: readonly FieldDefault[] = [
  { field: "a", value: null },
  { field: "b", value: { c: [1] } },
];

export const guards: RequestGuard = {
  // @ts-expect-error a pattern is masked, rejected or recorded
  regex: { matches: ["a"], action: "Drop" },
};

// @ts-expect-error answers are not moderated
export const moderated: ResponseGuard = { moderation: {} };

const model = { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwModel", metadata: { name: "m" } };

export const one: GwModel = {
  ...model,
  spec: { parentRefs: [{ name: "g" }], provider: "llmd", llmd: { resourceName: "r", resourceType: "ResA" } },
};

export const many: GwModel = {
  ...model,
  spec: {
    parentRefs: [{ name: "g" }],
    virtualModel: { failover: { targets: [{ modelRef: { name: "m" }, priority: 0 }] } },
  },
};

export const named: GwModel = {
  ...model,
  spec: {
    parentRefs: [{ name: "g" }],
    provider: "llmd",
    // @ts-expect-error the name of a model comes from the model itself
    llmd: { resourceName: "r", resourceType: "ResA", model: "m" },
  },
};

// @ts-expect-error a provider is named by its key
export const product: GwModelSpec["provider"] = "ollama";

// @ts-expect-error a model has parents
export const orphan: GwModel = { ...model, spec: { provider: "llma" } };

export const parameters: GwParameters = {
  ...head,
  spec: {
    resources: { limits: { cpu: 2, memory: "1Gi" } },
    deployment: { spec: { template: null } },
    rawConfig: { a: [null] },
  },
};

// @ts-expect-error both times are needed
export const halfAShutdown: GwParameters = { ...head, spec: { shutdown: { min: 1 } } };

/** A new member of any of these stops the build here. */
export function members(value: {
  readonly spec: GwBackendSpec;
  readonly target: McpTarget;
  readonly selector: McpTargetSelector;
  readonly request: RequestGuard;
  readonly response: ResponseGuard;
  readonly model: GwModelSpec;
  readonly virtual: VirtualModel;
}): readonly unknown[] {
  return [
    kindOfGwBackendSpec(value.spec) satisfies "static" | "a2a" | "dynamicForwardProxy" | "cloudA" | "mcp" | "ai",
    kindOfMcpTarget(value.target) satisfies "host" | "backendRef",
    kindOfMcpTargetSelector(value.selector) satisfies "selector" | "static",
    kindOfRequestGuard(value.request) satisfies "regex" | "webhook" | "moderation" | "guardrailsA" | "guardrailsB",
    kindOfResponseGuard(value.response) satisfies "regex" | "webhook" | "guardrailsA" | "guardrailsB",
    kindOfGwModelSpec(value.model) satisfies "provider" | "virtualModel",
    kindOfVirtualModel(value.virtual) satisfies "weighted" | "failover" | "conditional" | "callout",
  ];
}
