/** Translates the provider of a concrete GwModel, and the policies that belong to it. `translate.ts` uses it. */
import { create } from "@bufbuild/protobuf";
import type { LLMProvider } from "../../../generated/types/llm.ts";
import type { GwModelSpec, ModelPolicies } from "../../../generated/types/model.ts";
import type { HeaderModifier, HeaderModifiers } from "../../../generated/types/traffic.ts";
import {
  AiPolicySchema,
  ComputedFieldSchema,
  BackendSettingsSchema,
  ProviderSchema,
  TransformSchema,
  TransformationSchema,
  type AiPolicy,
  type BackendSettings,
  type Model,
  type Provider,
  type Transform,
  type Transformation,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { isLocalHost, withoutBrackets } from "../../lib/network/local-address.ts";
import { translateProviderKey } from "../backends/llm/index.ts";
import type { ProviderContext } from "../backends/llm/provider.ts";
import { translateComputedFields } from "../backends/settings/ai/body-fields.ts";
import { translateAi } from "../backends/settings/ai/index.ts";
import { translateConnection } from "../backends/settings/connection.ts";
import type { SettingsContext } from "../backends/settings/context.ts";
import { translateHealth } from "../backends/settings/health.ts";
import { within, type Report } from "../shared/report.ts";

export interface ModelProviderContext extends ProviderContext {
  /** Resolves the references in the policies of the model. */
  readonly settings: SettingsContext;
}

/** The spec of a model without its parents, which are attached apart. */
export type ModelContent = Omit<GwModelSpec, "parentRefs">;

/** @returns undefined after an error was reported */
export function translateModelProvider(spec: ModelContent, context: ModelProviderContext): Model["kind"] | undefined {
  const { provider = "", policies } = spec;
  const { error } = context;
  // Admission guarantees that the settings are those of the provider; a provider without settings has none.
  const keyed = translateProviderKey(
    { [provider]: spec.llmd ?? spec.llmg ?? spec.llmh ?? spec.custom ?? {} } as LLMProvider,
    { ...context, error: (path, message) => error(path === provider ? "provider" : path, message) },
  );
  const address = translateBaseUrl(spec.baseURL, error);
  const settings =
    policies === undefined ? undefined : translatePolicies(policies, context.settings, within(error, "policies"));
  if (keyed === undefined || address === undefined) return undefined;
  const isElsewhere = (keyed.backend ?? "") !== "";
  return {
    case: "provider",
    value: create(ProviderSchema, {
      ...keyed,
      ...(isElsewhere ? {} : address),
      ...(settings === undefined ? {} : { settings }),
    }),
  };
}

const TLS_PORT = 443;
const PLAIN_PORT = 80;

/** The path of the URL stands in place of the provider's own base, also when it is only "/". */
function translateBaseUrl(
  text: string | undefined,
  error: Report,
): Pick<Provider, "host" | "port" | "tls" | "pathPrefix"> | undefined {
  if (text === undefined) return { host: "", port: TLS_PORT, tls: true, pathPrefix: "" };
  const url = URL.parse(text);
  const host = withoutBrackets(url?.hostname ?? "");
  if (url === null || host === "") {
    error("baseURL", `"${text}" is not an absolute URL of http or https with a host`);
    return undefined;
  }
  if (isLocalHost(host)) {
    const remedy = "name a Service in custom.backendRef, whose EndpointSlice may hold such an address";
    error("baseURL", `"${host}" is on the machine of the data plane or its link; ${remedy}`);
    return undefined;
  }
  const tls = url.protocol === "https:";
  const port = url.port === "" ? (tls ? TLS_PORT : PLAIN_PORT) : Number(url.port);
  return { host, port, tls, pathPrefix: url.pathname };
}

function translatePolicies(policies: ModelPolicies, context: SettingsContext, report: Report): BackendSettings {
  const { health, headers } = policies;
  return create(BackendSettingsSchema, {
    ...translateConnection(policies, context, report),
    ai: translateModelAi(policies, context, report),
    ...(health === undefined ? {} : { health: translateHealth(health, within(report, "health")) }),
    ...(headers === undefined ? {} : { transformation: translateHeaders(headers) }),
  });
}

function translateModelAi(policies: ModelPolicies, context: SettingsContext, report: Report): AiPolicy {
  // The fields of an `ai` block that models have carry the same names here.
  const ai = translateAi(policies, context, report) ?? create(AiPolicySchema);
  const { finalTransformations = [] } = policies;
  ai.finalTransformations = translateComputedFields(finalTransformations, within(report, "finalTransformations")).map(
    (field) => create(ComputedFieldSchema, field),
  );
  return ai;
}

/** Translates header modifiers to a transformation, whose expressions are the literal values. */
function translateHeaders({ request, response }: HeaderModifiers): Transformation {
  return create(TransformationSchema, {
    ...(request === undefined ? {} : { request: translateModifier(request) }),
    ...(response === undefined ? {} : { response: translateModifier(response) }),
  });
}

function translateModifier({ set = [], add = [], remove = [] }: HeaderModifier): Transform {
  const literal = ({ name, value }: { readonly name: string; readonly value: string }) => ({
    name,
    // A JSON string is a CEL string literal of the same text.
    expression: JSON.stringify(value),
  });
  return create(TransformSchema, { set: set.map(literal), add: add.map(literal), remove: [...remove] });
}
