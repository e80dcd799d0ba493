/** Objects that must and must not compile as GwBackend and Gateway API kinds: checked by `tsc`, never run. */
import { kindOfLLMProvider } from "../../generated/unions.ts";
import type { GwBackend } from "../../generated/types/backend.ts";
import type { CredentialPlace } from "../../generated/types/common.ts";
import type { LLMProvider } from "../../generated/types/llm.ts";
import type { HTTPRouteRule } from "../../generated/types/gateway-api/httproute.ts";

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
