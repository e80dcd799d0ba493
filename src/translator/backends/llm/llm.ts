/**
 * Translates `ai` of a GwBackend: groups of LLM providers in order of priority. `../translate.ts` uses it. A single
 * provider becomes one group with one unnamed member.
 *
 * Defaults: the provider's own host is reached over TLS on port 443; an overridden host uses TLS only on port 443.
 */
import { create } from "@bufbuild/protobuf";
import type { AIBackend, LLMProvider, NamedLLMProvider } from "../../../../generated/types/llm.ts";
import {
  AiBackendSchema,
  ProviderSchema,
  type AiBackend,
  type Provider,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { within, type Report } from "../../shared/report.ts";
import type { FullSettingsContext } from "../settings/context.ts";
import { translateSettings } from "../settings/settings.ts";
import { translateProviderKey } from "./index.ts";
import type { ProviderContext } from "./provider.ts";
import { withoutBrackets } from "../../../lib/network/local-address.ts";

export interface LlmContext extends ProviderContext {
  /** Resolves the references in the policies of a provider. */
  readonly settings: FullSettingsContext;
  /** Reports a diagnostic that affects one provider of a group; that provider is sent in its failing form. */
  readonly warning: Report;
}

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
  const keyed = translateProviderKey(spec, context);
  if (keyed === undefined) return undefined;
  const { backend = "" } = keyed;
  return create(ProviderSchema, {
    ...keyed,
    name,
    ...addressOf(spec, backend !== ""),
    path: spec.path ?? "",
    pathPrefix: spec.pathPrefix ?? "",
  });
}

function addressOf({ host, port }: LLMProvider, elsewhere: boolean): Pick<Provider, "host" | "port" | "tls"> {
  if (elsewhere) return { host: "", port: 0, tls: false };
  const number = port ?? TLS_PORT;
  return { host: withoutBrackets(host ?? ""), port: number, tls: host === undefined || number === TLS_PORT };
}
