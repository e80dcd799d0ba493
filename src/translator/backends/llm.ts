/**
 * Translates `ai` of a GwBackend: groups of LLM providers in order of priority. `translate.ts` uses it. A single
 * provider becomes one group with one unnamed member.
 *
 * Defaults: the provider's own host is reached over TLS on port 443; an overridden host uses TLS only on port 443.
 */
import { create } from "@bufbuild/protobuf";
import type { AIBackend, LLMProvider, NamedLLMProvider } from "../../../generated/types/llm.ts";
import {
  AiBackendSchema,
  ProviderSchema,
  type AiBackend,
  type Provider,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { nameKey } from "../../api/refs.ts";
import type { Readable } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ServiceView } from "../shared/views.ts";
import { translateSettings, type SettingsContext } from "./settings/settings.ts";
import { within, type Report } from "../shared/report.ts";
import { withoutBrackets } from "../../lib/network/local-address.ts";

export interface LlmContext {
  readonly namespace: string;
  readonly services: Readable<ServiceView>;
  /** Resolves the references in the policies of a provider. */
  readonly settings: SettingsContext;
  readonly read: Read;
  /** Reports an error that prevents the whole backend from being sent. */
  readonly error: Report;
  /** Reports a problem that affects one provider of a group; that provider is sent in its failing form. */
  readonly warning: Report;
}

const KEYS = ["llma", "llmb", "llmc", "llmd", "llme", "llmf", "llmg", "llmh", "custom"] as const;
const IDENTITIES: Readonly<Partial<Record<(typeof KEYS)[number], string>>> = { llma: "openai", llme: "anthropic" };
const TLS_PORT = 443;

export function translateLlm(ai: AIBackend, context: LlmContext): AiBackend {
  if (ai.provider !== undefined) {
    const single = translateProvider(ai.provider, "", { ...context, error: within(context.error, "provider") });
    return create(AiBackendSchema, { groups: [{ providers: single === undefined ? [] : [single] }] });
  }
  const names = new Set<string>();
  return create(AiBackendSchema, {
    groups: (ai.groups ?? []).map((group, at) => ({
      providers: group.providers.flatMap((provider, place) => {
        const path = `groups[${at}].providers[${place}]`;
        const error = within(context.error, path);
        if (names.has(provider.name)) error("name", `provider ${provider.name} is named twice`);
        names.add(provider.name);
        const member = { ...context, error, warning: within(context.warning, path) };
        return translateMember(provider, member) ?? [];
      }),
    })),
  });
}

/** Returns the keys of the Backends that carry the connection of a provider. */
export function backendsOf(ai: AiBackend): string[] {
  return ai.groups.flatMap((group) => group.providers.map((provider) => provider.backend)).filter((key) => key !== "");
}

function translateMember(member: NamedLLMProvider, context: LlmContext): Provider | undefined {
  const provider = translateProvider(member, member.name, context);
  const settings = translateSettings(member.policies, context.settings, within(context.warning, "policies"));
  if (provider !== undefined && settings !== undefined) provider.settings = settings;
  return provider;
}

function translateProvider(spec: LLMProvider, name: string, context: LlmContext): Provider | undefined {
  const key = KEYS.find((candidate) => spec[candidate] !== undefined);
  const identity = key === "custom" ? (spec.custom?.providerOverride ?? "custom") : key && IDENTITIES[key];
  if (key === undefined || identity === undefined) {
    context.error(key ?? "", key === undefined ? "a provider key is required" : `provider ${key} is not served yet`);
    return undefined;
  }
  const settings = key === "llma" ? spec.llma : key === "llme" ? spec.llme : spec.custom;
  const backend = spec.custom?.backendRef === undefined ? "" : connection(spec.custom.backendRef, context);
  if (backend === undefined) return undefined;
  return create(ProviderSchema, {
    name,
    key,
    identity,
    ...addressOf(spec, backend !== ""),
    path: spec.path ?? "",
    pathPrefix: spec.pathPrefix ?? "",
    model: settings?.model ?? "",
    formats: (spec.custom?.formats ?? []).map(({ type, path }) => ({ type, path: path ?? "" })),
    backend,
  });
}

function addressOf({ host, port }: LLMProvider, elsewhere: boolean): Pick<Provider, "host" | "port" | "tls"> {
  if (elsewhere) return { host: "", port: 0, tls: false };
  const number = port ?? TLS_PORT;
  return { host: withoutBrackets(host ?? ""), port: number, tls: host === undefined || number === TLS_PORT };
}

type ConnectionRef = NonNullable<NonNullable<LLMProvider["custom"]>["backendRef"]>;

/** @returns the key of the Service port, or undefined after an error was reported */
function connection(ref: ConnectionRef, { namespace, services, read, error }: LlmContext): string | undefined {
  const path = "custom.backendRef";
  if ((ref.group ?? "") !== "" || (ref.kind ?? "Service") !== "Service") {
    error(path, `backendRef of kind ${ref.kind} is not served yet`);
    return undefined;
  }
  const key = nameKey({ namespace, name: ref.name });
  const service = read.get(services, key);
  const port = service?.ports.find((candidate) => candidate.port === ref.port);
  if (port !== undefined) return port.key;
  error(path, service === undefined ? `Service ${key} not found` : `Service ${key} has no TCP port ${ref.port}`);
  return undefined;
}
